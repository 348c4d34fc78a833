"""Profile a block of PyTorch code and read the report at once.

One file, PyTorch and the standard library only: install it by copying it beside your script. It records a few steps with ``torch.profiler``,
writes one trace a rank, and prints the report of the ``longpole`` program::

    import longpole_torch

    with longpole_torch.profile() as run:        # one warm-up step, then four recorded steps
        for batch in batches:
            model(batch)
            run.step()                           # at the end of every step

Or, with a profiler of your own::

    torch.profiler.profile(..., on_trace_ready=longpole_torch.trace_handler())

What to rely on:

- Exceptions of the block pass through unchanged. The profiler is stopped, and what it recorded until then is written.
- Trouble with the trace file or with the program is told on standard error and never raised: profiling must not end a run.
- Every recording gets a new folder, ``longpole_traces/20260131-104500/trace_rank0.json.gz``. Files appear whole and are never overwritten.
- Under ``torchrun`` each rank writes its own file into the folder of the run, and rank 0 prints one report over all of them. Profile on every
  rank or on rank 0 alone. Ranks on several hosts share a folder once ``torch.distributed`` is initialised; before that, each host has its own.
- In a notebook the report is shown as Markdown.

The trace itself is what torch wrote, with every name in it; redact it before you publish it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, List, Literal, Optional, Sequence, Tuple, Type, Union

import torch

__all__ = ["Profile", "TraceHandler", "find_binary", "profile", "trace_handler"]

PathLike = Union[str, "os.PathLike[str]"]
Report = Literal["full", "short", "none"]

_REPORTS = ("full", "short", "none")
_FORMATS = ("--json", "--csv", "--markdown", "--report-only")
_INSTALL = "cargo install --path crates/longpole --locked (in a checkout), or set LONGPOLE to the program's path"
# Reading a gigabyte takes about a second; a report that takes longer than this is stuck, and the run must go on.
_REPORT_TIMEOUT_S = 300.0
# Files of other hosts may never show up in this folder, so a complete set of this host's files is only waited on this much longer.
_QUIET_S = 2.0

_recordings = 0


def profile(
    folder: PathLike = "longpole_traces",
    *,
    warmup: int = 1,
    active: Optional[int] = 4,
    wait: int = 0,
    record_shapes: bool = True,
    profile_memory: bool = True,
    with_stack: bool = False,
    report: Report = "full",
    arguments: Sequence[str] = (),
    every_rank: bool = False,
    binary: Optional[PathLike] = None,
    wait_for_ranks_s: float = 10.0,
    **profiler_options: Any,
) -> Profile:
    """Returns a context manager that profiles its block, writes the trace and prints the report.

    With the defaults, call ``step()`` on it at the end of every step: after ``wait`` unprofiled and ``warmup`` discarded steps it records
    ``active`` steps, and the report comes right after the last of them, while the loop goes on. ``active=None`` records the whole block
    without steps (warm up before it).

    :param folder: where the folders of the recordings go.
    :param warmup: steps during which the profiler runs and its records are thrown away.
    :param active: steps to record, or None for the whole block.
    :param wait: steps before the warm-up that run unprofiled.
    :param record_shapes: record input shapes (``longpole ops --by shape``, and the workload line of the report).
    :param profile_memory: record allocations (``longpole memory``).
    :param with_stack: record Python stacks (``longpole ops --by stack``); slows the host down a lot.
    :param report: ``"full"``, ``"short"`` (the five lines) or ``"none"``.
    :param arguments: more arguments for ``longpole``, such as ``["--range", "decode_step"]``.
    :param every_rank: every rank prints a report of its own file, instead of rank 0 over all files.
    :param binary: the ``longpole`` program; see :func:`find_binary` for where it is looked for otherwise.
    :param wait_for_ranks_s: how long rank 0 waits, at most, for the files of the other ranks.
    :param profiler_options: anything else that ``torch.profiler.profile`` takes.
    """
    if warmup < 0 or wait < 0 or (active is not None and active < 1):
        raise ValueError("warmup and wait must be at least 0, active at least 1 (or None for the whole block)")
    handler = trace_handler(
        folder, report=report, arguments=arguments, every_rank=every_rank, binary=binary, wait_for_ranks_s=wait_for_ranks_s
    )
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    profiler_options.setdefault("activities", activities)
    schedule = None if active is None else torch.profiler.schedule(wait=wait, warmup=warmup, active=active, repeat=1)
    profiler = torch.profiler.profile(
        schedule=schedule,
        on_trace_ready=handler,
        record_shapes=record_shapes,
        profile_memory=profile_memory,
        with_stack=with_stack,
        **profiler_options,
    )
    return Profile(profiler, handler, None if active is None else (wait + warmup, wait + warmup + active))


def trace_handler(
    folder: PathLike = "longpole_traces",
    *,
    report: Report = "full",
    arguments: Sequence[str] = (),
    every_rank: bool = False,
    binary: Optional[PathLike] = None,
    wait_for_ranks_s: float = 10.0,
) -> TraceHandler:
    """Returns an ``on_trace_ready`` handler that writes the trace and prints the report; the parameters are those of :func:`profile`.

    Each call, so each cycle of a repeating schedule, gets a folder of its own. Torch calls the handler when recording has ended, so
    synchronise the device at the end of the last recorded step, or its last kernels may be missing (:func:`profile` does it for you).
    """
    if report not in _REPORTS:
        raise ValueError(f"report must be one of {', '.join(_REPORTS)}, not {report!r}")
    return TraceHandler(Path(folder), report, list(arguments), every_rank, binary, wait_for_ranks_s)


def find_binary(binary: Optional[PathLike] = None) -> Tuple[Optional[str], List[str]]:
    """Finds the ``longpole`` program: ``binary``, else ``$LONGPOLE``, else on the PATH, else built beside this file's checkout.

    Returns its path, or None, and the places that were looked at. A place that was named explicitly is the only one looked at.
    """
    named = os.fspath(binary) if binary is not None else os.environ.get("LONGPOLE")
    if named:
        return shutil.which(os.path.expanduser(named)), [named]
    built = Path(__file__).resolve().parent.parent / "target" / "release" / "longpole"
    return shutil.which("longpole") or shutil.which(str(built)), ["PATH", str(built)]


class Profile:
    """A profiled block; made by :func:`profile`."""

    def __init__(self, profiler: Any, handler: TraceHandler, window: Optional[Tuple[int, int]]) -> None:
        #: The ``torch.profiler.profile`` that records.
        self.profiler = profiler
        self._handler = handler
        # The first recorded step and the one after the last, or None when the whole block is recorded.
        self._window = window
        self._steps = 0
        self._entered = False

    @property
    def trace_path(self) -> Optional[Path]:
        """This rank's trace file, once it is written."""
        return self._handler.trace_path

    @property
    def report(self) -> Optional[str]:
        """The report as it was printed, once it was."""
        return self._handler.report_text

    def step(self) -> None:
        """Tells the profiler that a step has ended."""
        self._steps += 1
        if self._window is not None and self._steps == self._window[1]:
            _synchronise()
        self.profiler.step()

    def __enter__(self) -> Profile:
        if self._entered:
            raise RuntimeError("this block was profiled already: call longpole_torch.profile() again for another one")
        self._entered = True
        self._handler.name_recording()
        self.profiler.start()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> Literal[False]:
        recording = self._window is None or self._window[0] <= self._steps < self._window[1]
        self._handler.block_raised = kind is not None
        try:
            try:
                if recording:
                    _synchronise()
            finally:
                self.profiler.stop()
        except Exception as stopping:
            # After a failure on the device these calls fail too; the first exception is the one to see.
            if kind is None:
                raise
            _say(f"could not stop the profiler cleanly: {stopping}")
        if not recording and self._handler.calls == 0:
            self._say_nothing_recorded()
        return False

    def _say_nothing_recorded(self) -> None:
        if self._handler.speaks():
            first = self._window[0] if self._window is not None else 0
            if self._steps == 0:
                _say("nothing was recorded: call step() at the end of every step, or pass active=None to record the whole block")
            else:
                _say(f"nothing was recorded: the block ended after {self._steps} steps, and recording begins after {first}")


