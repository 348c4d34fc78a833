"""Tests of longpole_torch: its logic against a stand-in for torch, and the real thing where torch is installed.

Run with ``python3 -m unittest discover -s python/tests``. With ``LONGPOLE`` set to the program, its real report is tested too.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import os
import stat
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest
from pathlib import Path
from typing import Any, Dict, List, Optional
from unittest import mock

HERE = Path(__file__).resolve().parent
MODULE = HERE.parent / "longpole_torch.py"
TRACE = HERE.parent.parent / "corpus" / "kineto" / "bad.json.gz"
PROGRAM = os.environ.get("LONGPOLE")
HAS_TORCH = importlib.util.find_spec("torch") is not None
# What a launcher or a user may have set, and the tests must not see.
OUTSIDE = ["RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT", "LONGPOLE", "NO_COLOR", "COLUMNS"]


class FakeProfiler:
    """Walks through a schedule as torch does: it hands a trace over after the last recorded step, or on stop while it records."""

    def __init__(self, torch: Any, options: Dict[str, Any]) -> None:
        self.torch = torch
        self.options = options
        self.steps = 0
        self.running = False

    def _action(self) -> str:
        schedule = self.options["schedule"]
        if schedule is None:
            return "record"
        first = schedule["wait"] + schedule["warmup"]
        return "record" if first <= self.steps < first + schedule["active"] else "other"

    def start(self) -> None:
        self.torch.log.append("start")
        self.running = True

    def step(self) -> None:
        before = self._action()
        self.steps += 1
        self.torch.log.append("step")
        if before == "record" and self._action() != "record":
            self.options["on_trace_ready"](self)

    def stop(self) -> None:
        self.torch.log.append("stop")
        self.running = False
        if self.torch.stop_error is not None:
            raise self.torch.stop_error
        if self._action() == "record":
            self.options["on_trace_ready"](self)

    def export_chrome_trace(self, path: str) -> None:
        self.torch.log.append("export")
        if self.torch.export_error is not None:
            raise self.torch.export_error
        Path(path).write_bytes(TRACE.read_bytes())


class Store:
    """The key-value store of a process group."""

    def __init__(self) -> None:
        self.values: Dict[str, str] = {}

    def compare_set(self, key: str, expected: str, value: str) -> bytes:
        if self.values.get(key, "") == expected:
            self.values[key] = value
        return self.values[key].encode()


def fake_torch(cuda: bool = False, rank: Optional[int] = None, world: int = 1, store: Optional[Store] = None) -> Any:
    """A module with as much of torch as longpole_torch touches; with a rank, its process group is initialised."""
    torch = types.ModuleType("torch")
    torch.log = []
    torch.stop_error = None
    torch.export_error = None
    torch.synchronise_error = None

    def synchronize() -> None:
        torch.log.append("synchronise")
        if torch.synchronise_error is not None:
            raise torch.synchronise_error

    torch.cuda = types.SimpleNamespace(is_available=lambda: cuda, is_initialized=lambda: cuda, synchronize=synchronize)
    torch.made = []

    def profile(**options: Any) -> FakeProfiler:
        torch.made.append(FakeProfiler(torch, options))
        return torch.made[-1]

    torch.profiler = types.SimpleNamespace(
        profile=profile, schedule=lambda **kinds: kinds, ProfilerActivity=types.SimpleNamespace(CPU="cpu", CUDA="cuda")
    )
    c10d = types.ModuleType("torch.distributed.distributed_c10d")
    c10d._get_default_store = lambda: store
    torch.distributed = types.ModuleType("torch.distributed")
    torch.distributed.is_available = lambda: True
    torch.distributed.is_initialized = lambda: rank is not None
    torch.distributed.get_rank = lambda: rank
    torch.distributed.get_world_size = lambda: world
    torch.submodules = {"torch": torch, "torch.distributed": torch.distributed, "torch.distributed.distributed_c10d": c10d}
    return torch


def load(torch: Any) -> Any:
    """The module under test, as a new process that has this torch would import it."""
    spec = importlib.util.spec_from_file_location("longpole_torch_under_test", MODULE)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, {"torch": torch}):
        spec.loader.exec_module(module)
    return module


class Case(unittest.TestCase):
    """A scratch folder, a clean environment and captured output for every test."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name) / "traces"
        self.scratch = Path(scratch.name)
        self.enterContext_(mock.patch.dict(os.environ, {name: "" for name in OUTSIDE}))
        for name in OUTSIDE:
            del os.environ[name]
        self.out = self.enterContext_(contextlib.redirect_stdout(io.StringIO()))
        self.err = self.enterContext_(contextlib.redirect_stderr(io.StringIO()))

    def enterContext_(self, manager: Any) -> Any:
        # unittest has this itself from Python 3.11 on.
        value = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return value

    def program(self, body: str) -> str:
        """A stand-in for the longpole program."""
        path = self.scratch / "longpole-stand-in"
        path.write_text(f"#!{sys.executable}\nimport os, sys\n{textwrap.dedent(body)}")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def echo(self) -> str:
        return self.program("print('ran', *sys.argv[1:])")

    def use(self, torch: Any) -> Any:
        self.enterContext_(mock.patch.dict(sys.modules, torch.submodules))
        return load(torch)

    def files(self) -> List[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())


