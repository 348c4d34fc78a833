"""A suite of longpole benchmarks made of PyTorch callables.

One file, PyTorch and the standard library only: copy it beside your script::

    import torch
    import longpole_suite

    suite = longpole_suite.Suite("norms", version="1")

    @suite.benchmark("Qwen3-4B/ops/rms_norm/decode/torch", shape={"rows": 16, "columns": 2560})
    def rms_norm():
        x = torch.randn(16, 2560, device="cuda", dtype=torch.bfloat16)
        weight = torch.ones(2560, device="cuda", dtype=torch.bfloat16)
        run = lambda x, weight: torch.nn.functional.rms_norm(x, (2560,), weight)
        return longpole_suite.Case(run, inputs=[x, weight], reference=my_slow_and_right_rms_norm)

    if __name__ == "__main__":
        raise SystemExit(suite.main())

Then ``longpole bench run --suite ./norms.py`` (an executable script) measures it. The function under the decorator is called when its benchmark
is due, so a list needs no GPU, and only what was asked for takes memory.

It speaks the protocol of ``docs/suite-protocol.md`` and measures as that page says: CUDA events around graphs of many runs, several sets of inputs
in turn so that the second-level cache is cold, warm-up until clocks and times have settled, sampling until the median is known well, and NVML
read beside the samples. Three things differ from the Rust library, since Python is between them and the device:

- Every run that can be captured into a CUDA graph is measured in one, however long it is, since the time of Python is not the kernel's; unless it
  is slower in a graph than launched one by one, as large copies are.
- Without ``outputs`` the callable allocates its result. The memory of a first result is poisoned and given back before the result that is
  checked is made, so that the allocator hands out the same memory again.
- There are at most 256 sets of inputs.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import re
import statistics
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, TextIO, Tuple

__all__ = ["Case", "Suite"]

_KEY = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+){3,4}")
_PARTS = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*/?")
_MAX_KEY = 200
# The numbers of docs/suite-protocol.md.
_SAMPLE_PS = 1_000_000_000
_ROUND_PS = 10_000_000_000
_MAX_RUNS = 1000
_MAX_SETS = 256
# A run that takes longer than this factor in a graph is measured outside.
_GRAPH_MAY_COST = 1.02
_MIN_WARM_UP_NS = 100_000_000
_MAX_WARM_UP_NS = 3_000_000_000
_CALM_ROUNDS = 4
_CALM_SHARE = 0.015
_MIN_SAMPLES = 50
_MAX_SAMPLES = 5000
_MIN_SAMPLES_LATE = 5
# NVML's bits of throttle reasons (nvml.h) and whether they make a sample unlike others.
_REASONS = (
    (0x1, "gpu_idle", False),
    (0x2, "applications_clocks_setting", False),
    (0x4, "sw_power_cap", True),
    (0x8, "hw_slowdown", True),
    (0x10, "sync_boost", True),
    (0x20, "sw_thermal_slowdown", True),
    (0x40, "hw_thermal_slowdown", True),
    (0x80, "hw_power_brake_slowdown", True),
    (0x100, "display_clock_setting", False),
)

# Times in picoseconds, and whether the device was throttled.
_Taken = List[Tuple[int, bool]]


class Wrong(Exception):
    """A result is not what it should be."""


class Case:
    """What is measured: a callable and what it is called with.

    ``run`` is called with ``inputs``, then ``outputs``, all of them tensors; every set of buffers has its own copies. With ``outputs`` it writes
    into them; without, it returns a tensor or a sequence of tensors. ``reference`` is called with the inputs and returns what the result should
    be, to the tolerances of ``torch.testing.assert_close``. ``graph=False`` keeps it out of CUDA graphs.
    """

    def __init__(
        self,
        run: Callable[..., Any],
        inputs: Sequence[Any],
        *,
        outputs: Sequence[Any] = (),
        reference: Optional[Callable[..., Any]] = None,
        rtol: Optional[float] = None,
        atol: Optional[float] = None,
        graph: bool = True,
    ) -> None:
        self.run = run
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.reference = reference
        self.rtol = rtol
        self.atol = atol
        self.graph = graph


class Suite:
    """Benchmarks under one name."""

    def __init__(self, name: str, version: Optional[str] = None) -> None:
        self.name = name
        self.version = version
        self._entries: Dict[str, Tuple[Dict[str, Any], Callable[[], Case]]] = {}

    def benchmark(
        self,
        key: str,
        *,
        shape: Optional[Dict[str, int]] = None,
        bytes: Optional[int] = None,  # noqa: A002 - the protocol's word
        flops: Optional[int] = None,
        dtype: Optional[str] = None,
    ) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
        """Add the decorated function, which returns a :class:`Case`. ``bytes`` and ``flops`` are what one run has to move and compute at least,
        ``dtype`` the type of number it computes with, as a measured peak is named (``bf16``)."""
        parts = _parts_of(key)
        if key in self._entries:
            raise ValueError(f"{key} is in the suite twice")
        info = {
            "key": key,
            "model": parts[0],
            "op": parts[2],
            "phase": parts[3] if len(parts) == 5 else None,
            "shape": shape,
            "bytes": bytes,
            "flops": flops,
            "dtype": dtype,
            "unit_runs": 1,
        }

        def add(make: Callable[[], Case]) -> Callable[[], Case]:
            self._entries[key] = (info, make)
            return make

        return add

    def main(self, arguments: Optional[Sequence[str]] = None, out: Optional[TextIO] = None) -> int:
        """Answer a command line, this process's own by default, and return the exit code."""
        out = sys.stdout if out is None else out
        options = _arguments(self.name).parse_args(arguments)
        try:
            chosen = self._chosen(options)
        except ValueError as error:
            print(f"{self.name}: {error}", file=sys.stderr)
            return 1
        if options.command == "list":
            suite = {"name": self.name, "version": self.version}
            document = {"schema": "longpole.suite.list/1", "suite": suite, "benchmarks": [info for info, _ in chosen]}
            text = json.dumps(document, allow_nan=False) if options.json else "\n".join(info["key"] for info, _ in chosen)
            print(text, file=out, flush=True)
            return 0

        def emit(event: str, **fields: Any) -> None:
            print(json.dumps(_known({"event": event, **fields}), allow_nan=False, separators=(",", ":")), file=out, flush=True)

        try:
            device = _Device()
        except (ImportError, RuntimeError) as error:
            print(f"{self.name}: {error}", file=sys.stderr)
            return 1
        if options.command == "run":
            emit("device", device=device.about())
        code = 0
        for info, make in chosen:
            try:
                if options.command == "run":
                    _measure(device, make(), info, options, emit)
                else:
                    _profile(device, make(), options)
                    emit("profile", key=info["key"], launches=options.launches)
            except BrokenPipeError:
                return 0
            except Exception as error:  # noqa: BLE001 - whatever a benchmark raises is its own failure, not the run's
                emit("error", key=info["key"], message=f"{type(error).__name__}: {error}")
                code = 1
        return code

    def _chosen(self, options: argparse.Namespace) -> List[Tuple[Dict[str, Any], Callable[[], Case]]]:
        of_model = [entry for entry in self._entries.values() if options.model in (None, entry[0]["model"])]
        choices = [_selector(text) for text in options.keys]
        for text, choice in zip(options.keys, choices):
            if not any(choice(info["key"]) for info, _ in of_model):
                raise ValueError(f"`{text}` chooses no benchmark; `list` prints their keys")
        return [entry for entry in of_model if not choices or any(choice(entry[0]["key"]) for choice in choices)]