class TraceHandler:
    """Writes the trace of a profiler and prints the report; made by :func:`trace_handler`."""

    def __init__(
        self, folder: Path, report: str, arguments: List[str], every_rank: bool, binary: Optional[PathLike], wait_for_ranks_s: float
    ) -> None:
        self._folder = folder
        self._report = report
        self._arguments = arguments
        self._every_rank = every_rank
        self._binary = binary
        self._wait_for_ranks_s = wait_for_ranks_s
        self._name: Optional[str] = None
        #: This rank's newest trace file, once it is written.
        self.trace_path: Optional[Path] = None
        #: The newest report as it was printed, once it was.
        self.report_text: Optional[str] = None
        #: How many traces torch has handed over.
        self.calls = 0
        #: True when the profiled block ended with an exception: then the trace is written and no report is made, so that what went
        #: wrong stays at the end of the output, and no other rank is waited for.
        self.block_raised = False

    def name_recording(self) -> None:
        """Agrees with the other ranks on the folder of the next trace. Called by itself if need be."""
        if self._name is None:
            self._name = _recording_name()

    def speaks(self) -> bool:
        """True when this rank prints."""
        return self._every_rank or _rank_and_world()[0] == 0

    def __call__(self, profiler: Any) -> None:
        """Writes the trace of ``profiler`` and prints the report."""
        self.calls += 1
        self.name_recording()
        name, self._name = self._name, None
        try:
            self.trace_path = self._write(profiler, name)
        except (OSError, RuntimeError) as error:
            _say(f"could not write the trace into {self._folder}: {error}")
            return
        if not self.speaks():
            return
        if self.block_raised:
            _say(f"the block raised; what was recorded until then is in {self.trace_path}")
            return
        if self._report == "none":
            _say(f"the trace is in {self.trace_path}")
            return
        self._print_report(self._report_input(self.trace_path))

    def _write(self, profiler: Any, name: Optional[str]) -> Path:
        rank, _ = _rank_and_world()
        folder = _make_folder(self._folder, name)
        # The name is hidden so that a reader of the folder skips it, and ends in .gz so that torch compresses it.
        partial = folder / f".trace_rank{rank}.{os.getpid()}.partial.json.gz"
        try:
            profiler.export_chrome_trace(str(partial))
            return _publish(partial, folder, f"trace_rank{rank}")
        finally:
            if partial.exists():
                partial.unlink()

    def _report_input(self, own: Path) -> Path:
        """The folder when it holds other ranks' files too, else this rank's file."""
        _, world = _rank_and_world()
        if world == 1 or self._every_rank:
            return own
        found = _wait_for_files(own.parent, world, self._wait_for_ranks_s)
        if found < world:
            _say(f"the report covers {found} of {world} ranks: no other trace files came into {own.parent}")
        return own.parent if found > 1 else own

    def _print_report(self, trace: Path) -> None:
        program, places = find_binary(self._binary)
        if program is None:
            _say(f"the trace is in {trace}; the longpole program, which prints the report, is not at {' or '.join(places)}. Install: {_INSTALL}")
            return
        notebook = _in_notebook() and self._report == "full" and not any(flag in self._arguments for flag in _FORMATS)
        command = [program, "triage", str(trace), *self._arguments]
        environment = dict(os.environ)
        if self._report == "short":
            command.append("--report-only")
        elif notebook:
            command.append("--markdown")
        elif sys.stdout.isatty():
            # The program writes into a pipe, because sys.stdout may be anything; so it is told what the terminal is like.
            environment.setdefault("COLUMNS", str(shutil.get_terminal_size((120, 40)).columns))
            if not os.environ.get("NO_COLOR") and not any(argument.split("=")[0] == "--color" for argument in self._arguments):
                command += ["--color", "always"]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", env=environment, timeout=_REPORT_TIMEOUT_S
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            _say(f"the trace is in {trace}; {program} did not run: {error}")
            return
        if done.stderr:
            print(done.stderr, end="", file=sys.stderr)
        if done.returncode != 0:
            _say(f"the trace is in {trace}; {program} ended with {done.returncode}")
        if done.stdout:
            self.report_text = done.stdout
            _show(done.stdout, notebook)
        _say(f"the trace is in {trace}")


