#!/usr/bin/env python3
"""Compares Rhea's tokenizers with the PyPI package `tokenizers`, and makes golden files with it.

  compare --rhea BIN [--megabytes 20] [--text FILE ...] TOKENIZER ...   published tokenizers on mixed text
          TOKENIZER: tokenizer.json, or what the packages sentencepiece, tiktoken and transformers (vocab.json with merges.txt)
          read; those of the kinds given are needed
  random  --rhea BIN [--count 200] [--seed 1]                           tokenizers of random components
  goldens --output FILE                                                 ids and texts for the unit tests

Needs Python 3.10 and `pip install tokenizers`. Prints the first differences of each tokenizer and ends with code 1 if there are any.
"""
import argparse
import base64
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

WORDS = ("the of and to in is it you that he was for on are with as his they be at one have this from or had by hot but "
         "some what there we can out other were all your when up use word how said an each she which do their time if will "
         "way about many then them would write like so these her long make thing see him two has look more day could go come "
         "did my sound no most number who over know water than call first people may down side been now find").split()
CODE = ["for (int i = 0; i < n; ++i) {\n\tsum += a[i];\n}\n", "def f(x, y=None):\n    return x ** 2 if y is None else y\n",
        "<div class=\"a\">&nbsp;</div>\r\n", "SELECT * FROM t WHERE id >= 1234567890;\n", "{\"key\": [1, 2.5e-3, null]}\n",
        "    // don't, we'll, I'M, they'VE\n", "std::vector<int>x;//\u00e9\n\n\n", "0x7fff_ffff == 0b1011 != 3.14159\n"]


def blocks():
    """Characters by kind; only such that all libraries know since long."""
    old = unicodedata.ucd_3_2_0
    known = [c for c in map(chr, list(range(0x20, 0xd800)) + list(range(0xf900, 0x10000)))
             if old.category(c) not in ("Cn", "Co", "Cs")]
    within = lambda a, b: [c for c in known if a <= ord(c) <= b]
    return {
        "latin": within(0x20, 0x24f), "combining": within(0x300, 0x362), "greek": within(0x370, 0x4ff),
        "hebrew_arabic": within(0x590, 0x6ff), "indic": within(0x900, 0xdff), "thai": within(0xe00, 0xe7f),
        "hangul": within(0x1100, 0x11ff) + within(0xac00, 0xd7a3), "punctuation": within(0x2000, 0x2bff),
        "kana": within(0x3000, 0x30ff), "chinese": within(0x4e00, 0x9fff), "compatibility": within(0xf900, 0xffff),
        "emoji": [chr(c) for c in range(0x1f300, 0x1f650)] + ["\u200d", "\ufe0f", "\U0001f1e9\U0001f1ea", "\U0001f3fd"],
        "control": [chr(c) for c in list(range(0, 0x20)) + list(range(0x7f, 0xa0))] + ["\u00ad", "\u200b", "\ufeff", "\u2028"],
        "space": list(" \t\n\r\u00a0\u2003\u3000\u1680\u180e"), "all": [c for c in known if not 0x363 <= ord(c) <= 0x36f],
    }


BLOCKS = blocks()


def random_text(rng, size):
    parts = []
    length = 0
    while length < size:
        kind = rng.random()
        if kind < 0.35:
            part = " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 12))) + rng.choice(["", ".", ", ", "! ", "\n", "'s ", "?"])
            if rng.random() < 0.2:
                part = part.title() if rng.random() < 0.5 else part.upper()
        elif kind < 0.5:
            part = rng.choice(CODE)
        elif kind < 0.55:
            part = rng.choice([" ", "\n", "\t", "\r\n"]) * rng.randint(1, 9)
        elif kind < 0.6:
            part = str(rng.randrange(10 ** rng.randint(1, 12)))
        elif kind < 0.63:
            part = rng.randbytes(rng.randint(1, 12)).decode("utf-8", errors="replace")
        else:
            block = BLOCKS[rng.choice(list(BLOCKS))]
            part = "".join(rng.choice(block) for _ in range(rng.randint(1, 10)))
            if rng.random() < 0.3:
                part = unicodedata.normalize(rng.choice(["NFD", "NFC", "NFKD"]), part)
        parts.append(part)
        length += len(part)
    return "".join(parts)