def _known(fields: Dict[str, Any]) -> Dict[str, Any]:
    """The same without numbers that are none: JSON has no NaN, and what is not known is null."""
    return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in fields.items()}


def _parts_of(key: str) -> List[str]:
    parts = key.split("/")
    whole_model = len(parts) > 1 and parts[1] == "model"
    fits = _KEY.fullmatch(key) and len(key) <= _MAX_KEY and len(parts) == (4 if whole_model else 5)
    if not fits or any(set(part) == {"."} for part in parts):
        raise ValueError(f"`{key}` is no key: <model>/<group>/<name>/<phase>/<variant> or <model>/model/<name>/<variant>")
    return parts


def _selector(text: str) -> Callable[[str], bool]:
    """Parts of keys in a row, or a regular expression."""
    if _PARTS.fullmatch(text):
        row = f"/{text.rstrip('/')}/"
        return lambda key: row in f"/{key}/"
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ValueError(f"`{text}` is neither a key, nor parts of one, nor a regular expression: {error}") from None
    return lambda key: pattern.search(key) is not None


def _positive(text: str) -> float:
    value = float(text)
    if not (0 < value <= 1e6):
        raise argparse.ArgumentTypeError("a number above 0 is needed")
    return value


def _count(text: str) -> int:
    value = int(text)
    if not (0 < value <= 1_000_000):
        raise argparse.ArgumentTypeError("a number from 1 to a million is needed")
    return value