class Recording(Case):
    def test_defaults_warm_up_then_record_four_steps(self) -> None:
        torch = fake_torch(cuda=True)
        module = self.use(torch)
        with module.profile(self.folder, binary=self.echo()) as run:
            for number in range(1, 9):
                run.step()
                self.assertEqual(run.trace_path is not None, number >= 5, "the report comes while the loop goes on")
        options = torch.made[0].options
        self.assertEqual(options["schedule"], {"wait": 0, "warmup": 1, "active": 4, "repeat": 1})
        self.assertEqual(options["activities"], ["cpu", "cuda"])
        self.assertEqual((options["record_shapes"], options["profile_memory"], options["with_stack"]), (True, True, False))
        self.assertEqual(torch.log, ["start", *["step"] * 4, "synchronise", "step", "export", *["step"] * 3, "stop"])
        self.assertEqual(self.out.getvalue(), f"ran triage {run.trace_path}\n")
        self.assertEqual(run.report, self.out.getvalue())

    def test_without_a_gpu_only_the_cpu_is_asked_for(self) -> None:
        torch = fake_torch()
        with self.use(torch).profile(self.folder, active=None, report="none"):
            pass
        self.assertEqual(torch.made[0].options["activities"], ["cpu"])
        self.assertIsNone(torch.made[0].options["schedule"])
        self.assertEqual(torch.log, ["start", "stop", "export"])

    def test_a_block_that_ends_while_recording_is_synchronised_and_written(self) -> None:
        torch = fake_torch(cuda=True)
        with self.use(torch).profile(self.folder, wait=1, report="none") as run:
            run.step()
            run.step()
            run.step()
        self.assertEqual(torch.log, ["start", "step", "step", "step", "synchronise", "stop", "export"])
        self.assertTrue(run.trace_path.is_file())

    def test_options_are_passed_on(self) -> None:
        torch = fake_torch(cuda=True)
        self.use(torch).profile(self.folder, with_stack=True, record_shapes=False, with_flops=True, activities=["cpu"])
        options = torch.made[0].options
        self.assertEqual((options["with_stack"], options["record_shapes"], options["with_flops"]), (True, False, True))
        self.assertEqual(options["activities"], ["cpu"])

    def test_a_block_that_never_records_says_why(self) -> None:
        module = self.use(fake_torch())
        with module.profile(self.folder):
            pass
        self.assertIn("call step()", self.err.getvalue())
        with module.profile(self.folder, warmup=3) as run:
            run.step()
        self.assertIn("ended after 1 steps, and recording begins after 3", self.err.getvalue())
        self.assertIsNone(run.trace_path)
        self.assertFalse(self.folder.exists())

    def test_nonsense_is_refused_before_the_block_runs(self) -> None:
        module = self.use(fake_torch())
        for wrong in ({"active": 0}, {"warmup": -1}, {"wait": -1}, {"report": "loud"}):
            with self.assertRaises(ValueError):
                module.profile(self.folder, **wrong)
        run = module.profile(self.folder, report="none", active=None)
        with run:
            pass
        with self.assertRaises(RuntimeError):
            run.__enter__()