def rhea_lines(command, values):
    with tempfile.TemporaryFile() as file:
        file.write("".join(json.dumps(value) + "\n" for value in values).encode())
        file.seek(0)
        run = subprocess.run(command, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if run.returncode != 0:
        raise RuntimeError("%s: %s" % (" ".join(command), run.stderr.decode(errors="replace")[-2000:]))
    return [json.loads(line) for line in run.stdout.decode().split("\n")[:-1]]


def first_difference(name, text, expected, found):
    at = next((i for i, (a, b) in enumerate(zip(expected, found)) if a != b), min(len(expected), len(found)))
    return "%s: %r\n  at %d expected %r\n  found %r" % (name, text[:300], at, expected[max(0, at - 3):at + 12], found[max(0, at - 3):at + 12])


def functions_of(tokenizer, specials):
    """Texts to ids, ids to text."""
    return (lambda texts: [e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=specials)],
            lambda ids: tokenizer.decode(ids, skip_special_tokens=False))


def compare_texts(rhea, name, path, functions, texts, words):
    """Ids, and the text of the ids. `functions` of the reference: texts to ids, ids to text. `words`: options of Rhea's encode. Returns the problems."""
    encode, decode = functions
    problems = []
    command = [rhea, "tokenizer", "encode", "--jsonl", "--tokenizer", path] + words
    expected = encode(texts)
    for text, a, b in zip(texts, expected, rhea_lines(command, texts), strict=True):
        if a != b:
            problems.append(first_difference(name + " ids", text, a, b))
    command = [rhea, "tokenizer", "decode", "--jsonl", "--no_specials", "--tokenizer", path]
    for text, ids, b in zip(texts, expected, rhea_lines(command, expected), strict=True):
        a = decode(ids)
        if a != b:
            problems.append(first_difference(name + " text", text, a, b))
    return problems


# How the package writes the cuts of Llama 3, whose file of ranks does not hold them.
LLAMA3_CUTS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
               r"|\s+(?!\S)|\s+")


def tiktoken_encoding(path, data):
    import tiktoken
    if not data.startswith(b"{"):
        ranks = {base64.b64decode(word): int(rank) for word, rank in map(bytes.split, data.splitlines())}
        return tiktoken.Encoding("file", pat_str=LLAMA3_CUTS, mergeable_ranks=ranks, special_tokens={})
    parts = json.loads(data)
    ranks, rank, words = {}, 0, iter(parts["bpe_ranks"].split())
    for word in words:
        if word == "!":
            rank = int(next(words))
        else:
            ranks[base64.b64decode(word)] = rank
            rank += 1
    return tiktoken.Encoding("file", pat_str=parts["pat_str"], mergeable_ranks=ranks, special_tokens=parts["special_tokens"])


def reference(path):
    """What to give Rhea, the name and version of the reference, and its functions."""
    package = "tokenizers " + tokenizers.__version__
    if os.path.isdir(path):
        file = os.path.join(path, "tokenizer.json")
        if os.path.exists(file):
            return file, package, functions_of(Tokenizer.from_file(file), specials=False)
        import transformers
        tokenizer = transformers.AutoTokenizer.from_pretrained(path).backend_tokenizer
        return path, "transformers " + transformers.__version__, functions_of(tokenizer, specials=False)
    with open(path, "rb") as file:
        data = file.read()
    if b'"bpe_ranks"' in data[:4096] or data.splitlines()[0].split()[-1:] == [b"0"]:
        import tiktoken
        encoding = tiktoken_encoding(path, data)
        encode = lambda texts: [encoding.encode(text, allowed_special="all") for text in texts]
        return path, "tiktoken " + tiktoken.__version__, (encode, encoding.decode)
    if path.endswith(".json"):
        return path, package, functions_of(Tokenizer.from_file(path), specials=False)
    import sentencepiece
    model = sentencepiece.SentencePieceProcessor(model_file=path)
    return path, "sentencepiece " + sentencepiece.__version__, (model.encode, model.decode)


