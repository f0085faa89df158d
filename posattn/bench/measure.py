"""`run_bench`: every cell of a plan, all contestants one after the other in every round."""

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from posattn.bench.contestant import Contestant
from posattn.bench.entrant import Entrant, Ours, library_version, share_weights
from posattn.bench.inputs import Inputs, described, make_inputs
from posattn.bench.memory import MemoryTask, peak_memory
from posattn.bench.plan import BenchPlan, Cell, Stage
from posattn.bench.results import BenchResult, Case, Measured, save_result
from posattn.bench.subjects import Subject, subject, subjects
from posattn.errors import IncompatibleParts, PosattnError
from posattn.training.config import Precision
from posattn.training.environment import describe_environment

Say = Callable[[str], None]

TOLERANCE: dict[Precision, float] = {"float32": 1e-4, "bf16": 0.3, "float16": 0.05}
"""How far states, which a norm has made about 1 in size, may be from those of ours in float32."""


class OwnFault(RuntimeError):
    """A fault of posattn that a benchmark found: ours on two backends are not the same function."""


@dataclass
class Entry:
    """A contestant with what was measured of it in one cell."""

    contestant: Contestant
    difference: float | None = None
    first: float = 0.0
    seconds: list[float] = field(default_factory=list)
    peak: int | None = None


class Bench:
    """A benchmark under way; `cases` are those that hold at least one whole round."""

    def __init__(self, plan: BenchPlan, say: Say) -> None:
        """Look up everything that the plan names, so that a misspelt name stops it here."""
        self.plan = plan
        self.say = say
        self.names = plan.subjects or tuple(subjects)
        self.chosen = {name: subject(name) for name in self.names}
        self.device = torch.device(plan.device)
        if plan.device == "cuda" and not torch.cuda.is_available():
            raise IncompatibleParts("device is cuda, but torch sees no CUDA device; use cpu")
        self.cases: list[Case] = []
        for one in self.chosen.values():
            for ours in self._entrants(one, mixed=False):
                if isinstance(ours, Ours):
                    ours.config(plan.size)

    def run(self) -> Iterator[None]:
        """Measure cell by cell, with a stop after each."""
        kinds = dict.fromkeys((cell.stage, cell.mixed is not None) for cell in self.plan.cells)
        for name, one in self.chosen.items():
            for stage, mixed in kinds:
                contestants, refused = self._contestants(one, stage, mixed)
                for cell in self.plan.cells:
                    if (cell.stage, cell.mixed is not None) != (stage, mixed):
                        continue
                    self._case(name, one.title, cell, contestants, dict(refused))
                    yield
                del contestants
                gc.collect()

    def _entrants(self, one: Subject, mixed: bool) -> list[Entrant]:
        return one.entrants(self.plan.backends, rivals=self.plan.rivals, unpad=mixed)

    def _contestants(
        self, one: Subject, stage: Stage, mixed: bool
    ) -> tuple[list[Contestant], dict[str, str]]:
        """Return all that can be built, with the weights of the first, and why others cannot."""
        built: list[Contestant] = []
        refused: dict[str, str] = {}
        for entrant in self._entrants(one, mixed):
            reasons = entrant.refusals(self.device)
            if mixed and entrant.no_padding:
                reasons.append(entrant.no_padding)
            if reasons:
                refused[entrant.name] = "; ".join(reasons)
                continue
            for precision in self.plan.precisions:
                for compiled in self._forms(entrant, refused):
                    with _refusing(refused, entrant, entrant.name):
                        built.append(self._build(one, entrant, stage, precision, compiled, built))
        return built, refused

    def _forms(self, entrant: Entrant, refused: dict[str, str]) -> tuple[bool, ...]:
        """Return whether to compile it; both ways if the plan says so and it is ours and can be."""
        if not self.plan.compiled or not isinstance(entrant, Ours):
            return (False,)
        if reason := entrant.no_graphs(self.device):
            refused[f"{entrant.name}, compiled"] = reason
            return (False,)
        return (False, True)

    def _build(
        self,
        one: Subject,
        entrant: Entrant,
        stage: Stage,
        precision: Precision,
        compiled: bool,
        before: Sequence[Contestant],
    ) -> Contestant:
        contestant = Contestant(
            entrant, self.plan.size, stage, self.device, precision=precision, compiled=compiled
        )
        weights = entrant.weights(contestant.model)
        if not before:
            one.level(weights)
        elif entrant.same_function:
            first = before[0]
            share_weights(first.entrant.weights(first.model), weights, entrant.name)
        return contestant

    def _case(
        self,
        name: str,
        title: str,
        cell: Cell,
        contestants: Sequence[Contestant],
        refused: dict[str, str],
    ) -> None:
        """Measure one cell; it becomes a case if a whole round was measured, even if it is interrupted."""
        what = f"{name} {cell}"
        inputs = make_inputs(cell, self.plan.size.vocab_size, self.device)
        entries: list[Entry] = []
        try:
            entries = self._ready(what, inputs, contestants, refused)
            self._rounds(what, inputs, entries)
            if self.plan.measures_memory_of(cell):
                self._memory(name, what, cell, entries)
        finally:
            rounds = min((len(entry.seconds) for entry in entries), default=0)
            if rounds:
                measured = tuple(_measured(entry, rounds) for entry in entries)
                self.cases.append(
                    Case(
                        subject=name, title=title, cell=cell, contestants=measured, refused=refused
                    )
                )

    def _ready(
        self,
        what: str,
        inputs: Inputs,
        contestants: Sequence[Contestant],
        refused: dict[str, str],
    ) -> list[Entry]:
        """Make every first call, in which things are compiled, and compare the states."""
        entries: list[Entry] = []
        expected = None
        for contestant in contestants:
            self.say(f"{what}: first call of {contestant.name}")
            entry = Entry(contestant)
            with _refusing(refused, contestant.entrant, contestant.name):
                contestant.entrant.prepare(contestant.model, inputs.ids.shape[1])
                entry.first = contestant.timed(inputs)
                if contestant.entrant.same_function:
                    states = contestant.states(inputs).float()
                    expected = states if expected is None else expected
                    entry.difference = float((states - expected).abs().max())
                    _check_same(entry)
                entries.append(entry)
        return entries

    def _rounds(self, what: str, inputs: Inputs, entries: Sequence[Entry]) -> None:
        plan = self.plan
        begun = time.monotonic()
        for number in range(-plan.warmup, plan.most_rounds):
            if number == 0:
                begun = time.monotonic()
            if number >= plan.rounds and time.monotonic() - begun >= plan.seconds:
                return
            turn = number % len(entries) if entries else 0
            for entry in [*entries[turn:], *entries[:turn]]:
                seconds = entry.contestant.timed(inputs)
                if number >= 0:
                    entry.seconds.append(seconds)
            self.say(f"{what}: round {number + plan.warmup + 1}")

    def _memory(self, name: str, what: str, cell: Cell, entries: Sequence[Entry]) -> None:
        for entry in entries:
            contestant = entry.contestant
            if contestant.compiled:
                continue
            self.say(f"{what}: peak memory of {contestant.name}")
            task = MemoryTask(
                subject=name,
                name=contestant.entrant.name,
                backends=self.plan.backends,
                size=self.plan.size,
                cell=cell,
                device=self.plan.device,
                threads=self.plan.threads,
                precision=contestant.precision,
            )
            entry.peak = peak_memory(task)


