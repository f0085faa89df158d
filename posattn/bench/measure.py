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
from posattn.bench.entrant import Entrant, Ids, Ours, library_version, share_weights
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
            for ours in self._entrants(one):
                if isinstance(ours, Ours):
                    ours.config(plan.size)

    def run(self) -> Iterator[None]:
        """Measure cell by cell, with a stop after each."""
        stages = dict.fromkeys(cell.stage for cell in self.plan.cells)
        for name, one in self.chosen.items():
            for stage in stages:
                contestants, refused = self._contestants(one, stage)
                for cell in (cell for cell in self.plan.cells if cell.stage == stage):
                    self._case(name, one.title, cell, contestants, dict(refused))
                    yield
                del contestants
                gc.collect()

    def _entrants(self, one: Subject) -> list[Entrant]:
        return one.entrants(self.plan.backends, rivals=self.plan.rivals)

    def _contestants(self, one: Subject, stage: Stage) -> tuple[list[Contestant], dict[str, str]]:
        """Return all that can be built, with the weights of the first, and why others cannot."""
        built: list[Contestant] = []
        refused: dict[str, str] = {}
        for entrant in self._entrants(one):
            if reasons := entrant.refusals(self.device):
                refused[entrant.name] = "; ".join(reasons)
                continue
            for precision in self.plan.precisions:
                for compiled in self._forms(entrant):
                    with _refusing(refused, entrant.name):
                        built.append(self._build(one, entrant, stage, precision, compiled, built))
        return built, refused

    def _forms(self, entrant: Entrant) -> tuple[bool, ...]:
        return (False, True) if self.plan.compiled and isinstance(entrant, Ours) else (False,)

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
        ids = self._ids(cell)
        entries: list[Entry] = []
        try:
            entries = self._ready(what, cell, ids, contestants, refused)
            self._rounds(what, ids, entries)
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

    def _ids(self, cell: Cell) -> Ids:
        generator = torch.Generator().manual_seed(0)
        shape = (cell.batch_size, cell.length)
        ids = torch.randint(3, self.plan.size.vocab_size, shape, generator=generator)
        return ids.to(self.device)

    def _ready(
        self,
        what: str,
        cell: Cell,
        ids: Ids,
        contestants: Sequence[Contestant],
        refused: dict[str, str],
    ) -> list[Entry]:
        """Make every first call, in which things are compiled, and compare the states."""
        entries: list[Entry] = []
        expected = None
        for contestant in contestants:
            self.say(f"{what}: first call of {contestant.name}")
            entry = Entry(contestant)
            with _refusing(refused, contestant.name):
                contestant.entrant.prepare(contestant.model, cell.length)
                entry.first = contestant.timed(ids)
                if contestant.entrant.same_function:
                    states = contestant.states(ids).float()
                    expected = states if expected is None else expected
                    entry.difference = float((states - expected).abs().max())
                    _check_same(entry)
                entries.append(entry)
        return entries

    def _rounds(self, what: str, ids: Ids, entries: Sequence[Entry]) -> None:
        plan = self.plan
        begun = time.monotonic()
        for number in range(-plan.warmup, plan.most_rounds):
            if number == 0:
                begun = time.monotonic()
            if number >= plan.rounds and time.monotonic() - begun >= plan.seconds:
                return
            turn = number % len(entries) if entries else 0
            for entry in [*entries[turn:], *entries[:turn]]:
                seconds = entry.contestant.timed(ids)
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
        raise PosattnError(
            f"its states differ by {difference:.2g} from ours with the same weights, more than {limit}"
        )


@contextmanager
def _refusing(refused: dict[str, str], name: str) -> Iterator[None]:
    """Note why one contestant cannot take part, whatever it raises, so that the others can."""
    try:
        yield
    except Exception as error:
        text = str(error) if isinstance(error, PosattnError) else f"{type(error).__name__}: {error}"
        refused[name] = text


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
        "input": "random tokens without padding",
        "memory_method": "largest resident memory of a fresh process that runs two steps, less what it "
        "held after steps of a tiny model (on a GPU: the allocator's peak)",
    }