class Exceptions(Case):
    def test_the_exception_passes_and_the_trace_is_written(self) -> None:
        torch = fake_torch()
        module = self.use(torch)
        error = KeyError("mine")
        with self.assertRaises(KeyError) as caught, module.profile(self.folder, binary=self.echo()) as run:
            run.step()
            raise error
        self.assertIs(caught.exception, error)
        self.assertFalse(torch.made[0].running)
        self.assertTrue(run.trace_path.is_file())
        self.assertEqual(self.out.getvalue(), "", "the user's traceback stays the last thing on the screen")
        self.assertIn(str(run.trace_path), self.err.getvalue())

    def test_interrupts_pass_too(self) -> None:
        for kind in (KeyboardInterrupt, SystemExit):
            module = self.use(fake_torch())
            with self.assertRaises(kind), module.profile(self.folder, active=None, report="none"):
                raise kind
        self.assertEqual(len(self.files()), 2)

    def test_a_dead_device_does_not_hide_the_exception(self) -> None:
        torch = fake_torch(cuda=True)
        torch.synchronise_error = RuntimeError("illegal memory access")
        torch.stop_error = RuntimeError("still dead")
        with self.assertRaises(ZeroDivisionError), self.use(torch).profile(self.folder, active=None):
            raise ZeroDivisionError
        self.assertIn("stop", torch.log)
        self.assertIn("still dead", self.err.getvalue())

    def test_a_device_error_of_the_block_itself_is_raised_after_the_profiler_is_stopped(self) -> None:
        torch = fake_torch(cuda=True)
        torch.synchronise_error = RuntimeError("illegal memory access")
        with self.assertRaisesRegex(RuntimeError, "illegal"), self.use(torch).profile(self.folder, active=None, report="none"):
            pass
        self.assertFalse(torch.made[0].running)

    def test_a_trace_that_cannot_be_written_is_told_not_raised(self) -> None:
        torch = fake_torch()
        module = self.use(torch)
        torch.export_error = OSError("disk full")
        with module.profile(self.folder, active=None) as run:
            pass
        self.assertIn("disk full", self.err.getvalue())
        self.assertIsNone(run.trace_path)
        self.assertEqual(self.files(), [])
        torch.export_error = None
        blocked = self.scratch / "file"
        blocked.write_text("")
        with module.profile(blocked, active=None):
            pass
        self.assertIn("could not write the trace", self.err.getvalue().splitlines()[-1])


class Folders(Case):
    def test_every_recording_has_a_new_folder(self) -> None:
        module = self.use(fake_torch())
        with mock.patch.object(module.time, "strftime", return_value="20260131-104500"):
            paths = []
            for _ in range(3):
                with module.profile(self.folder, active=None, report="none") as run:
                    pass
                paths.append(str(run.trace_path.relative_to(self.folder)))
        self.assertEqual(paths, [f"20260131-104500{suffix}/trace_rank0.json.gz" for suffix in ("", "-2", "-3")])
        self.assertEqual(self.files(), sorted(paths))

    def test_a_file_is_never_overwritten(self) -> None:
        module = self.use(fake_torch())
        for linking in (True, False):
            folder = self.scratch / f"linking {linking}"
            folder.mkdir()
            (folder / "trace_rank0.json.gz").write_text("precious")
            partial = folder / ".partial"
            partial.write_text("new")
            refuse = mock.patch.object(module.os, "link", side_effect=PermissionError)
            with contextlib.nullcontext() if linking else refuse:
                final = module._publish(partial, folder, "trace_rank0")
            self.assertEqual((final.name, final.read_text()), ("trace_rank0-2.json.gz", "new"))
            self.assertEqual((folder / "trace_rank0.json.gz").read_text(), "precious")

    def test_a_repeating_schedule_has_a_folder_a_cycle(self) -> None:
        torch = fake_torch()
        handler = self.use(torch).trace_handler(self.folder, report="none")
        for _ in range(2):
            handler(FakeProfiler(torch, {}))
        self.assertEqual([Path(name).name for name in self.files()], ["trace_rank0.json.gz"] * 2)
        self.assertEqual(len({Path(name).parent for name in self.files()}), 2)