def run_bench(plan: BenchPlan, out: Path, say: Say) -> BenchResult:
    """Measure the plan and return the result, which is in `out`/bench.json after every cell.

    Ctrl-C ends it: the result then holds what was measured and says that it was interrupted.
    """
    with _threads(plan.threads):
        bench = Bench(plan, say)
        conditions = _conditions(bench)
        interrupted = False

        def result() -> BenchResult:
            cases = tuple(bench.cases)
            return BenchResult(
                plan=plan, conditions=conditions, cases=cases, interrupted=interrupted
            )

        try:
            for _ in bench.run():
                save_result(result(), out)
        except KeyboardInterrupt:
            interrupted = True
        save_result(result(), out)
        return result()


def _check_same(entry: Entry) -> None:
    contestant, difference = entry.contestant, entry.difference
    limit = TOLERANCE[contestant.precision]
    if difference is None or not difference <= limit:
        text = f"its states differ by {difference:.2g} from ours with the same weights, more than {limit}"
        if isinstance(contestant.entrant, Ours) and contestant.precision == "float32":
            raise OwnFault(f"{contestant.name}: {text}")
        raise PosattnError(text)


@contextmanager
def _refusing(refused: dict[str, str], entrant: Entrant, name: str) -> Iterator[None]:
    """Note why one contestant cannot take part, so that the others can.

    Whatever a rival raises is noted. Of ours a refusal is, and memory that is too small; anything else
    is a fault of posattn, which goes on to the caller.
    """
    try:
        yield
    except PosattnError as error:
        refused[name] = str(error)
    except Exception as error:
        if isinstance(entrant, Ours) and not isinstance(error, torch.OutOfMemoryError):
            raise
        refused[name] = f"{type(error).__name__}: {error}"


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _measured(entry: Entry, rounds: int) -> Measured:
    contestant = entry.contestant
    return Measured(
        name=contestant.name,
        library=contestant.entrant.library,
        attention=contestant.entrant.runs_on(contestant.model),
        precision=contestant.precision,
        compiled=contestant.compiled,
        same_function=contestant.entrant.same_function,
        difference=entry.difference,
        first_seconds=entry.first,
        seconds=tuple(entry.seconds[:rounds]),
        peak_memory_bytes=entry.peak,
    )


def _conditions(bench: Bench) -> dict[str, Any]:
    """Return what the numbers depend on beside the plan."""
    libraries = {one.library for chosen in bench.chosen.values() for one in chosen.rivals}
    environment = describe_environment(bench.device, {})
    del environment["seeds"], environment["git"]
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        **environment,
        "libraries": {library: library_version(library) for library in sorted(libraries)},
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "load_before": load,
        "order": "all contestants in every round, turning by one from round to round",
        "input": "; ".join(dict.fromkeys(map(described, bench.plan.cells))),
        "memory_method": "largest resident memory of a fresh process that runs two steps, less what it "
        "held after steps of a tiny model (on a GPU: the allocator's peak)",
    }