def _say(text: str) -> None:
    print(f"longpole: {text}", file=sys.stderr)


def _show(report: str, markdown: bool) -> None:
    if markdown:
        from IPython.display import Markdown, display

        display(Markdown(report))
        return
    try:
        print(report, end="", flush=True)
    except UnicodeEncodeError:
        # An ASCII terminal: rules and bars become question marks, numbers stay.
        encoding = getattr(sys.stdout, "encoding", None) or "ascii"
        print(report.encode(encoding, "replace").decode(encoding), end="", flush=True)


def _in_notebook() -> bool:
    """True under a Jupyter-like kernel, false under a terminal IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None


def _synchronise() -> None:
    """Waits for the device, if this process has used one, so that its last kernels are recorded."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _process_group() -> Any:
    """``torch.distributed`` when it is initialised, else None."""
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed
    return None


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else default


def _rank_and_world() -> Tuple[int, int]:
    """This process' rank and the number of ranks: from the process group, else from the launcher's environment, else 0 of 1."""
    group = _process_group()
    if group is not None:
        return group.get_rank(), group.get_world_size()
    rank = _number("RANK", 0)
    return rank, max(_number("WORLD_SIZE", 1), rank + 1)


def _recording_name() -> Optional[str]:
    """A folder name that all ranks of this run come to, and no other run; None when there is one rank and any new name will do."""
    global _recordings
    _recordings += 1
    if _rank_and_world()[1] == 1:
        return None
    return _name_by_store(_recordings) or _name_by_launcher(_recordings)