class Ranks(Case):
    def record(self, rank: int, world: int, store: Optional[Store], **options: Any) -> Any:
        """Profiles as one rank of a run, each rank in a module of its own as in a process of its own."""
        module = self.use(fake_torch(rank=rank if store else None, world=world, store=store))
        environment = {} if store else {"RANK": str(rank), "WORLD_SIZE": str(world)}
        with mock.patch.dict(os.environ, environment), module.profile(self.folder, active=None, binary=self.echo(), **options) as run:
            pass
        return run

    def test_ranks_share_a_folder_and_the_first_reports_over_it(self) -> None:
        for store in (Store(), None):
            with self.subTest(initialised=store is not None):
                before = len(self.files())
                other = self.record(1, 2, store)
                self.assertIsNone(other.report)
                first = self.record(0, 2, store)
                self.assertEqual([path.name for path in (first.trace_path, other.trace_path)], ["trace_rank0.json.gz", "trace_rank1.json.gz"])
                self.assertEqual(first.trace_path.parent, other.trace_path.parent)
                self.assertEqual(first.report, f"ran triage {first.trace_path.parent}\n")
                self.assertEqual(len(self.files()), before + 2)

    def test_the_next_recording_of_a_run_has_another_folder(self) -> None:
        for initialised in (True, False):
            module = self.use(fake_torch(rank=1 if initialised else None, world=2, store=Store()))
            with mock.patch.dict(os.environ, {"RANK": "1", "WORLD_SIZE": "2"}):
                runs = []
                for _ in range(2):
                    with module.profile(self.folder, active=None) as run:
                        pass
                    runs.append(run.trace_path)
            self.assertEqual([path.name for path in runs], ["trace_rank1.json.gz"] * 2)
            self.assertNotEqual(runs[0].parent, runs[1].parent)

    def test_missing_ranks_are_waited_for_a_while_and_told(self) -> None:
        run = self.record(0, 4, Store(), wait_for_ranks_s=0.2)
        self.assertEqual(run.report, f"ran triage {run.trace_path}\n")
        self.assertIn("covers 1 of 4 ranks", self.err.getvalue())

    def test_files_of_other_hosts_are_not_waited_for_long(self) -> None:
        module = self.use(fake_torch())
        self.folder.mkdir()
        for rank in (0, 1):
            (self.folder / f"trace_rank{rank}.json.gz").write_text("")
        with mock.patch.dict(os.environ, {"LOCAL_WORLD_SIZE": "2"}), mock.patch.object(module, "_QUIET_S", 0.1):
            self.assertEqual(module._wait_for_files(self.folder, 16, seconds=3600), 2)

    def test_every_rank_can_report_its_own_file(self) -> None:
        run = self.record(1, 2, Store(), every_rank=True)
        self.assertEqual(run.report, f"ran triage {run.trace_path}\n")

    def test_a_store_that_cannot_help_is_done_without(self) -> None:
        run = self.record(1, 2, mock.Mock(compare_set=mock.Mock(side_effect=RuntimeError)))
        self.assertEqual(run.trace_path.name, "trace_rank1.json.gz")
        self.assertIn(str(os.getppid()), run.trace_path.parent.name)

    def test_an_odd_environment_is_rank_zero_of_one(self) -> None:
        module = self.use(fake_torch())
        for text, expected in (("", (0, 1)), ("two", (0, 1)), ("-1", (0, 1)), ("3", (3, 4))):
            with mock.patch.dict(os.environ, {"RANK": text}):
                self.assertEqual(module._rank_and_world(), expected, text)