def _arguments(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=name, description="A suite of longpole benchmarks.")
    commands = parser.add_subparsers(dest="command", required=True)
    for command, about in (("list", "print the benchmarks"), ("run", "measure"), ("profile", "run for a profiler")):
        sub = commands.add_parser(command, help=about)
        sub.add_argument("keys", nargs="*" if command == "list" else "+", metavar="KEY")
        sub.add_argument("--model", help="only this model")
        if command == "list":
            sub.add_argument("--json", action="store_true")
            continue
        sub.add_argument("--json-lines", action="store_true", help="always so")
        sub.add_argument("--l2", choices=("cold", "warm"), default="cold")
        if command == "run":
            sub.add_argument("--max-seconds", type=_positive, default=3.0)
            sub.add_argument("--relative-error", type=_positive, default=0.001)
            sub.add_argument("--samples", type=_count)
        else:
            sub.add_argument("--launches", type=_count, default=1)
    return parser


class _Nvml:
    """NVML through ctypes. What cannot be read is ``None``; nothing is ever set."""

    def __init__(self, uuid: Optional[str]) -> None:
        self._library: Any = None
        self._device = ctypes.c_void_p()
        if uuid is None:
            return
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if library.nvmlInit_v2() == 0 and library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self._device)) == 0:
            self._library = library

    def driver(self) -> Optional[str]:
        text = ctypes.create_string_buffer(96)
        if self._library is None or self._library.nvmlSystemGetDriverVersion(text, len(text)) != 0:
            return None
        return text.value.decode("ascii", "replace")

    def _number(self, function: str, *arguments: int, wide: bool = False) -> Optional[int]:
        if self._library is None:
            return None
        value = ctypes.c_ulonglong() if wide else ctypes.c_uint()
        call = getattr(self._library, function)
        return value.value if call(self._device, *arguments, ctypes.byref(value)) == 0 else None

    def state(self) -> Dict[str, Any]:
        bits = self._number("nvmlDeviceGetCurrentClocksThrottleReasons", wide=True)
        held = None if bits is None else [(name, unlike) for bit, name, unlike in _REASONS if bits & bit]
        return {
            "sm_clock_mhz": self._number("nvmlDeviceGetClockInfo", 1),
            "memory_clock_mhz": self._number("nvmlDeviceGetClockInfo", 2),
            "temperature_c": self._number("nvmlDeviceGetTemperature", 0),
            "power_mw": self._number("nvmlDeviceGetPowerUsage"),
            "throttle": None if held is None else [name for name, _ in held],
            "throttled": None if held is None else any(unlike for _, unlike in held),
        }


class _Device:
    """The current CUDA device through torch."""

    def __init__(self) -> None:
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("torch sees no CUDA device")
        self.torch = torch
        self._properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        uuid = getattr(self._properties, "uuid", None)
        self._uuid = None if uuid is None else f"GPU-{str(uuid).replace('GPU-', '')}"
        self._nvml = _Nvml(self._uuid)
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def about(self) -> Dict[str, Any]:
        return {
            "name": self._properties.name,
            "uuid": self._uuid,
            "driver": self._nvml.driver(),
            "cuda": self.torch.version.cuda,
            "sm_count": self._properties.multi_processor_count,
            "memory_bytes": self._properties.total_memory,
            "l2_bytes": self.l2_bytes(),
        }

    def l2_bytes(self) -> Optional[int]:
        return getattr(self._properties, "L2_cache_size", None)

    def timed(self, lead: Callable[[], None], work: Callable[[], None]) -> Tuple[int, Dict[str, Any]]:
        """Picoseconds of ``work`` on the device, and its state meanwhile. ``lead`` keeps the device busy until ``work`` is enqueued."""
        begin, end = self._events
        lead()
        begin.record()
        work()
        end.record()
        state = self._nvml.state()
        end.synchronize()
        return max(0, round(begin.elapsed_time(end) * 1e9)), state