def compare(args):
    rng = random.Random(7)
    sources = []
    for name in args.text:
        with open(name, "rb") as file:
            data = file.read()
        # Broken UTF-8 on purpose: cut anywhere, bytes turned over.
        sources += [data[i:i + 8000] for i in range(0, len(data), 8000)]
    rng.shuffle(sources)
    documents, size = [], 0
    while size < args.megabytes * 1e6:
        if sources and len(documents) % 2 == 0:
            data = bytearray(sources.pop())
            for _ in range(rng.choice([0, 0, 3])):
                data[rng.randrange(len(data))] = rng.randrange(256)
            text = bytes(data).decode("utf-8", errors="replace")
        else:
            text = random_text(rng, 4000)
        documents.append(text)
        size += len(text.encode())
    bad = 0
    for path in args.tokenizers:
        given, package, functions = reference(path)
        # SentencePiece itself takes "<s>" in a text for text.
        words = ["--no_specials"] + (["--plain"] if package.startswith("sentencepiece") else [])
        problems = compare_texts(args.rhea, path, given, functions, documents, words)
        print("%s: %s, %d documents, %.1f MB, %d differences" % (path, package, len(documents), size / 1e6, len(problems)), flush=True)
        for problem in problems[:3]:
            print(problem)
        bad += len(problems)
    return bad


def random_normalizer(rng, depth=0):
    make = [lambda: normalizers.NFC(), lambda: normalizers.NFD(), lambda: normalizers.NFKC(), lambda: normalizers.NFKD(),
            lambda: normalizers.Lowercase(), lambda: normalizers.StripAccents(), lambda: normalizers.Nmt(),
            lambda: normalizers.Strip(rng.random() < 0.5, rng.random() < 0.5),
            lambda: normalizers.Replace(rng.choice([" ", "e", "the", "\u00e9", "  "]), rng.choice(["", "_", "\u2581", "xy"])),
            lambda: normalizers.Replace(Regex(rng.choice([" {2,}", "[0-9]+", "\\s+", "\\w+ing\\b", "(?i)th", "x*", "^.", "$"])), rng.choice(["", " ", "#"])),
            lambda: normalizers.Prepend(rng.choice(["\u2581", "^"])), lambda: normalizers.ByteLevel(),
            lambda: normalizers.BertNormalizer(rng.random() < 0.7, rng.random() < 0.7, rng.choice([None, True, False]), rng.random() < 0.7)]
    if depth < 2 and rng.random() < 0.3:
        return normalizers.Sequence([random_normalizer(rng, depth + 1) for _ in range(rng.randint(0, 3))])
    return rng.choice(make)()