class Program(Case):
    def report(self, **options: Any) -> Any:
        module = self.use(fake_torch())
        with module.profile(self.folder, active=None, **options) as run:
            pass
        return run

    def test_a_missing_program_is_told_with_where_the_trace_is(self) -> None:
        for where in ({"binary": "/nowhere/longpole"}, {}):
            with mock.patch.dict(os.environ, {} if where else {"LONGPOLE": "/nowhere/longpole"}):
                run = self.report(**where)
            said = self.err.getvalue().splitlines()[-1]
            for part in (str(run.trace_path), "/nowhere/longpole", "cargo install"):
                self.assertIn(part, said)
            self.assertIsNone(run.report)

    def test_where_the_program_is_looked_for(self) -> None:
        module = self.use(fake_torch())
        stand_in = self.echo()
        named = self.scratch / "bin" / "longpole"
        named.parent.mkdir()
        Path(stand_in).rename(named)
        with mock.patch.dict(os.environ, {"PATH": str(named.parent)}):
            self.assertEqual(module.find_binary()[0], str(named))
            self.assertEqual(module.find_binary("/nowhere/longpole"), (None, ["/nowhere/longpole"]), "a named program is not replaced")
            with mock.patch.dict(os.environ, {"LONGPOLE": "/elsewhere/longpole"}):
                self.assertEqual(module.find_binary(), (None, ["/elsewhere/longpole"]))
                self.assertEqual(module.find_binary(named)[0], str(named))
        built = self.scratch / "target" / "release" / "longpole"
        built.parent.mkdir(parents=True)
        named.rename(built)
        with mock.patch.dict(os.environ, {"PATH": ""}), mock.patch.object(module, "__file__", str(self.scratch / "python" / "longpole_torch.py")):
            self.assertEqual(module.find_binary()[0], str(built.resolve()))

    def test_a_program_that_fails_is_told(self) -> None:
        self.report(binary=self.program("sys.stderr.write('bad day\\n'); sys.exit(3)"))
        self.assertIn("bad day\nlongpole: the trace is in", self.err.getvalue())
        self.assertIn("ended with 3", self.err.getvalue())
        directory = self.scratch / "not a program"
        directory.write_text("no magic")
        directory.chmod(0o700)
        self.report(binary=directory)
        self.assertIn("did not run", self.err.getvalue())

    def test_a_program_that_hangs_is_given_up(self) -> None:
        module = self.use(fake_torch())
        with mock.patch.object(module, "_REPORT_TIMEOUT_S", 0.2):
            with module.profile(self.folder, active=None, binary=self.program("import time; time.sleep(60)")):
                pass
        self.assertIn("did not run", self.err.getvalue())

    def test_short_and_extra_arguments(self) -> None:
        run = self.report(binary=self.echo(), report="short", arguments=["--range", "decode"])
        self.assertEqual(run.report, f"ran triage {run.trace_path} --range decode --report-only\n")

    def test_a_terminal_gets_its_width_and_colour(self) -> None:
        echo = self.program("print(sys.argv[3:], os.environ.get('COLUMNS'))")
        size = mock.patch("shutil.get_terminal_size", return_value=os.terminal_size((77, 20)))
        with size, mock.patch.object(self.out, "isatty", return_value=True):
            self.assertEqual(self.report(binary=echo).report, "['--color', 'always'] 77\n")
            with mock.patch.dict(os.environ, {"NO_COLOR": "1"}):
                self.assertEqual(self.report(binary=echo).report, "[] 77\n")
        self.assertEqual(self.report(binary=echo).report, "[] None\n")

    def test_an_ascii_terminal_gets_question_marks(self) -> None:
        module = self.use(fake_torch())
        raw = io.BytesIO()
        terminal = io.TextIOWrapper(raw, encoding="ascii")
        with contextlib.redirect_stdout(terminal):
            module._show("─ 5 ms\n", markdown=False)
        self.assertEqual(raw.getvalue(), b"? 5 ms\n")

    @unittest.skipUnless(PROGRAM, "LONGPOLE does not name the program")
    def test_the_real_program_reports(self) -> None:
        self.assertIn("\nOperators\n", self.report(binary=PROGRAM).report)
        lines = self.report(binary=PROGRAM, report="short").report.splitlines()
        heads = ["Workload", "Hardware", "Top CUDA time", "Top CPU / orchestration cost", "Next experiment"]
        self.assertEqual([line.partition(":")[0] for line in lines], heads)


