#!/usr/bin/env python3
"""Holds longpole-qwen3 against PyTorch and transformers on the same seeded weights, on one GPU.

    compare.py PROGRAM MODEL [--tokens 64] [--speed]

Weights are made by the formula of src/random.rs, so nothing is downloaded or stored. Three models see the same tokens, teacher-forced:
transformers in 32 bits (the reference), transformers in bfloat16, and the program in both variants. Printed are relative errors of logits,
and how often the most likely token is that of the reference, of all and where the reference's lead exceeds four times the measured error. Fine
is an error below a hundredth at every position, no wrong token where the lead is clear, and no fewer right tokens than transformers has
in bfloat16 at the same positions.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

import torch
import transformers
from transformers import Qwen3Config, Qwen3ForCausalLM

SIZES = {
    "Qwen3-0.6B": dict(hidden_size=1024, num_hidden_layers=28, num_attention_heads=16, intermediate_size=3072),
    "Qwen3-4B": dict(hidden_size=2560, num_hidden_layers=36, num_attention_heads=32, intermediate_size=9728),
}
MASK = 0xFFFFFFFF


def mixed(bits):
    bits = bits ^ (bits >> 16)
    bits = (bits * 0x85EBCA6B) & MASK
    bits = bits ^ (bits >> 13)
    bits = (bits * 0xC2B2AE35) & MASK
    return bits ^ (bits >> 16)


def name_hash(name):
    value = 0x811C9DC5
    for byte in name.encode():
        value = ((value ^ byte) * 0x01000193) & MASK
    return value


def fill(name, tensor):
    """The numbers of a weight of this name: see Spread::of_weight."""
    norm = name.endswith("norm.weight")
    middle, half = (1.0, 0.25) if norm else (0.0, torch.tensor(0.02).item() * torch.tensor(1.7320508).item())
    half = torch.tensor(half, dtype=torch.float32, device=tensor.device)
    offset = (name_hash(name) * 0x9E3779B1) & MASK
    flat = tensor.view(-1)
    piece = 1 << 25
    for begin in range(0, flat.numel(), piece):
        end = min(begin + piece, flat.numel())
        at = torch.arange(begin, end, dtype=torch.int64, device=tensor.device)
        bits = mixed((at + offset) & MASK)
        even = (bits >> 8).to(torch.float32) * (1.0 / 8388608.0) - 1.0
        flat[begin:end] = (even * half + middle).to(torch.bfloat16).to(tensor.dtype)


def model_of(size, dtype):
    config = Qwen3Config(
        **SIZES[size], num_key_value_heads=8, head_dim=128, vocab_size=151936, max_position_embeddings=40960,
        rms_norm_eps=1e-6, rope_theta=1e6, tie_word_embeddings=True, attention_bias=False,
    )
    # Newer versions keep the base of the frequencies in an object.
    if getattr(config, "rope_parameters", None) is not None:
        config.rope_parameters = {"rope_type": "default", "rope_theta": 1e6}
    config._attn_implementation = "eager" if dtype == torch.float32 else "sdpa"
    with torch.device("cuda"):
        previous = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            model = Qwen3ForCausalLM(config)
        finally:
            torch.set_default_dtype(previous)
    model.eval()
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            fill(name, tensor)
    return model


def tokens_of(count, vocabulary=151936, seed=1):
    at = torch.arange(count, dtype=torch.int64)
    return mixed((at + seed * 0x9E3779B1) & MASK) % vocabulary


def report(label, logits, reference):
    error = (logits - reference).norm(dim=1) / reference.norm(dim=1)
    rms = (logits - reference).pow(2).mean(dim=1).sqrt()
    top = reference.topk(2, dim=1).values
    clear = (top[:, 0] - top[:, 1]) > 4 * rms
    same = logits.argmax(dim=1) == reference.argmax(dim=1)
    wrong = int((clear & ~same).sum())
    print(f"{label:<24} error {error.mean():.5f} mean {error.max():.5f} max   argmax equal {int(same.sum())}/{len(same)}, "
          f"{wrong} wrong of {int(clear.sum())} clear")
    return error.max().item(), wrong, int(same.sum())


def timed(work, repeats):
    work()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(repeats):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / repeats


def replayed(model, prompt):
    """Seconds of a decode step after the prompt that is captured into a CUDA graph with its static cache and replayed."""
    cache = transformers.StaticCache(config=model.config, max_cache_len=2048)
    token = model(prompt, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1:].argmax(-1)

    def step():
        token.copy_(model(token, past_key_values=cache, use_cache=True).logits[:, -1:].argmax(-1))

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return timed(graph.replay, 50)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("model", choices=SIZES)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--speed", action="store_true", help="time transformers' eager decode and prefill too")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    tokens = tokens_of(options.tokens)
    listed = ",".join(str(token) for token in tokens.tolist())
    ours = {}
    with tempfile.TemporaryDirectory() as folder:
        for variant in ("ref", "tile"):
            for prefill in (1, options.tokens // 2):
                path = os.path.join(folder, "logits.bin")
                subprocess.run([options.program, "logits", "--random", options.model, "--tokens", listed, "--variant", variant,
                                "--prefill", str(prefill), "--context", "1024", "-o", path], check=True, stderr=subprocess.DEVNULL)
                read = torch.frombuffer(bytearray(open(path, "rb").read()), dtype=torch.float32)
                ours[f"{variant}, {prefill} at once"] = (prefill, read.view(-1, 151936))
    print(f"{options.model}: {options.tokens} tokens, torch {torch.__version__}, transformers {transformers.__version__}")
    batch = tokens.unsqueeze(0).cuda()
    fine = True
    with torch.no_grad():
        model = model_of(options.model, torch.float32)
        reference = model(batch).logits[0].float().cpu()
        del model
        torch.cuda.empty_cache()
        model = model_of(options.model, torch.bfloat16)
        theirs = model(batch).logits[0].float().cpu()
        report("transformers bf16", theirs, reference)
        for label, (prefill, logits) in ours.items():
            error, wrong, same = report(label, logits, reference[prefill - 1:])
            their_same = int((theirs.argmax(dim=1) == reference.argmax(dim=1))[prefill - 1:].sum())
            fine = fine and error < 1e-2 and wrong == 0 and same >= their_same
        if options.speed:
            prompt = tokens_of(1024).unsqueeze(0).cuda()
            seconds = timed(lambda: model(prompt, use_cache=False, logits_to_keep=1), 5)
            print(f"transformers bf16 eager: prefill of 1024 {seconds * 1e3:.2f} ms")
            out = model(prompt, use_cache=True, logits_to_keep=1)
            cache, token = out.past_key_values, out.logits[:, -1:].argmax(-1)
            seconds = timed(lambda: model(token, past_key_values=cache, use_cache=True), 10)
            print(f"transformers bf16 eager: decode step after 1024 {seconds * 1e3:.2f} ms")
            print(f"transformers bf16 replayed: decode step after 1024 {replayed(model, prompt) * 1e3:.2f} ms")
    print("fine" if fine else "NOT FINE")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