def _name_by_store(recording: int) -> Optional[str]:
    """The name that the first rank to ask put into the process group's store. Not a collective: a rank that does not profile blocks nobody."""
    if _process_group() is None:
        return None
    proposal = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(2).hex()}"
    try:
        from torch.distributed.distributed_c10d import _get_default_store

        agreed = _get_default_store().compare_set(f"longpole/recording/{recording}", "", proposal)
    except Exception:
        # Private to torch and not offered by every store; the launcher's name is nearly as good.
        return None
    return agreed.decode() if isinstance(agreed, bytes) else str(agreed)


def _name_by_launcher(recording: int) -> str:
    """A name made of when the launcher, which is the parent of all ranks on a host, was started, and its process id."""
    launcher = os.getppid()
    restarts = _number("TORCHELASTIC_RESTART_COUNT", 0)
    started = _process_start(launcher)
    stamp = "launcher" if started is None else time.strftime("%Y%m%d-%H%M%S", time.localtime(started))
    name = f"{stamp}-{launcher}"
    if restarts:
        name += f"-restart{restarts}"
    return name if recording == 1 else f"{name}-{recording}"


def _process_start(process: int) -> Optional[int]:
    """When a process was started, in seconds of the epoch; the same for every asker. None where /proc does not tell."""
    try:
        # The command, in parentheses, may hold spaces; the start time is the twentieth field after it, in clock ticks since boot.
        ticks = int(Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[19])
        boot = next(int(line.split()[1]) for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
        return boot + ticks // os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration, AttributeError):
        return None


def _make_folder(parent: Path, name: Optional[str]) -> Path:
    """Makes the folder that the ranks agreed on, or a new one named by the time."""
    if name is not None:
        folder = parent / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    stamp = time.strftime("%Y%m%d-%H%M%S")
    number = 1
    while True:
        folder = parent / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            if not folder.exists():
                raise
            number += 1


def _publish(partial: Path, folder: Path, stem: str) -> Path:
    """Gives a finished file its name in one step, a numbered one if the name is taken."""
    number = 1
    while True:
        final = folder / (f"{stem}.json.gz" if number == 1 else f"{stem}-{number}.json.gz")
        try:
            os.link(partial, final)
        except FileExistsError:
            number += 1
            continue
        except OSError:
            # A file system without hard links: a rename would overwrite, so look first.
            if final.exists():
                number += 1
                continue
            os.rename(partial, final)
        return final


def _wait_for_files(folder: Path, world: int, seconds: float) -> int:
    """Waits until every rank's file is there; returns how many are."""
    local = min(_number("LOCAL_WORLD_SIZE", world), world)
    begin = changed = time.monotonic()
    found = 0
    while True:
        now = time.monotonic()
        count = len({path.name.split(".")[0].split("-")[0] for path in folder.glob("trace_rank*.json.gz")})
        if count != found:
            found, changed = count, now
        host_is_complete = local < world and found >= local and now - changed > _QUIET_S
        if found >= world or host_is_complete or now - begin >= seconds:
            return found
        time.sleep(0.05)
