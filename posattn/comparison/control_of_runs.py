"""Control after the runs: what the run folders recorded, compared across the arms of each seed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from posattn.comparison.control import Finding
from posattn.comparison.differences import differences, under
from posattn.comparison.run_evidence import RunEvidence
from posattn.recipe.difference import ABSENT, flatten

BATCHES_DEPEND_ON = (
    "data",
    "objective",
    "train.batch_size",
    "train.accumulation",
    "train.data_seed",
)
DATA_DEPENDS_ON = ("data",)
START_DEPENDS_ON = ("encoder.initializer_range", "train.start.path")
BUDGET_DEPENDS_ON = (*BATCHES_DEPEND_ON, "train.steps", "train.epochs")


@dataclass(frozen=True)
class Clash:
    """Two arms of one seed that should have been equal; `where` says in what."""

    arm: str
    other: str
    seed: int
    where: str

    def __str__(self) -> str:
        return f"arms {self.other} and {self.arm}, seed {self.seed}: {self.where}"


def check_runs(runs: Sequence[RunEvidence], baseline: str) -> list[Finding]:
    """Return the findings of all rules that the run folders can prove or disprove."""
    return [
        _as_planned(runs),
        _rule("all arms read the same data with the same tokenizer", runs, _data, DATA_DEPENDS_ON),
        _rule("shared parameters start bit-equal", runs, _starting_values, START_DEPENDS_ON),
        _only_some_arms(runs),
        _rule("all arms see the same batches and masks", runs, _batches, BATCHES_DEPEND_ON),
        _rule("all arms train for the same steps and tokens", runs, _budget, BUDGET_DEPENDS_ON),
        _parameters(runs, baseline),
        _rule("all runs have the same threads, machine and versions", runs, _conditions, ()),
        _backends(runs),
    ]


def _rule(
    rule: str,
    runs: Sequence[RunEvidence],
    compare: Callable[[RunEvidence, RunEvidence], str | int],
    depends_on: tuple[str, ...],
) -> Finding:
    """Compare all runs of a seed with its first; `compare` returns a clash in words, or a count.

    Runs whose recipes differ (as declared) in what the rule depends on are not expected to agree:
    they are compared among themselves only.
    """
    clashes: list[Clash] = []
    pairs = values = 0
    groups = _groups(runs, depends_on)
    for first, *others in groups:
        for run in others:
            outcome = compare(first, run)
            if isinstance(outcome, str):
                clashes.append(Clash(run.arm, first.arm, run.seed, outcome))
            else:
                pairs, values = pairs + 1, values + outcome
    if clashes:
        return Finding(rule, False, "; ".join(str(clash) for clash in clashes))
    seeds = len({run.seed for run in runs})
    detail = f"{pairs} pairs of runs of {seeds} seed(s), {values} values each equal"
    if len(groups) > seeds:
        detail += "; arms that differ in it as declared were compared among themselves only"
        return Finding(rule, False, detail, expected=True)
    return Finding(rule, True, detail)


def _groups(runs: Iterable[RunEvidence], depends_on: tuple[str, ...]) -> list[list[RunEvidence]]:
    groups: dict[Any, list[RunEvidence]] = {}
    for run in runs:
        leaves = flatten(run.planned).items()
        key = tuple((path, repr(value)) for path, value in leaves if under(path, depends_on))
        groups.setdefault((run.seed, key), []).append(run)
    return list(groups.values())


def _as_planned(runs: Sequence[RunEvidence]) -> Finding:
    rule = "every run trained the recipe that was planned"
    changed = {
        f"arm {run.arm}, seed {run.seed}": differences(run.planned, run.recipe)
        for run in runs
        if run.recipe is not None
    }
    wrong = [f"{run}: {', '.join(found)}" for run, found in changed.items() if found]
    return Finding(rule, not wrong, "; ".join(wrong) or f"{len(changed)} recipes compared")


def _data(first: RunEvidence, run: RunEvidence) -> str | int:
    changed = differences(first.data, run.data) if first.data and run.data else {}
    if changed:
        return f"data.json differs in {', '.join(changed)}"
    return len(flatten(run.data))


def _starting_values(first: RunEvidence, run: RunEvidence) -> str | int:
    shared = [
        name
        for name, tensor in run.tensors.items()
        if name in first.tensors and first.tensors[name]["shape"] == tensor["shape"]
    ]
    unequal = [
        name for name in shared if first.tensors[name]["digest"] != run.tensors[name]["digest"]
    ]
    if unequal:
        return f"step 0, {len(unequal)} of {len(shared)} parameters differ: {_some(unequal)}"
    if run.tensors and first.tensors and not shared:
        return "step 0, the two models share no parameter"
    return len(shared)


def _only_some_arms(runs: Sequence[RunEvidence]) -> Finding:
    """List the parameters that not every arm has, or has in another shape."""
    arms: dict[str, dict[str, Any]] = {}
    for run in runs:
        if run.tensors:
            arms.setdefault(run.arm, {name: t["shape"] for name, t in run.tensors.items()})
    common = [
        name
        for name, shape in next(iter(arms.values()), {}).items()
        if all(tensors.get(name) == shape for tensors in arms.values())
    ]
    own = {arm: [name for name in tensors if name not in common] for arm, tensors in arms.items()}
    detail = f"{len(common)} parameters are in every arm"
    for arm, names in own.items():
        if names:
            detail += f"; {arm} has {len(names)} of its own: {_some(names)}"
    return Finding("parameters that only some arms have are listed", True, detail)


def _batches(first: RunEvidence, run: RunEvidence) -> str | int:
    common = [step for step in run.batches if step in first.batches]
    for step in sorted(common):
        if run.batches[step] != first.batches[step]:
            return f"the batches up to step {step} differ"
    same_steps = _steps(run) == _steps(first)
    both = run.finished and first.finished
    if both and same_steps and set(run.batches) != set(first.batches):
        return f"{run.arm} logged other steps than {first.arm}"
    return len(common)


def _steps(run: RunEvidence) -> Any:
    """Return the steps that were planned; runs of other lengths are equal as far as both go."""
    return (run.planned.get("train") or {}).get("steps")


def _budget(first: RunEvidence, run: RunEvidence) -> str | int:
    if not (first.finished and run.finished):
        return 0
    for key in ("step", "tokens", "targets"):
        one, other = first.status.get(key, ABSENT), run.status.get(key, ABSENT)
        if one != other:
            return f"{key}: {one} and {other}"
    return 3


def _parameters(runs: Sequence[RunEvidence], baseline: str) -> Finding:
    """List what each arm has more or less in parameters than the baseline."""
    rule = "the surplus of parameters over the baseline is stated"
    totals: dict[str, int] = {}
    for run in runs:
        if "total" in run.parameters:
            totals.setdefault(run.arm, int(run.parameters["total"]))
    if baseline not in totals:
        counts = ", ".join(f"{arm} {total:,}" for arm, total in totals.items())
        return Finding(rule, True, f"no run of the baseline {baseline} began; {counts or 'none'}")
    base = totals[baseline]
    parts = [
        f"{arm} {total - base:+,} ({(total - base) / base:+.1%})"
        for arm, total in totals.items()
        if arm != baseline
    ]
    detail = f"{baseline} has {base:,} parameters; {', '.join(parts) or 'there is no other arm'}"
    return Finding(rule, True, detail)


def _conditions(first: RunEvidence, run: RunEvidence) -> str | int:
    changed = differences(first.conditions, run.conditions)
    if first.environment and run.environment and changed:
        return f"environment.json differs in {', '.join(changed)}"
    return len(run.conditions)


def _backends(runs: Sequence[RunEvidence]) -> Finding:
    chosen: dict[str, str] = {}
    for run in runs:
        if run.backend:
            compiled = "" if run.graphs is None else f" in {run.graphs} compiled graph(s)"
            chosen.setdefault(run.arm, run.backend + compiled)
    rule = "the backend that computed attention is recorded"
    listed = ", ".join(f"{arm}: {backend}" for arm, backend in chosen.items())
    missing = sorted({run.arm for run in runs if run.finished} - set(chosen))
    if missing:
        return Finding(rule, False, f"no backend is recorded for {', '.join(missing)}")
    return Finding(rule, True, listed or "no run began")


def _some(names: Sequence[str], limit: int = 4) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"{', '.join(names[:limit])}{more}"