def random_pre_tokenizer(rng, depth=0):
    behavior = rng.choice(["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"])
    patterns = ["\\s+", "\\w+", "[^\\w\\s]+", "\\d", "\\p{L}+", "x*", " ", "\\b", "[aeiou]", "\\s+(?!\\S)|\\s+", "\\p{N}{1,3}",
                "[\\W_]+", "(?i:'s|'t)", "[[:alpha:]]+", "^\\S", ".$", "\\W"]
    make = [lambda: pre_tokenizers.BertPreTokenizer(), lambda: pre_tokenizers.Whitespace(), lambda: pre_tokenizers.WhitespaceSplit(),
            lambda: pre_tokenizers.ByteLevel(rng.random() < 0.5, True, rng.random() < 0.5),
            lambda: pre_tokenizers.Digits(rng.random() < 0.5), lambda: pre_tokenizers.Punctuation(behavior),
            lambda: pre_tokenizers.Metaspace(rng.choice(["\u2581", "_"]), rng.choice(["always", "first", "never"]), rng.random() < 0.6),
            lambda: pre_tokenizers.Split(Regex(rng.choice(patterns)), behavior, rng.random() < 0.3),
            lambda: pre_tokenizers.Split(rng.choice([" ", "e", ".", "\n", "th"]), behavior, rng.random() < 0.3),
            lambda: pre_tokenizers.CharDelimiterSplit(rng.choice(" e.,\u2581")), lambda: pre_tokenizers.UnicodeScripts(),
            lambda: pre_tokenizers.FixedLength(rng.randint(1, 7))]
    if depth < 2 and rng.random() < 0.4:
        return pre_tokenizers.Sequence([random_pre_tokenizer(rng, depth + 1) for _ in range(rng.randint(1, 3))])
    return rng.choice(make)()


def random_decoder(rng, depth=0):
    make = [lambda: decoders.ByteLevel(), lambda: decoders.ByteFallback(), lambda: decoders.Fuse(),
            lambda: decoders.WordPiece(rng.choice(["##", "@"]), rng.random() < 0.6),
            lambda: decoders.Metaspace("\u2581", rng.choice(["always", "first", "never"]), rng.random() < 0.5),
            lambda: decoders.BPEDecoder(rng.choice(["</w>", "e"])), lambda: decoders.CTC("e", "a", rng.random() < 0.5),
            lambda: decoders.Replace(rng.choice(["\u2581", "e", Regex("[aeiou]+")]), rng.choice(["", " ", "*"])),
            lambda: decoders.Strip(rng.choice([" ", "e", "t"]), rng.randint(0, 1), 0)]
    if depth < 2 and rng.random() < 0.4:
        return decoders.Sequence([random_decoder(rng, depth + 1) for _ in range(rng.randint(1, 4))])
    return rng.choice(make)()


def random_post_processor(rng, special):
    a, b = special
    make = [lambda: processors.ByteLevel(), lambda: processors.BertProcessing(a, b), lambda: processors.RobertaProcessing(a, b),
            lambda: processors.TemplateProcessing(single=rng.choice(["%s $A", "$A %s", "%s %s $A %s"]).replace("%s", a[0]), special_tokens=[a]),
            lambda: processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(single=b[0] + " $A " + a[0], special_tokens=[a, b])])]
    return rng.choice(make)()


def train(rng, kind, texts, normalizer, pre_tokenizer, small):
    byte_fallback = rng.random() < 0.3 and not small
    unknown = rng.choice(["<unk>", None])
    if kind == "Unigram":
        unknown = "<unk>"
        tokenizer = Tokenizer(models.Unigram())
        trainer = trainers.UnigramTrainer(vocab_size=120 if small else rng.choice([150, 400]), unk_token=unknown, special_tokens=["<unk>"],
                                          show_progress=False, max_piece_length=8)
    elif kind == "WordPiece":
        unknown = "<unk>"
        tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>", max_input_chars_per_word=rng.choice([100, 6])))
        trainer = trainers.WordPieceTrainer(vocab_size=150 if small else rng.choice([300, 800]), special_tokens=["<unk>"], show_progress=False,
                                            limit_alphabet=40 if small else rng.choice([40, 300]), continuing_subword_prefix=rng.choice(["##", "@"]))
    elif kind == "WordLevel":
        unknown = "<unk>"
        tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
        trainer = trainers.WordLevelTrainer(vocab_size=100 if small else 500, special_tokens=["<unk>"], show_progress=False)
    else:
        options = {"unk_token": unknown, "fuse_unk": rng.random() < 0.5, "byte_fallback": byte_fallback,
                   "ignore_merges": rng.random() < 0.3}
        affixes = {}
        if rng.random() < 0.3:
            affixes["continuing_subword_prefix"] = rng.choice(["##", "@"])
        if rng.random() < 0.3:
            affixes["end_of_word_suffix"] = rng.choice(["</w>", "$"])
        tokenizer = Tokenizer(models.BPE(**options, **affixes))
        trainer = trainers.BpeTrainer(vocab_size=120 if small else rng.choice([200, 700]), special_tokens=["<unk>"] if unknown else [], show_progress=False,
                                      limit_alphabet=60 if small else rng.choice([60, 300]), **affixes,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if rng.random() < 0.5 and not small else [])
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(texts, trainer)
    saved = json.loads(tokenizer.to_str())
    if byte_fallback and kind in ("BPE", "Unigram"):
        saved["model"]["byte_fallback"] = True
        vocab = saved["model"]["vocab"]
        for i in range(256):
            if kind == "BPE":
                vocab.setdefault("<0x%02X>" % i, len(vocab))
            else:
                vocab.append(["<0x%02X>" % i, -12.0])
    return saved


