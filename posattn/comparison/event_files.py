"""Event files for TensorBoard out of what runs have logged: read from files, so it changes no run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from posattn.comparison.watching import FoundRun, find_runs
from posattn.errors import PosattnError
from posattn.training.follow import MetricsFollower
from posattn.training.run_folder import RunFolder

SUFFIX = ".posattn"
"""The end of the names of our event files; only such are ever deleted."""

NO_SCALARS = ("kind", "step")


@runtime_checkable
class EventWriter(Protocol):
    """What is needed of `torch.utils.tensorboard.SummaryWriter`."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int, walltime: float) -> None:
        """Write one value."""

    def add_text(self, tag: str, text_string: str, global_step: int, walltime: float) -> None:
        """Write one text, read as Markdown."""

    def flush(self) -> None:
        """Bring everything to the file."""

    def close(self) -> None:
        """End the file."""


OpenWriter = Callable[[Path, int | None], EventWriter]
"""Opens a writer in a folder; from the step given, events of earlier files there count no more."""


def open_event_file(folder: Path, purge_step: int | None) -> EventWriter:
    """Return TensorBoard's own writer; `PosattnError` if the package is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise PosattnError(
            "event files need the package tensorboard, which is not installed: "
            "pip install 'posattn[tensorboard]'"
        ) from error
    writer: EventWriter = SummaryWriter(str(folder), purge_step=purge_step, filename_suffix=SUFFIX)
    return writer


class EventExport:
    """Copies every logged number of all runs in a folder to event files, one folder a run."""

    def __init__(self, folder: Path, out: Path, opener: OpenWriter | None = None) -> None:
        """Export the runs of `folder` to `out`; event files of an earlier export there go.

        TensorBoard keeps numbers as 32-bit floats. `opener` is `open_event_file` unless given.
        """
        self.folder = folder
        self.out = out
        self._open = open_event_file if opener is None else opener
        self._runs: dict[Path, _RunExport] = {}

    def export(self) -> int:
        """Write what is new in all runs, and return how many values that was."""
        written = 0
        for run in find_runs(self.folder) if self.folder.is_dir() else []:
            if run.folder not in self._runs:
                self._runs[run.folder] = _RunExport(run, self.out / run.name, self._open)
            written += self._runs[run.folder].export()
        return written

    @property
    def runs(self) -> int:
        """Return the number of runs of which something was written."""
        return sum(run.writer is not None for run in self._runs.values())

    @property
    def damaged(self) -> int:
        """Return the number of lines that could not be read."""
        return sum(run.follower.damaged for run in self._runs.values())

    def close(self) -> None:
        """End all event files."""
        for run in self._runs.values():
            if run.writer is not None:
                run.writer.close()


class _RunExport:
    """The export of one run."""

    def __init__(self, run: FoundRun, out: Path, opener: OpenWriter) -> None:
        self.follower = MetricsFollower(RunFolder(run.folder).metrics)
        self.writer: EventWriter | None = None
        self._recipe = RunFolder(run.folder).recipe
        self._out = out
        self._open = opener
        self._restarts = 0
        self._began = 0.0

    def export(self) -> int:
        lines = self.follower.new_lines()
        if not lines:
            return 0
        if self.writer is None or self.follower.restarts > self._restarts:
            self._start(lines)
        assert self.writer is not None
        written = sum(self._write(line) for line in lines)
        self.writer.flush()
        return written

    def _start(self, lines: list[dict[str, Any]]) -> None:
        """Open a file that takes the place of what was written before."""
        again = self.writer is not None
        if self.writer is not None:
            self.writer.close()
        else:
            for old in self._out.glob(f"events.out.tfevents.*{SUFFIX}"):
                old.unlink()
        self._restarts = self.follower.restarts
        changed = self.follower.path.stat().st_mtime
        self._began = changed - float(lines[-1].get("seconds") or 0.0)
        self.writer = self._open(self._out, 0 if again else None)
        if self._recipe.is_file():
            text = self._recipe.read_text(encoding="utf-8")
            indented = "".join(f"    {line}\n" for line in text.splitlines())
            self.writer.add_text("recipe", indented, 0, self._began)

    def _write(self, line: dict[str, Any]) -> int:
        """Write every number of a line, and its `reason`; return how many numbers."""
        assert self.writer is not None
        step = int(line.get("step") or 0)
        when = self._began + float(line.get("seconds") or 0.0)
        kind = line.get("kind", "line")
        numbers = {key: value for key, value in line.items() if key not in NO_SCALARS}
        numbers = {key: value for key, value in numbers.items() if _is_number(value)}
        for key, value in numbers.items():
            self.writer.add_scalar(f"{kind}/{key}", value, step, when)
        if line.get("reason"):
            self.writer.add_text(f"{kind}/reason", str(line["reason"]), step, when)
        return len(numbers)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