class Notebooks(Case):
    def ipython(self, kernel: Any) -> Any:
        display = types.ModuleType("IPython.display")
        display.shown = []
        display.Markdown = lambda text: ("markdown", text)
        display.display = display.shown.append
        package = types.ModuleType("IPython")
        package.get_ipython = lambda: types.SimpleNamespace(kernel=kernel) if kernel else types.SimpleNamespace()
        self.enterContext_(mock.patch.dict(sys.modules, {"IPython": package, "IPython.display": display}))
        return display

    def test_a_kernel_shows_markdown(self) -> None:
        display = self.ipython(kernel="kernel")
        module = self.use(fake_torch())
        with module.profile(self.folder, active=None, binary=self.echo()) as run:
            pass
        self.assertEqual(display.shown, [("markdown", f"ran triage {run.trace_path} --markdown\n")])
        self.assertEqual(self.out.getvalue(), "")

    def test_a_terminal_and_explicit_formats_show_text(self) -> None:
        for kernel, options in ((None, {}), ("kernel", {"arguments": ["--csv"]}), ("kernel", {"report": "short"})):
            display = self.ipython(kernel)
            module = self.use(fake_torch())
            with module.profile(self.folder, active=None, binary=self.echo(), **options) as run:
                pass
            self.assertEqual(display.shown, [])
            self.assertNotIn("--markdown", run.report)
            self.assertTrue(self.out.getvalue().endswith(run.report))


class Source(unittest.TestCase):
    def test_it_is_one_file_for_python_3_9_that_needs_torch_alone(self) -> None:
        tree = ast.parse(MODULE.read_text(), feature_version=(3, 9))
        known = {"__future__", "os", "shutil", "subprocess", "sys", "time", "pathlib", "types", "typing", "torch", "IPython"}
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                self.assertIn(name.partition(".")[0], known)


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, longpole_torch
layer = torch.nn.Linear(16, 16)
def step():
    with torch.profiler.record_function("forward"):
        layer(torch.randn(4, 16)).sum()
"""


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class RealTorch(Case):
    def python(self, body: str, *launcher: str) -> subprocess.CompletedProcess:
        script = self.scratch / "script.py"
        script.write_text(SCRIPT + textwrap.dedent(body))
        environment = {**os.environ, "LONGPOLE": PROGRAM or self.echo()}
        command = [sys.executable, *launcher, str(script), str(MODULE.parent)]
        return subprocess.run(command, cwd=self.scratch, env=environment, capture_output=True, encoding="utf-8", timeout=300)

    def events(self, path: Path) -> List[Dict[str, Any]]:
        import gzip
        import json

        with gzip.open(path) as file:
            return json.load(file)["traceEvents"]

    def test_steps_are_recorded_and_reported(self) -> None:
        done = self.python("""
            with longpole_torch.profile("traces") as run:
                for _ in range(7):
                    step()
                    run.step()
        """)
        self.assertEqual(done.returncode, 0, done.stderr)
        (name,) = self.files()
        events = self.events(self.folder / name)
        self.assertEqual(sum(event.get("name") == "forward" for event in events), 4)
        self.assertTrue(any("Input Dims" in event.get("args", {}) for event in events))
        self.assertTrue(any(event.get("name") == "[memory]" for event in events))
        self.assertIn("forward x4" if PROGRAM else "ran triage", done.stdout)

    def test_an_exception_leaves_a_trace(self) -> None:
        done = self.python("""
            with longpole_torch.profile("traces", active=None):
                step()
                raise KeyError("mine")
        """)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.rstrip().endswith("KeyError: 'mine'"), done.stderr)
        (name,) = self.files()
        self.assertTrue(any(event.get("name") == "forward" for event in self.events(self.folder / name)))

    def test_the_handler_takes_every_cycle(self) -> None:
        done = self.python("""
            schedule = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
            with torch.profiler.profile(schedule=schedule, on_trace_ready=longpole_torch.trace_handler("traces", report="short")) as prof:
                for _ in range(4):
                    step()
                    prof.step()
        """)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.files()), 2)

    def test_torchrun_with_and_without_a_process_group(self) -> None:
        for number, begin in enumerate(("pass", "torch.distributed.init_process_group('gloo')")):
            done = self.python(
                f"""
                {begin}
                with longpole_torch.profile("traces", report="short") as run:
                    for _ in range(5):
                        step()
                        run.step()
                """,
                *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(self.files()), 2 * (number + 1))
            self.assertEqual(len({Path(name).parent for name in self.files()}), number + 1)
            self.assertEqual(done.stdout.count("2 ranks" if PROGRAM else "ran triage"), 1, done.stdout)


if __name__ == "__main__":
    unittest.main()
