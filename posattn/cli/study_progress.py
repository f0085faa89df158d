"""Live progress of a study: a grid of arms x seeds on a terminal, lines elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from posattn.cli.app import say

if TYPE_CHECKING:
    from rich.console import RenderableType

_MARKS = {
    "waiting": ("-", "dim"),
    "evaluating": ("evaluating", "cyan"),
    "finished": ("done", "green"),
    "diverged": ("diverged", "red"),
    "failed": ("failed", "red"),
    "killed": ("killed", "red"),
    "interrupted": ("stopped", "yellow"),
}


@contextmanager
def study_progress() -> Iterator[Callable[[Any], None]]:
    """Yield a function that draws the `StudyProgress` of a study."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), refresh_per_second=4) as live:
        yield lambda progress: live.update(draw(progress))


def draw(progress: Any) -> "RenderableType":
    """Return the grid of arms x seeds with a headline."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    seeds = list(dict.fromkeys(run.seed for run in progress.runs))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("arm", no_wrap=True)
    for seed in seeds:
        table.add_column(f"seed {seed}", min_width=14, no_wrap=True)
    cells = {(run.arm, run.seed): run for run in progress.runs}
    for arm in dict.fromkeys(run.arm for run in progress.runs):
        row = [
            Text(*_cell(cells[arm, seed])) if (arm, seed) in cells else Text("") for seed in seeds
        ]
        table.add_row(Text(arm), *row)
    return Group(Text(headline(progress), style="bold"), table)


def headline(progress: Any) -> str:
    """Return the study's name, stage, counts and time in one line, after those of its suite."""
    parts = _of_suite(progress.suite) if progress.suite else []
    parts += [f"{progress.study}: {progress.finished} of {progress.total} runs"]
    if progress.failed:
        parts.append(f"{progress.failed} failed")
    parts.append(progress.message or ("training" if progress.stage == "runs" else progress.stage))
    parts.append(f"{minutes(progress.seconds)} so far")
    if progress.eta_seconds is not None:
        parts.append(f"about {minutes(progress.eta_seconds)} of training left")
    return ", ".join(parts)


def _of_suite(share: Any) -> list[str]:
    parts = [f"{share.suite}: task {share.number} of {share.tasks}"]
    parts.append(f"{share.runs_ended} of {share.runs} runs in all")
    if share.eta_seconds is not None:
        parts.append(f"about {minutes(share.eta_seconds)} left in all")
    return parts


def _cell(run: Any) -> tuple[str, str]:
    if run.state != "training":
        text, style = _MARKS.get(run.state, (run.state, ""))
        if run.state == "finished" and run.loss is not None:
            text = f"{text}, {run.loss:.3f}"
        return text, style
    share = f"{100 * run.step / run.steps:3.0f}%" if run.steps else f"step {run.step}"
    loss = "" if run.loss is None else f", {run.loss:.3f}"
    return f"{share}{loss}", "cyan"


def minutes(seconds: float) -> str:
    """Return a time as `3 min 05 s`, or `12 s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


class _Lines:
    """A line whenever the stage or the state of a run changes."""

    def __init__(self) -> None:
        self._stage = ("", "", "")
        self._states: dict[tuple[str, str, int], str] = {}

    def __call__(self, progress: Any) -> None:
        stage = (progress.study, progress.stage, progress.message)
        if stage != self._stage:
            self._stage = stage
            say(headline(progress))
        for run in progress.runs:
            key = (progress.study, run.arm, run.seed)
            if self._states.get(key, "waiting") != run.state:
                reason = f": {run.reason}" if run.reason else ""
                say(f"{progress.study}: {run.arm}, seed {run.seed}: {run.state}{reason}")
            self._states[key] = run.state