def random_tokenizer(rng, kind=None, small=False):
    """The text of a tokenizer.json."""
    kind = kind or rng.choice(["BPE", "BPE", "Unigram", "WordPiece", "WordLevel"])
    texts = CODE + ["\u00c9t\u00e9 \u4f60\u597d"] if small else [random_text(rng, 300) for _ in range(12)]
    texts += [" ".join(rng.choice(WORDS) for _ in range(60)) for _ in range(12)]
    normalizer = random_normalizer(rng) if rng.random() < 0.6 else None
    pre_tokenizer = random_pre_tokenizer(rng) if rng.random() < 0.8 else None
    decoder = random_decoder(rng) if rng.random() < 0.8 else None
    if "=first" in str(pre_tokenizer) and ("ByteLevel" in str(normalizer) or "Prepend" in str(normalizer)):
        # Rhea's Metaspace takes what these normalizers make of the first character for characters of the text.
        pre_tokenizer = None
    saved = train(rng, kind, texts, normalizer, pre_tokenizer, small)
    tokenizer = Tokenizer.from_str(json.dumps(saved))
    tokenizer.decoder = decoder
    # None of them in letters of the byte alphabet beyond ASCII: the package decodes such tokens to other bytes.
    names = ["<s>", "</s>"] + rng.sample(["the", "ing", " a", "\u4f60\u597d", "\n\n", "<|x|>", "E", "  ", "in"], rng.randint(0, 4))
    for name in names:
        flags = {flag: rng.random() < 0.3 for flag in ("lstrip", "rstrip", "single_word", "normalized")}
        # A token that its normalizer makes empty would cut the package's text anywhere, inside characters too.
        flags["normalized"] = flags["normalized"] and not name.isspace()
        token = AddedToken(name, **flags)
        if name.startswith("<"):
            tokenizer.add_special_tokens([token])
        else:
            tokenizer.add_tokens([token])
    if rng.random() < 0.6:
        pairs = [(name, tokenizer.token_to_id(name)) for name in names[:2]]
        tokenizer.post_processor = random_post_processor(rng, pairs)
    return tokenizer.to_str()


def test_texts(rng, count):
    texts = ["", " ", "  the", "the <s> and</s> in", "a  b", "\n\nx", "\u00c9t\u00e9 ete\u0301", "\u2581x y"]
    return texts + [random_text(rng, rng.randint(1, 120)) for _ in range(count - len(texts))]


def survives(function, value):
    try:
        function(value)
        return True
    except KeyboardInterrupt:
        raise
    except BaseException:  # a panic of the package is no Exception
        return False


def usable(tokenizer, texts):
    """Texts that the package itself can encode and decode."""
    return [text for text in texts if survives(lambda t: tokenizer.decode(tokenizer.encode(t).ids), text)]


