"""Runs longpole_torch around a small CUDA model and checks what comes out. Needs a CUDA device, torch, and the longpole program.

    python3 python/tests/h200_check.py [PATH-OF-LONGPOLE]

The last line is PASS, or FAIL with the reason. The traces stay in ``longpole_traces`` under ``$OUT`` (or the working directory).
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any, Dict, List

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import longpole_torch
import torch
from torch.profiler import record_function

HEADS = ["Workload", "Hardware", "Top CUDA time", "Top CPU / orchestration cost", "Next experiment"]
LAYERS, WIDTH, HEADS_OF_ATTENTION, PROMPT = 4, 1024, 16, 512
REPLAYS = 3
STEPS = 4


class Model:
    """Layers of attention and a gated feed-forward, in bf16 with random weights; no cache, so a decode step is one token alone."""

    def __init__(self) -> None:
        def weight(rows: int, columns: int) -> torch.Tensor:
            return torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16) / rows**0.5

        self.layers = [(weight(WIDTH, 3 * WIDTH), weight(WIDTH, WIDTH), weight(WIDTH, 6 * WIDTH), weight(3 * WIDTH, WIDTH)) for _ in range(LAYERS)]

    @staticmethod
    def norm(x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        for qkv, out, up, down in self.layers:
            split = (self.norm(x) @ qkv).view(x.shape[0], 3, HEADS_OF_ATTENTION, -1).permute(1, 2, 0, 3)
            mixed = torch.nn.functional.scaled_dot_product_attention(*split.unsqueeze(1), is_causal=True)
            x = x + mixed.squeeze(0).transpose(0, 1).reshape(x.shape) @ out
            gate, value = (self.norm(x) @ up).chunk(2, -1)
            x = x + (torch.nn.functional.silu(gate) * value) @ down
        return x


def check(holds: bool, what: str) -> None:
    """Ends the check when `holds` is false."""
    if not holds:
        raise AssertionError(what)
    print(f"ok: {what}")


def trace_events(run: longpole_torch.Profile) -> List[Dict[str, Any]]:
    """The events of the trace that a run wrote."""
    check(run.trace_path is not None and run.trace_path.is_file(), f"a trace was written: {run.trace_path}")
    with gzip.open(run.trace_path) as file:
        return json.load(file)["traceEvents"]


def capture(model: Model) -> torch.cuda.CUDAGraph:
    """A graph of one decode step."""
    token = torch.randn(1, WIDTH, device="cuda", dtype=torch.bfloat16)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        model(token)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(token)
    return graph


def main() -> None:
    folder = Path(os.environ.get("OUT", ".")) / "longpole_traces"
    binary = sys.argv[1] if len(sys.argv) > 1 else None
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, longpole: {longpole_torch.find_binary(binary)}")
    torch.manual_seed(0)
    with torch.no_grad():
        model = Model()
        prompt = torch.randn(PROMPT, WIDTH, device="cuda", dtype=torch.bfloat16)
        graph = capture(model)

        def step() -> None:
            with record_function("prefill"):
                model(prompt)
            with record_function("decode_step"):
                model(prompt[-1:])
            with record_function("replay"):
                for _ in range(REPLAYS):
                    graph.replay()

        step()
        torch.cuda.synchronize()
        with longpole_torch.profile(folder, report="short", binary=binary, active=STEPS) as run:
            for _ in range(STEPS + 3):
                step()
                run.step()
        check(run.report is not None, "a report was printed")
        lines = run.report.splitlines()
        check([line.partition(":")[0] for line in lines] == HEADS, "the short report has its five lines")
        check("GPU busy" in lines[2], "the report has GPU time")
        for name in ("prefill", "decode_step", "replay"):
            check(name in lines[0], f"the workload line names {name}")
        events = trace_events(run)
        launches = [e["args"]["correlation"] for e in events if e.get("name") == "cudaGraphLaunch"]
        check(len(launches) == STEPS * REPLAYS, f"{STEPS * REPLAYS} graph launches were recorded")
        kernels = [e["args"].get("correlation") for e in events if e.get("cat") == "kernel"]
        per_launch = [kernels.count(launch) for launch in launches]
        check(min(per_launch) > 0 and min(per_launch) == max(per_launch), f"every replay, the last too, has its {per_launch[0]} kernels")
        check(any(e.get("name") == "[memory]" for e in events), "allocations were recorded")
        check(any("Input Dims" in e.get("args", {}) for e in events), "shapes were recorded")

        try:
            with longpole_torch.profile(folder, binary=binary, active=None) as run:
                step()
                raise KeyError("mine")
        except KeyError:
            pass
        graph_kernels = sum(e.get("cat") == "kernel" for e in trace_events(run))
        check(graph_kernels > REPLAYS * per_launch[0], "a block that raised has its trace, kernels of its last replay included")

        with longpole_torch.profile(folder, binary=binary, active=None, arguments=["--limit", "5"]) as run:
            step()
        check(run.report is not None and "\nOperators\n" in run.report and "replay" in run.report, "the full page has its tables")


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:
        traceback.print_exc()
        sys.stderr.flush()
        print(f"FAIL: {type(error).__name__}: {error}")
        sys.exit(1)
    print("PASS")
