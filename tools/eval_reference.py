#!/usr/bin/env python3
"""Perplexity of a model on documents as Transformers computes it, beside `rhea eval`.

  eval_reference.py --rhea BIN --model DIR --text FILE [--seq_len 128] [--stride 64]

FILE holds documents between blank lines (data set `text`). The windows are those of Transformers' guide for models of
fixed length, with max_length = seq_len + 1: seq_len tokens go in, each predicts the next one. Needs torch, transformers.
Ends with code 1 where the sums of losses differ by more than 1e-5 of themselves.
"""
import argparse
import math
import re
import subprocess
import sys

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM


def reference(model, documents, seq_len, stride):
    total, count = 0.0, 0
    for ids in documents:
        end_before = 1
        for begin in range(0, len(ids), stride):
            end = min(begin + seq_len + 1, len(ids))
            window = torch.tensor([ids[begin:end]])
            labels = window.clone()
            labels[:, :end_before - begin] = -100
            logits = model(window).logits[0, :-1].float()
            targets = labels[0, 1:]
            loss = torch.nn.functional.cross_entropy(logits.double(), targets, ignore_index=-100, reduction="sum")
            total += float(loss)
            count += int((targets != -100).sum())
            end_before = end
            if end == len(ids):
                break
    return total, count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rhea", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--seq_len", type=int, default=128)
    parser.add_argument("--stride", type=int, default=64)
    args = parser.parse_args()
    tokenizer = Tokenizer.from_file(args.model + "/tokenizer.json")
    with open(args.text, encoding="utf-8") as file:
        texts = [text for text in re.split(r"\n(?:[ \t]*\n)+", file.read().strip("\n")) if text.strip()]
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    with torch.no_grad():
        total, count = reference(model, [tokenizer.encode(text).ids for text in texts], args.seq_len, args.stride)
    size = sum(len(text.encode()) for text in texts)
    words = [args.rhea, "eval", "--model", args.model, "--dataset", "text", "--dataset_path", args.text,
             "--seq_len", str(args.seq_len), "--stride", str(args.stride)]
    output = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout.decode()
    print(output, end="")
    found = dict(re.findall(r"^(\S.*\S)\s{2,}(\S+)$", output, re.MULTILINE))
    print("Transformers: documents %d, bytes %d, tokens %d, loss %.6f, perplexity %.4f, per byte %.6f" % (
        len(texts), size, count, total / count, math.exp(total / count), math.exp(total / size)))
    same = (int(found["documents"]), int(found["bytes"]), int(found["tokens"])) == (len(texts), size, count)
    difference = abs(float(found["loss per token"]) - total / count)
    print("same counts: %s, difference of the loss: %.1e" % (same, difference))
    sys.exit(0 if same and difference <= 1e-5 * total / count else 1)


if __name__ == "__main__":
    main()