def random_rounds(args):
    bad = 0
    for number in range(args.count):
        rng = random.Random(args.seed * 1000003 + number)
        try:
            saved = random_tokenizer(rng)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a panic of the package is no Exception
            print("%d: not built: %s" % (number, str(error)[:100]))
            continue
        tokenizer = Tokenizer.from_str(saved)
        texts = usable(tokenizer, test_texts(rng, 120))
        with tempfile.NamedTemporaryFile("w", suffix=".json", dir=args.keep) as file:
            file.write(saved)
            file.flush()
            try:
                problems = []
                for specials in (False, True):
                    problems += compare_texts(args.rhea, str(number), file.name, functions_of(tokenizer, specials), texts,
                                              [] if specials else ["--no_specials"])
            except RuntimeError as error:
                problems = [str(error)]
        if problems:
            bad += 1
            parts = json.loads(saved)
            print("%d: %d of %d differ" % (number, len(problems), len(texts)))
            print(" ", {k: v for k, v in parts["model"].items() if k not in ("vocab", "merges")})
            for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder", "added_tokens"):
                print("  %s %s" % (part, json.dumps(parts[part])[:700]))
            for problem in problems[:2]:
                print(problem, flush=True)
    print("%d tokenizers, %d with differences" % (args.count, bad))
    return bad


def charsmap(replacements):
    """A table as SentencePiece writes it: a double-array trie of the keys, then the replacements."""
    pool = bytearray()
    starts = {}
    for key in sorted(replacements):
        starts[key] = len(pool)
        pool += replacements[key].encode() + b"\0"
    units, used = {0: 0}, {0}

    def place(node, keys, depth):
        labels = sorted({key[depth] if len(key) > depth else 0 for key in keys})
        base = next(b for b in range(1, 1 << 16) if all((b ^ label) not in used for label in labels) and (b ^ node) < 1 << 16)
        used.update(base ^ label for label in labels)
        units[node] = units.get(node, 0) | (base ^ node) << 10 | (0x100 if 0 in labels else 0)
        for label in labels:
            child = base ^ label
            if label == 0:
                units[child] = 0x80000000 | starts[next(key for key in keys if len(key) == depth)]
            else:
                units[child] = label
                place(child, [key for key in keys if len(key) > depth and key[depth] == label], depth + 1)

    # The value of a node lies at its child 0, so the offset of each node is relative to itself.
    place(0, sorted(replacements), 0)
    size = (max(units) | 0xff) + 1
    trie = b"".join(units.get(i, 0).to_bytes(4, "little") for i in range(size))
    return base64.b64encode(len(trie).to_bytes(4, "little") + trie + bytes(pool)).decode()


