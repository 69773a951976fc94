#!/usr/bin/env python3
"""Logits of the model folders against Transformers, which reads the GGUF file by itself.

usage: compare.py FILE.gguf FOLDER    FOLDER is that of run.sh; needs torch, transformers, gguf
"""
import os
import subprocess
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

TEXT = "Beware of bugs in the above code; I have only proved it correct, not tried it.\n" * 8


def rhea_logits(model, ids, folder):
    source, target = (os.path.join(folder, name) for name in ("ids.safetensors", "out.safetensors"))
    save_file({"input_ids": ids}, source)
    program = os.environ.get("RHEA", os.path.join(os.path.dirname(__file__), "../../rhea"))
    subprocess.run([program, "score", "--model", model, "--input", source, "--output", target],
                   check=True)
    return load_file(target)["logits"]


def compare(name, reference, ours):
    difference = (reference - ours).abs().max().item() / reference.abs().max().item()
    same = (reference.argmax(-1) == ours.argmax(-1)).float().mean().item()
    print(f"{name}: largest difference of logits {difference:.1e} of the largest logit, "
          f"{100 * same:.2f} % of the likeliest tokens equal")
    return difference < 1e-4


def main():
    gguf, folder = (os.path.abspath(path) for path in sys.argv[1:])
    tokenizer = AutoTokenizer.from_pretrained(os.path.join(folder, "model"))
    ids = tokenizer(TEXT, return_tensors="pt").input_ids[:, :128].contiguous()
    good = True
    trained = os.path.join(folder, "run/checkpoint/step-30")
    for name, ours, arguments in (
            ("GGUF file", os.path.join(folder, "model"),
             {"pretrained_model_name_or_path": os.path.dirname(gguf),
              "gguf_file": os.path.basename(gguf)}),
            ("export", trained, {"pretrained_model_name_or_path": trained,
                                 "output_loading_info": True})):
        model = AutoModelForCausalLM.from_pretrained(**arguments, dtype=torch.float32,
                                                     attn_implementation="eager")
        if isinstance(model, tuple):
            model, info = model
            for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
                print(f"{name}: {kind} {sorted(info[kind])}")
                good = good and not info[kind]
        with torch.no_grad():
            reference = model(ids).logits
        good = compare(name, reference, rhea_logits(ours, ids, folder)) and good
    sys.exit(0 if good else 1)


main()