class _Ready:
    """A case with its sets of buffers, which runs take in turn."""

    def __init__(self, device: _Device, case: Case, l2: str, notes: List[str]) -> None:
        torch = device.torch
        self.case = case
        self._next = 0
        first = case.inputs + case.outputs
        # Run once to know what the result takes, and to have everything compiled.
        results = _tensors(case.run(*first))
        torch.cuda.synchronize()
        touched = sum(_size(tensor) for tensor in case.inputs + (case.outputs or results))
        del results
        wanted = 1
        if l2 == "cold":
            wanted = max(2, math.ceil(2 * (device.l2_bytes() or 128 << 20) / max(1, touched)) + 1)
        free = torch.cuda.mem_get_info()[0]
        count = max(1, min(wanted, _MAX_SETS, free // 2 // max(1, touched)))
        if count < wanted:
            notes.append(f"the cache is not cold: {count} sets of buffers hold {count * touched >> 20} MiB, and no more fit or are taken in turn")
        self.sets = [first] + [tuple(tensor.clone() for tensor in first) for _ in range(count - 1)]

    def runs(self, count: int) -> None:
        for _ in range(count):
            self.case.run(*self.sets[self._next])
            self._next = (self._next + 1) % len(self.sets)

    def start_over(self) -> None:
        self._next = 0

    def check(self, torch: Any) -> Optional[bool]:
        """Compare the results on the first and the last set with the reference; raise if they differ."""
        case = self.case
        if case.reference is None:
            return None
        for one in (self.sets[0], self.sets[-1]):
            inputs, outputs = one[: len(case.inputs)], one[len(case.inputs) :]
            expected = _tensors(case.reference(*inputs))
            if outputs:
                for tensor in outputs:
                    _poison(tensor)
                case.run(*one)
                found = outputs
            else:
                for tensor in _tensors(case.run(*one)):
                    _poison(tensor)
                tensor = None
                torch.cuda.synchronize()
                found = _tensors(case.run(*one))
            torch.cuda.synchronize()
            if len(found) != len(expected):
                raise Wrong(f"there are {len(found)} results, {len(expected)} were expected")
            for at, (result, right) in enumerate(zip(found, expected)):
                try:
                    torch.testing.assert_close(result, right.to(result.dtype), rtol=case.rtol, atol=case.atol)
                except AssertionError as error:
                    raise Wrong(f"result {at} is wrong: {error}") from None
        return True


def _tensors(value: Any) -> Tuple[Any, ...]:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _size(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _poison(tensor: Any) -> None:
    """NaN where the type has one, otherwise the value whose bits are all set, or True."""
    dtype = tensor.dtype
    if dtype.is_floating_point or dtype.is_complex:
        tensor.fill_(float("nan"))
    else:
        tensor.fill_(-1 if getattr(dtype, "is_signed", False) else 1)


def _sampler(device: _Device, ready: _Ready, notes: List[str]) -> Tuple[str, int, Callable[[], Tuple[int, Dict[str, Any]]]]:
    """Method, runs in a sample, and what takes one: the time of all its runs and the state."""
    count = 1
    while True:
        passed, _ = device.timed(lambda: ready.runs(1), lambda: ready.runs(count))
        if passed >= _SAMPLE_PS // 5 or count >= 256:
            break
        count *= 4
    run_ps = max(1, passed // count)
    if ready.case.graph:
        try:
            runs = _runs(run_ps, len(ready.sets), True)
            graph = _captured(device, ready, runs)
            passed, _ = device.timed(graph.replay, graph.replay)
            better = _runs(max(1, passed // runs), len(ready.sets), True)
            if abs(better - runs) > runs // 10:
                runs = better
                graph = None
                graph = _captured(device, ready, runs)
                passed, _ = device.timed(graph.replay, graph.replay)
            in_graph_ps = passed // runs
            if in_graph_ps <= run_ps * _GRAPH_MAY_COST:
                return "graph", runs, lambda: device.timed(graph.replay, graph.replay)
            notes.append(f"a run takes {in_graph_ps / 1e6:.1f} us in a graph and {run_ps / 1e6:.1f} us launched by itself, so it is launched by itself")
        except RuntimeError as error:
            device.torch.cuda.synchronize()
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            notes.append(f"it could not be captured into a graph, so launches are measured too: {first}")
    runs = _runs(run_ps, len(ready.sets), False)
    return "events", runs, lambda: device.timed(lambda: ready.runs(1), lambda: ready.runs(runs))


def _runs(run_ps: int, sets: int, graph: bool) -> int:
    runs = min(max(1, -(-_SAMPLE_PS // run_ps)), _MAX_RUNS)
    return -(-runs // sets) * sets if graph else runs


def _captured(device: _Device, ready: _Ready, runs: int) -> Any:
    torch = device.torch
    ready.start_over()
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        ready.runs(runs)
    return graph


def relative_error_of_median(values: Sequence[int]) -> Optional[float]:
    """Standard error of the median as a share of it: the larger of that by order statistics and that by blocks of neighbours."""
    count = len(values)
    if count < 5:
        return None
    ordered = sorted(values)
    middle = statistics.median(ordered)
    if middle <= 0:
        return None
    centre, reach = (count - 1) / 2, math.sqrt(count) / 2
    below, above = max(0, math.floor(centre - reach)), min(count - 1, math.ceil(centre + reach))
    error = (ordered[above] - ordered[below]) / 2
    if count >= 16:
        blocks = [statistics.median(values[block * count // 8 : (block + 1) * count // 8]) for block in range(8)]
        error = max(error, statistics.stdev(blocks) / math.sqrt(8))
    return error / middle


def _relative_error(taken: _Taken) -> Optional[float]:
    free = [passed for passed, throttled in taken if not throttled]
    return relative_error_of_median(free if len(free) >= 16 else [passed for passed, _ in taken])


def _warm_up(take: Callable[[], Tuple[int, Dict[str, Any]]], limit_ns: int) -> bool:
    """Whether times and clocks had settled before the limit."""
    began = time.perf_counter_ns()
    rounds: List[Tuple[float, Optional[int]]] = []
    while True:
        busy, times, clock = 0, [], None
        while busy < _ROUND_PS:
            passed, state = take()
            busy += max(passed, _ROUND_PS // 1000)
            times.append(passed)
            clock = state["sm_clock_mhz"]
        rounds.append((statistics.median(times), clock))
        last = rounds[-_CALM_ROUNDS:]
        clocks = [clock for _, clock in last if clock is not None] or [0]
        medians = [median for median, _ in last]
        near = max(medians) <= min(medians) * (1 + _CALM_SHARE) and max(clocks) <= min(clocks) * (1 + _CALM_SHARE)
        calm = len(last) == _CALM_ROUNDS and near
        passed_ns = time.perf_counter_ns() - began
        if calm and passed_ns >= min(_MIN_WARM_UP_NS, limit_ns):
            return True
        if passed_ns >= limit_ns:
            return calm


def _measure(device: _Device, case: Case, info: Dict[str, Any], options: argparse.Namespace, emit: Callable[..., None]) -> None:
    key, notes = info["key"], []  # type: str, List[str]
    ready = _Ready(device, case, options.l2, notes)
    correct = ready.check(device.torch)
    method, runs, take = _sampler(device, ready, notes)
    emit(
        "start",
        key=key,
        bytes=info["bytes"],
        flops=info["flops"],
        dtype=info["dtype"],
        method=method,
        launches_per_sample=runs,
        buffers_rotated=len(ready.sets),
        l2=options.l2,
    )
    began, most_ns = time.perf_counter_ns(), int(options.max_seconds * 1e9)
    limit = min(_MAX_WARM_UP_NS, most_ns // 2)
    if not _warm_up(take, limit):
        notes.append(f"clocks or times had not settled after {limit / 1e9:.1f} s of warm-up")
    warm_up_ns = time.perf_counter_ns() - began
    taken: _Taken = []
    look_at = _MIN_SAMPLES
    while True:
        passed_ns = time.perf_counter_ns() - began
        late = passed_ns >= most_ns and (len(taken) >= _MIN_SAMPLES_LATE or (taken and passed_ns >= 4 * most_ns))
        if len(taken) >= (options.samples or _MAX_SAMPLES):
            stopped_by = "count"
            break
        if late:
            stopped_by = "time"
            break
        if options.samples is None and len(taken) >= look_at:
            error = _relative_error(taken)
            if error is not None and error <= options.relative_error:
                stopped_by = "precise"
                break
            look_at = len(taken) + max(4, len(taken) // 8)
        passed, state = take()
        time_ps = (passed + runs // 2) // runs
        emit("sample", key=key, index=len(taken), time_ps=time_ps, **state)
        taken.append((time_ps, state["throttled"] is True))
    emit(
        "end",
        key=key,
        samples=len(taken),
        stopped_by=stopped_by,
        warm_up_ns=warm_up_ns,
        correct=correct,
        relative_error=_relative_error(taken),
        notes=notes,
    )


def _profile(device: _Device, case: Case, options: argparse.Namespace) -> None:
    torch = device.torch
    ready = _Ready(device, case, options.l2, [])
    ready.check(torch)
    began = time.perf_counter_ns()
    while time.perf_counter_ns() - began < _MIN_WARM_UP_NS:
        ready.runs(1)
        torch.cuda.synchronize()
    torch.cuda.profiler.start()
    try:
        ready.runs(options.launches)
        torch.cuda.synchronize()
    finally:
        torch.cuda.profiler.stop()
