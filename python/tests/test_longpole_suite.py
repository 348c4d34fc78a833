"""Tests of longpole_suite: against a stand-in for torch with a simulated device, and the real thing where torch sees a GPU.

Run with ``python3 -m unittest discover -s python/tests``. What the suite prints is held against the schemas of ``docs/schema``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import random
import re
import sys
import types
import unittest
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple
from unittest import mock

HERE = Path(__file__).resolve().parent
SCHEMAS = HERE.parent.parent / "docs" / "schema"
HAS_TORCH = importlib.util.find_spec("torch") is not None

_spec = importlib.util.spec_from_file_location("longpole_suite", HERE.parent / "longpole_suite.py")
assert _spec is not None and _spec.loader is not None
longpole_suite = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(longpole_suite)

_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def faults(schema: Dict[str, Any], value: Any, root: Optional[Dict[str, Any]] = None, at: str = "") -> List[str]:
    """What a schema says against a value: the keywords that our schemas use, and an error for any other."""
    root = schema if root is None else root
    found: List[str] = []
    for word, rule in schema.items():
        if word in ("$schema", "$id", "$defs", "title", "description"):
            continue
        if word == "$ref":
            target: Any = root
            for step in rule.lstrip("#/").split("/"):
                target = target[step]
            found += faults(target, value, root, at)
        elif word == "type":
            kinds = rule if isinstance(rule, list) else [rule]
            if not any(_is(value, kind) for kind in kinds):
                found.append(f"{at}: {value!r} is no {rule}")
        elif word == "const":
            if value != rule:
                found.append(f"{at}: {value!r} is not {rule!r}")
        elif word == "enum":
            if value not in rule:
                found.append(f"{at}: {value!r} is none of {rule}")
        elif word == "required":
            found += [f"{at}: {name} is missing" for name in rule if isinstance(value, dict) and name not in value]
        elif word == "properties":
            for name, inner in rule.items():
                if isinstance(value, dict) and name in value:
                    found += faults(inner, value[name], root, f"{at}/{name}")
        elif word == "additionalProperties":
            if isinstance(value, dict):
                for name in set(value) - set(schema.get("properties", {})):
                    found += faults(rule, value[name], root, f"{at}/{name}")
        elif word == "items":
            if isinstance(value, list):
                for number, item in enumerate(value):
                    found += faults(rule, item, root, f"{at}/{number}")
        elif word == "oneOf":
            if sum(not faults(inner, value, root, at) for inner in rule) != 1:
                found.append(f"{at}: not one of the alternatives holds")
        elif word == "minimum":
            if _is(value, "number") and value < rule:
                found.append(f"{at}: {value} is below {rule}")
        elif word == "maximum":
            if _is(value, "number") and value > rule:
                found.append(f"{at}: {value} is above {rule}")
        elif word == "exclusiveMaximum":
            if _is(value, "number") and value >= rule:
                found.append(f"{at}: {value} is not below {rule}")
        elif word == "not":
            if not faults(rule, value, root, at):
                found.append(f"{at}: {value!r} is what it must not be")
        elif word == "exclusiveMinimum":
            if _is(value, "number") and value <= rule:
                found.append(f"{at}: {value} is not above {rule}")
        elif word == "maxItems":
            if isinstance(value, list) and len(value) > rule:
                found.append(f"{at}: more than {rule} items")
        elif word == "maxLength":
            if isinstance(value, str) and len(value) > rule:
                found.append(f"{at}: longer than {rule}")
        elif word == "pattern":
            if isinstance(value, str) and not re.search(rule, value):
                found.append(f"{at}: {value!r} does not match")
        else:
            raise AssertionError(f"the schema uses {word}, which these tests do not know")
    return found


def _is(value: Any, kind: str) -> bool:
    if kind in ("integer", "number"):
        return isinstance(value, int if kind == "integer" else (int, float)) and not isinstance(value, bool)
    return isinstance(value, _TYPES[kind])


def schema(name: str) -> Dict[str, Any]:
    return json.loads((SCHEMAS / f"suite-{name}.schema.json").read_text(encoding="utf-8"))


class Clock:
    """Nanoseconds of host and device. A launch from Python takes the host 20 us."""

    def __init__(self) -> None:
        self.host = 0
        self.device = 0
        self.capturing: Optional[List[int]] = None
        self.noise = random.Random(5)
        self.profiled: Optional[int] = None
        self.launched_while_profiled = 0

    def launch(self, time_ns: int, host_ns: int = 20_000) -> None:
        if self.capturing is not None:
            self.capturing.append(time_ns)
            return
        if self.profiled is not None:
            self.profiled += 1
        self.host += host_ns
        self.device = max(self.device, self.host) + round(time_ns * self.noise.gauss(1, 0.002))

    def synchronize(self) -> None:
        self.host = max(self.host, self.device)


class Dtype:
    is_floating_point = True
    is_complex = False


class Tensor:
    """A number for all elements, and a size."""

    dtype = Dtype()

    def __init__(self, value: float, size: int) -> None:
        self.value = value
        self.size = size

    def numel(self) -> int:
        return self.size // 2

    def element_size(self) -> int:
        return 2

    def clone(self) -> "Tensor":
        return Tensor(self.value, self.size)

    def fill_(self, value: float) -> None:
        self.value = value

    def to(self, _: Any) -> "Tensor":
        return self


def fake_torch(clock: Clock, capture: bool = True, free: int = 100 << 30, node_ns: int = 0) -> types.ModuleType:
    torch: Any = types.ModuleType("torch")

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing
            self.at = 0

        def record(self) -> None:
            self.at = max(clock.device, clock.host)

        def synchronize(self) -> None:
            clock.host = max(clock.host, self.at)

        def elapsed_time(self, end: "Event") -> float:
            return (end.at - self.at) / 1e6

    class CUDAGraph:
        def __init__(self) -> None:
            self.kernels: List[int] = []

        def replay(self) -> None:
            clock.host += 10_000
            for kernel in self.kernels:
                clock.launch(kernel + node_ns, 0)

    @contextlib.contextmanager
    def graph(target: CUDAGraph) -> Any:
        if not capture:
            raise RuntimeError("operation not permitted when stream is capturing\nand more")
        clock.capturing = []
        yield
        target.kernels, clock.capturing = clock.capturing, None

    def assert_close(found: Tensor, expected: Tensor, rtol: Optional[float], atol: Optional[float]) -> None:
        # NaN is close to nothing.
        if not abs(found.value - expected.value) <= 1e-3:
            raise AssertionError(f"{found.value} is not close to {expected.value}")

    def start() -> None:
        clock.profiled = 0

    def stop() -> None:
        assert clock.profiled is not None
        clock.launched_while_profiled, clock.profiled = clock.profiled, None

    properties = types.SimpleNamespace(
        name="Simulated device", uuid="0-1", multi_processor_count=132, total_memory=1 << 37, L2_cache_size=60 << 20
    )
    torch.version = types.SimpleNamespace(cuda="13.0")
    torch.testing = types.SimpleNamespace(assert_close=assert_close)
    torch.cuda = types.SimpleNamespace(
        is_available=lambda: True,
        current_device=lambda: 0,
        get_device_properties=lambda _: properties,
        mem_get_info=lambda: (free, 1 << 37),
        synchronize=clock.synchronize,
        Event=Event,
        CUDAGraph=CUDAGraph,
        graph=graph,
        profiler=types.SimpleNamespace(start=start, stop=stop),
    )
    return torch


class Fake(unittest.TestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.suite = longpole_suite.Suite("fake", version="1")
        clock = self.clock

        def returns(x: Tensor) -> Tensor:
            clock.launch(3_000)
            return Tensor(2 * x.value, x.size)

        def writes(x: Tensor, out: Tensor) -> None:
            clock.launch(50_000)
            out.value = 2 * x.value

        @self.suite.benchmark("M/ops/double/decode/returns", shape={"n": 7}, bytes=4 << 20, flops=1)
        def short() -> Any:
            return longpole_suite.Case(returns, [Tensor(3, 2 << 20)], reference=lambda x: Tensor(6, 2 << 20))

        @self.suite.benchmark("M/ops/double/prefill/writes")
        def long() -> Any:
            tensors = Tensor(3, 2 << 20), Tensor(0, 2 << 20)
            return longpole_suite.Case(writes, tensors[:1], outputs=tensors[1:], reference=lambda x: Tensor(6, 2 << 20), graph=False)

        @self.suite.benchmark("M/ops/double/decode/wrong")
        def wrong() -> Any:
            return longpole_suite.Case(lambda x, out: clock.launch(9_000), [Tensor(3, 64)], outputs=[Tensor(6, 64)], reference=lambda x: Tensor(6, 64))

        @self.suite.benchmark("N/model/step/torch")
        def broken() -> Any:
            raise KeyError("no such weights")

    def ask(self, line: str, **torch: Any) -> Tuple[int, List[Dict[str, Any]]]:
        out = io.StringIO()
        clock = types.SimpleNamespace(perf_counter_ns=lambda: self.clock.host)
        with mock.patch.dict(sys.modules, {"torch": fake_torch(self.clock, **torch)}), mock.patch.object(longpole_suite, "time", clock):
            code = self.suite.main(line.split(), out)
        events = [json.loads(text) for text in out.getvalue().splitlines()]
        for event in events:
            self.assertEqual(faults(schema("list" if line.startswith("list") else "run"), event), [])
        return code, events

    def one(self, line: str, **torch: Any) -> Tuple[Dict[str, Any], List[float], Dict[str, Any]]:
        """Start, sorted times in nanoseconds, and end of the only benchmark of a run."""
        code, events = self.ask(line, **torch)
        self.assertEqual((code, events[0]["event"], events[1]["event"], events[-1]["event"]), (0, "device", "start", "end"))
        samples = events[2:-1]
        self.assertEqual([sample["index"] for sample in samples], list(range(len(samples))))
        self.assertEqual(events[-1]["samples"], len(samples))
        return events[1], sorted(sample["time_ps"] / 1e3 for sample in samples), events[-1]

    def test_the_list_needs_no_torch(self) -> None:
        out = io.StringIO()
        with mock.patch.dict(sys.modules, {"torch": None}):
            self.assertEqual(self.suite.main(["list", "--json"], out), 0)
        document = json.loads(out.getvalue())
        self.assertEqual(faults(schema("list"), document), [])
        self.assertEqual([one["phase"] for one in document["benchmarks"]], ["decode", "prefill", "decode", None])
        self.assertEqual(document["benchmarks"][0]["shape"], {"n": 7})

    def test_a_missing_torch_or_device_is_a_sentence(self) -> None:
        said = io.StringIO()
        blind = fake_torch(self.clock)
        blind.cuda.is_available = lambda: False  # type: ignore[attr-defined]
        for torch in (None, blind):
            with mock.patch.dict(sys.modules, {"torch": torch}), contextlib.redirect_stderr(said):
                self.assertEqual(self.suite.main(["run", "returns"], io.StringIO()), 1)
        self.assertIn("fake: torch sees no CUDA device", said.getvalue())

    def test_short_kernels_are_measured_without_python(self) -> None:
        start, times, end = self.one("run M/ops/double/decode/returns --json-lines")
        # 4 MiB a run: 30 sets push 120 MiB, and the set itself.
        self.assertEqual((start["method"], start["buffers_rotated"], start["bytes"]), ("graph", 31, 4 << 20))
        self.assertEqual(start["launches_per_sample"] % 31, 0)
        self.assertAlmostEqual(times[len(times) // 2] / 3_000, 1, delta=0.005)
        self.assertEqual((end["stopped_by"], end["correct"], end["notes"]), ("precise", True, []))
        self.assertGreaterEqual(end["warm_up_ns"], 100_000_000)
        self.assertLessEqual(end["relative_error"], 0.001)

    def test_events_where_a_graph_is_refused_or_fails(self) -> None:
        start, times, end = self.one("run writes --l2 warm")
        self.assertEqual((start["method"], start["launches_per_sample"], start["buffers_rotated"]), ("events", 20, 1))
        self.assertAlmostEqual(times[len(times) // 2] / 50_000, 1, delta=0.005)
        start, times, end = self.one("run returns", capture=False)
        self.assertEqual(start["method"], "events")
        self.assertIn("could not be captured into a graph", end["notes"][0])
        self.assertNotIn("and more", end["notes"][0])

    def test_what_is_slower_in_a_graph_is_launched_by_itself(self) -> None:
        start, times, end = self.one("run returns", node_ns=50_000)
        # The host takes 20 us to launch: that is what it is then.
        self.assertEqual(start["method"], "events")
        self.assertAlmostEqual(times[len(times) // 2] / 20_000, 1, delta=0.01)
        self.assertIn("a run takes 53.0 us in a graph and 20.0 us launched by itself", end["notes"][0])

    def test_count_and_time_end_it(self) -> None:
        self.assertEqual(self.one("run returns --samples 3")[2]["stopped_by"], "count")
        end = self.one("run returns --relative-error 1e-9 --max-seconds 0.4")[2]
        self.assertEqual(end["stopped_by"], "time")

    def test_little_memory_is_noted(self) -> None:
        start, _, end = self.one("run returns --samples 3", free=20 << 20)
        self.assertEqual(start["buffers_rotated"], 2)
        self.assertIn("the cache is not cold: 2 sets", end["notes"][0])

    def test_failures_stay_with_their_benchmark(self) -> None:
        code, events = self.ask("run M N --samples 2")
        errors = {event["key"]: event["message"] for event in events if event["event"] == "error"}
        self.assertEqual(code, 1)
        # It writes nothing, and what its output held by chance is right: the pattern shows it.
        self.assertIn("nan is not close to 6", errors["M/ops/double/decode/wrong"])
        self.assertIn("no such weights", errors["N/model/step/torch"])
        self.assertEqual(len([event for event in events if event["event"] == "end"]), 2)

    def test_profiles_are_plain_launches(self) -> None:
        code, events = self.ask("profile returns --launches 3")
        self.assertEqual((code, events), (0, [{"event": "profile", "key": "M/ops/double/decode/returns", "launches": 3}]))
        self.assertEqual(self.clock.launched_while_profiled, 3)

    def test_keys_and_choices(self) -> None:
        for bad in ("a", "a/b/c/d", "a/model/c/d/e", "a/b/c/d/e/f", "a/b/c/d/e f", "a/b/../d/e", "a/b/c/d/" + "e" * 200):
            with self.assertRaises(ValueError):
                self.suite.benchmark(bad)
        with self.assertRaises(ValueError):
            self.suite.benchmark("N/model/step/torch")
        key = "Qwen3-4B/ops/gemv/decode/warp_row"
        for text, chosen in (
            (key, True),
            ("Qwen3-4B/ops", True),
            ("Qwen3-4B/ops/", True),
            ("gemv", True),
            ("gem", False),
            ("Qwen3x4B", False),
            ("decode/.*row$", True),
            ("^ops", False),
        ):
            self.assertEqual(longpole_suite._selector(text)(key), chosen, text)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(self.suite.main(["list", "nothing"], io.StringIO()), 1)
        self.assertIn("`nothing` chooses no benchmark", said.getvalue())

    def test_numbers_that_are_none_are_null(self) -> None:
        with mock.patch.object(longpole_suite, "_relative_error", lambda taken: float("nan")):
            _, _, end = self.one("run returns --samples 5 --json-lines")
        self.assertIsNone(end["relative_error"])
        key = schema("run")["$defs"]["key"]
        for text in ("M/ops/a/decode/v", "M/model/a/v", "M/ops/.a/decode/v.."):
            self.assertEqual((faults(key, text), bool(longpole_suite._parts_of(text))), ([], True))
        for text in ("M/model/decode/v/x", "M/ops/../decode/v", "M/model/./v", "M/ops/a/v", "M/model/a/b/c"):
            self.assertNotEqual(faults(key, text), [], text)
            self.assertRaises(ValueError, longpole_suite._parts_of, text)

    def test_the_error_of_a_median(self) -> None:
        self.assertIsNone(longpole_suite.relative_error_of_median([1] * 4))
        self.assertIsNone(longpole_suite.relative_error_of_median([0] * 40))
        self.assertEqual(longpole_suite.relative_error_of_median([5] * 40), 0)
        noise = random.Random(1)
        # A median of normal values scatters by 1.2533 / sqrt(n) of their deviation.
        said = [longpole_suite.relative_error_of_median([round(noise.gauss(1e6, 1e4)) for _ in range(100)]) for _ in range(200)]
        self.assertAlmostEqual(sum(said) / len(said) / (0.01 * 1.2533 / 10), 1.25, delta=0.3)

    def test_the_checker_of_schemas_checks(self) -> None:
        sample = {"event": "sample", "key": "M/ops/a/b/c", "index": 0, "time_ps": 5}
        self.assertEqual(faults(schema("run"), sample), [])
        for change in ({"time_ps": 1.5}, {"time_ps": -1}, {"key": "M"}, {"throttle": [1]}, {"event": "other"}, {"index": None}):
            self.assertNotEqual(faults(schema("run"), {**sample, **change}), [], change)


def _has_gpu() -> bool:
    if not HAS_TORCH:
        return False
    import torch

    return torch.cuda.is_available()


@unittest.skipUnless(_has_gpu(), "no torch with a GPU here")
class Real(unittest.TestCase):
    def test_a_real_device(self) -> None:
        import torch

        suite = longpole_suite.Suite("real")

        @suite.benchmark("T/ops/add/decode/torch", bytes=3 * (1 << 20))
        def add() -> Any:
            x, y = (torch.randn(1 << 18, device="cuda") for _ in range(2))
            return longpole_suite.Case(torch.add, [x, y], reference=lambda x, y: (x.double() + y.double()))

        @suite.benchmark("T/ops/copy/stream/torch", bytes=2 << 30)
        def copy() -> Any:
            x = torch.randn(1 << 28, device="cuda")
            return longpole_suite.Case(lambda x, out: out.copy_(x), [x], outputs=[torch.empty_like(x)], reference=lambda x: x)

        @suite.benchmark("T/ops/wrong/decode/torch")
        def wrong() -> Any:
            x = torch.randn(1 << 10, device="cuda")
            return longpole_suite.Case(lambda x: x + 1, [x], reference=lambda x: x)

        out = io.StringIO()
        self.assertEqual(suite.main(["run", "T", "--max-seconds", "1"], out), 1)
        events = [json.loads(line) for line in out.getvalue().splitlines()]
        for event in events:
            self.assertEqual(faults(schema("run"), event), [])
        print(out.getvalue() if "-v" in sys.argv else "", end="")
        ends = {event["key"]: event for event in events if event["event"] == "end"}
        self.assertEqual([end["correct"] for end in ends.values()], [True, True])
        self.assertIn("Wrong", next(event for event in events if event["event"] == "error")["message"])
        self.assertTrue(all(event["sm_clock_mhz"] for event in events if event["event"] == "sample"))


if __name__ == "__main__":
    unittest.main()