def golden_components():
    table = charsmap({"\u00a0".encode(): " ", "\ufb01".encode(): "fi", b"\r": " ", "\uff21".encode(): "A", "\u2460".encode(): "1"})
    flags = [False, True]
    normal = [{"type": name} for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel")]
    normal += [{"type": "Strip", "strip_left": a, "strip_right": b} for a in flags for b in flags]
    normal += [{"type": "BertNormalizer", "clean_text": a, "handle_chinese_chars": b, "strip_accents": c, "lowercase": d}
               for a in flags for b in flags for c in (None, False, True) for d in flags]
    normal += [{"type": "Replace", "pattern": pattern, "content": content}
               for pattern in ({"String": " "}, {"String": "e"}, {"Regex": " {2,}"}, {"Regex": "\\w+"}, {"Regex": "x*"}, {"Regex": "^."},
                               {"Regex": "(?i)TH"}, {"Regex": "[^\\W\\d]"}, {"Regex": "\\h+"}, {"Regex": "\\bt"})
               for content in ("", "\u2581", "ab")]
    normal += [{"type": "Prepend", "prepend": "\u2581"}, {"type": "Precompiled", "precompiled_charsmap": table},
               {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]}]
    behaviors = ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
    cut = [{"type": name} for name in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts")]
    cut += [{"type": "ByteLevel", "add_prefix_space": a, "trim_offsets": True, "use_regex": b} for a in flags for b in flags]
    cut += [{"type": "Digits", "individual_digits": a} for a in flags]
    cut += [{"type": "Punctuation", "behavior": b} for b in behaviors]
    cut += [{"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": a, "split": b} for a in ("always", "first", "never") for b in flags]
    cut += [{"type": "Split", "pattern": pattern, "behavior": b, "invert": invert}
            for pattern in ({"String": " "}, {"Regex": "\\s+"}, {"Regex": "\\p{L}+"}, {"Regex": "x*"}, {"Regex": "[\\W_]"})
            for b in behaviors for invert in flags]
    cut += [{"type": "CharDelimiterSplit", "delimiter": "e"}, {"type": "FixedLength", "length": 3}]
    split = {"type": "WhitespaceSplit"}
    cut += [{"type": "Sequence", "pretokenizers": [split, {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True}]},
            {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
                                                   {"type": "Digits", "individual_digits": True}]}]
    # What stems from the first character begins the text, wherever it is cut.
    first = [{"type": "FixedLength", "length": 1}, {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True}]
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False}
    cut += [{"type": "Sequence", "pretokenizers": before + first}
            for before in ([byte_level], [dict(byte_level, add_prefix_space=False)], [byte_level, byte_level], [split, byte_level],
                           [{"type": "Metaspace", "replacement": "_", "prepend_scheme": "always", "split": False}])]
    decode = [{"type": name} for name in ("ByteFallback", "Fuse")]
    decode += [{"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}]
    decode += [{"type": "WordPiece", "prefix": "##", "cleanup": a} for a in flags]
    decode += [{"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": a, "split": True} for a in ("always", "first", "never")]
    decode += [{"type": "BPEDecoder", "suffix": "</w>"}]
    decode += [{"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": a} for a in flags]
    decode += [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "Replace", "pattern": {"Regex": "[0-9]+"}, "content": "#"}]
    decode += [{"type": "Strip", "content": " ", "start": a, "stop": b} for a in (0, 1, 2) for b in (0, 1)]
    decode += [{"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
                                                 {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
               {"type": "Sequence", "decoders": []}]
    return normal, cut, decode


GOLDEN_TEXTS = ["", " ", "The  quick brown fox, isn't it?\n", "  \u00c9t\u00e9 E\u0301te\u0301 ", "x1234\u0663 \u00bd\u2460 xx_y", "a\tb\r\nc\u00a0d\u3000e\u2028f",
                "\u4f60\u597d\u3053\u3093\u30cb\u30fc \ud55c\uad6d\uc5b4 \u0645\u0631\u062d\u0628\u0627", "\ufb01 \uff21\u2460\u01c5 \u0130\u03a3\u03c2\u00df", "\u0001\u007f\u200b\ufeff\u00ad\ufffd",
                "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea!", "\u2581x \u2581\u2581y", "don't, we'LL <s>...</s>", "\u0939\u093f\u0928\u094d\u0926\u0940 \u0e44\u0e17\u0e22", "face 0xBEEF the Three TH"]
GOLDEN_TOKENS = [[], ["\u2581The", "\u2581quick", "##er", "ed", "."], ["a", "a", "<pad>", "a", "|", "b", " do not", " n't"], ["<0xE4>", "<0xBD>", "<0xA0>", "<0xFF>", "x", "<0xE4>"],
                 ["Hello</w>", "wor", "ld</w>", "!</w>"], ["\u0120a", "\u010a", "\u00e9", "\u00c3\u00a9", "\u4f60"], ["  a ", " b  ", " ", "12c3"], ["\u2581\u2581", " .", "it", " 's"]]


def goldens(args):
    normal, cut, decode = golden_components()
    empty = lambda **parts: Tokenizer.from_str(json.dumps(dict(
        {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
         "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}, **parts)))
    result = {"made_with": "tokenizers " + tokenizers.__version__, "normalizers": [], "pre_tokenizers": [], "decoders": [], "tokenizers": []}
    for component in normal:
        step = empty(normalizer=component).normalizer
        result["normalizers"].append({"component": component, "cases": [[text, step.normalize_str(text)] for text in GOLDEN_TEXTS]})
    for component in cut:
        step = empty(pre_tokenizer=component).pre_tokenizer
        cases = [[text, [piece for piece, _ in step.pre_tokenize_str(text)]] for text in GOLDEN_TEXTS if text]
        result["pre_tokenizers"].append({"component": component, "cases": cases})
    for component in decode:
        step = empty(decoder=component).decoder
        result["decoders"].append({"component": component, "cases": [[tokens, step.decode(tokens)] for tokens in GOLDEN_TOKENS
                                                                     if survives(step.decode, tokens)]})
    for number in range(24):
        rng = random.Random(number)
        saved = random_tokenizer(rng, kind=["BPE", "Unigram", "WordPiece", "WordLevel", "BPE", "BPE"][number % 6], small=True)
        tokenizer = Tokenizer.from_str(saved)
        limits = json.loads(saved)
        if number % 3 == 0:
            tokenizer.enable_truncation(9, direction=rng.choice(["left", "right"]))
            tokenizer.enable_padding(direction=rng.choice(["left", "right"]), pad_id=1, pad_token="x", length=rng.choice([None, 12]), pad_to_multiple_of=rng.choice([None, 8]))
            limits = json.loads(tokenizer.to_str())
        plain = Tokenizer.from_str(saved)
        cases = [{"text": text, "ids": plain.encode(text, add_special_tokens=False).ids, "with_specials": plain.encode(text).ids,
                  "limited": tokenizer.encode(text).ids, "decoded": plain.decode(plain.encode(text).ids, skip_special_tokens=False)}
                 for text in usable(plain, GOLDEN_TEXTS)]
        result["tokenizers"].append({"json": limits, "cases": cases})
    result["trained"] = []
    for number in range(6):
        rng = random.Random(100 + number)
        letters = "abc" if number < 3 else "abcdefgh \u00e9"
        documents = ["".join(rng.choice(letters) for _ in range(rng.randint(5, 60))) for _ in range(20)] + [random_text(rng, 300)]
        size, frequency = rng.choice([290, 330]), rng.choice([0, 2, 3])
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.train_from_iterator(documents, trainers.BpeTrainer(
            vocab_size=size, min_frequency=frequency, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        model = json.loads(tokenizer.to_str())["model"]
        result["trained"].append({"documents": documents, "vocab_size": size, "min_frequency": frequency, "merges": model["merges"],
                                  "tokens": sorted(model["vocab"], key=model["vocab"].get)})
    with open(args.output, "w") as file:
        json.dump(result, file, separators=(",", ":"))
        file.write("\n")
    return 0


def main():
    os.environ["RUST_BACKTRACE"] = "0"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    part = commands.add_parser("compare")
    part.add_argument("--rhea", required=True)
    part.add_argument("--megabytes", type=float, default=20)
    part.add_argument("--text", nargs="*", default=[])
    part.add_argument("tokenizers", nargs="+")
    part = commands.add_parser("random")
    part.add_argument("--rhea", required=True)
    part.add_argument("--count", type=int, default=200)
    part.add_argument("--seed", type=int, default=1)
    part.add_argument("--keep", help="folder for the files under test")
    part = commands.add_parser("goldens")
    part.add_argument("--output", required=True)
    args = parser.parse_args()
    run = {"compare": compare, "random": random_rounds, "goldens": goldens}[args.command]
    sys.exit(1 if run(args) else 0)


if __name__ == "__main__":
    main()
