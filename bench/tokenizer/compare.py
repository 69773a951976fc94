#!/usr/bin/env python3
"""Rhea's tokenizers beside the PyPI package `tokenizers`: encode and train, in turns, best of some rounds.

  compare.py --bench build/bench/bench/tokenizer --text FILE [--threads 1 2] [--rounds 3] TOKENIZER ...

FILE is cut into documents of 4,000 characters. The package runs encode_batch_fast, which keeps no offsets. Both sides print a
SHA-256 of all ids, document by document, outside of the time taken; every round's must be the same, or the script ends with
code 1. Training compares the merges as well; without --train-entries it is left out.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

PACKAGE = """
import array, hashlib, json, sys, time
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
documents = [json.loads(line) for line in open(sys.argv[2])]
if sys.argv[1] == "train":
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=int(sys.argv[3]), min_frequency=0, show_progress=False, special_tokens=[],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    begin = time.perf_counter()
    tokenizer.train_from_iterator(documents, trainer)
    print(json.dumps({"seconds": time.perf_counter() - begin, "merges": json.loads(tokenizer.to_str())["model"]["merges"]}))
else:
    tokenizer = Tokenizer.from_file(sys.argv[3])
    begin = time.perf_counter()
    encodings = tokenizer.encode_batch_fast(documents, add_special_tokens=False)
    seconds = time.perf_counter() - begin
    digest, count = hashlib.sha256(), 0
    for encoding in encodings:
        ids = encoding.ids
        digest.update(array.array("i", [len(ids)] + ids).tobytes())
        count += len(ids)
    print(json.dumps({"seconds": seconds, "tokens": count, "digest": digest.hexdigest()}))
"""


def run(command, threads=None):
    environment = dict(os.environ)
    if threads is not None:
        environment.update(RAYON_NUM_THREADS=str(threads), TOKENIZERS_PARALLELISM="true" if threads > 1 else "false")
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--train-entries", type=int, default=0)
    parser.add_argument("tokenizers", nargs="*")
    args = parser.parse_args()
    with open(args.text, encoding="utf-8", errors="replace") as file:
        text = file.read()
    documents = [text[i:i + 4000] for i in range(0, len(text), 4000)]
    size = len(text.encode()) / 1e6
    bad = 0
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("".join(json.dumps(document) + "\n" for document in documents))
        file.flush()
        package = [sys.executable, "-c", PACKAGE]
        for path in args.tokenizers:
            path = os.path.join(path, "tokenizer.json") if os.path.isdir(path) else path
            for threads in args.threads:
                ours, theirs = [], []
                for _ in range(args.rounds):
                    ours.append(run([args.bench, "encode", path, file.name, str(threads)]))
                    theirs.append(run(package + ["encode", file.name, path], threads))
                same = len({result["digest"] for result in ours + theirs}) == 1
                bad += not same
                a, b = (size / min(r["seconds"] for r in results) for results in (ours, theirs))
                print("%-40s %d threads: Rhea %7.1f MB/s, tokenizers %6.1f MB/s, %.1f times; %s (%d and %d)" % (
                    os.path.basename(os.path.dirname(path)), threads, a, b, a / b, "same ids" if same else "IDS DIFFER",
                    ours[0]["tokens"], theirs[0]["tokens"]), flush=True)
        if args.train_entries:
            for threads in args.threads:
                ours, theirs = [], []
                for _ in range(args.rounds):
                    ours.append(run([args.bench, "train", str(args.train_entries), file.name]))
                    theirs.append(run(package + ["train", file.name, str(args.train_entries)], threads))
                same = ours[0]["merges"] == [list(pair) for pair in theirs[0]["merges"]]
                bad += not same
                a, b = (min(r["seconds"] for r in results) for results in (ours, theirs))
                print("train %d entries: Rhea %.2f s, tokenizers on %d threads %.2f s; merges %s (%d)" % (
                    args.train_entries, a, threads, b, "equal" if same else "DIFFER", len(ours[0]["merges"])), flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
