"""`account`: what every arm of a study folder got, read from what its runs recorded."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from posattn.comparison.budgets.config import HELD, SETS
from posattn.comparison.budgets.schema import COMPARED, ArmBudget, BudgetInfo
from posattn.comparison.study_files import RunFiles, StudyFiles, read_json
from posattn.recipe.flops import TRAINING_FACTOR

FILE = "match.json"


def account(files: StudyFiles) -> BudgetInfo:
    """Return the budgets of all arms and their differences from the baseline's."""
    options = dict(files.plan.match or {"name": "steps"})
    name = str(options.pop("name"))
    timed = files.folder / FILE
    measured = read_json(timed, dict[str, Any]) if timed.is_file() else {}
    runs = {arm.name: [r for r in files.runs if r.arm == arm.name] for arm in files.plan.arms}
    arms = [_arm(arm, own, measured) for arm, own in runs.items()]
    base = next(arm for arm in arms if arm.arm == files.plan.baseline)
    times = _seconds_over_baseline(runs, files.plan.baseline)
    return BudgetInfo(
        match=name,
        options=options,
        held=HELD.get(name, name),
        sets=SETS.get(name),
        arms=[
            arm.model_copy(
                update={"over_baseline": {**_over(arm, base), "seconds": times[arm.arm]}}
            )
            for arm in arms
        ],
        file=FILE if measured else None,
    )


def _arm(arm: str, runs: Sequence[RunFiles], measured: dict[str, Any]) -> ArmBudget:
    finished = [run for run in runs if run.status and run.status.state == "finished"]
    recipe = next((run.recipe for run in runs if run.recipe), {})
    train, encoder = recipe.get("train") or {}, recipe.get("encoder") or {}
    sizes = [run.evaluations.size for run in finished if run.evaluations and run.evaluations.size]
    flops = sizes[0].flops_per_token if sizes else None
    tokens = [run.status.tokens for run in finished if run.status]
    seen = int(median(tokens)) if tokens else None
    step = (measured.get("seconds") or {}).get(arm)
    steps = train.get("steps")
    return ArmBudget(
        arm=arm,
        steps=steps,
        width=encoder.get("intermediate_size") or 4 * encoder.get("hidden_size", 0) or None,
        parameters=sizes[0].parameters if sizes else None,
        flops_per_token=flops,
        tokens=seen,
        training_flops=TRAINING_FACTOR * flops * seen if flops and seen else None,
        seconds=median(_seconds(finished)) if _seconds(finished) else None,
        expected_seconds=step * steps if step and steps else None,
        seconds_of_all=sum(_seconds(runs)),
    )


def _seconds(runs: Sequence[RunFiles]) -> list[float]:
    return [run.status.seconds for run in runs if run.status and run.status.seconds]


def _over(arm: ArmBudget, base: ArmBudget) -> dict[str, float | None]:
    """Return the relative difference of each budget from the baseline's."""
    found: dict[str, float | None] = {}
    for name in COMPARED:
        own, other = getattr(arm, name), getattr(base, name)
        found[name] = own / other - 1 if own and other else None
    return found


def _seconds_over_baseline(
    runs: dict[str, list[RunFiles]], baseline: str
) -> dict[str, float | None]:
    """Return by arm the median over seeds of its seconds over those of the baseline's run, less 1."""
    by_arm = {arm: _seconds_by_seed(own) for arm, own in runs.items()}
    base = by_arm[baseline]
    ratios = {
        arm: [own[seed] / base[seed] for seed in own if seed in base] for arm, own in by_arm.items()
    }
    return {arm: median(found) - 1 if found else None for arm, found in ratios.items()}


def _seconds_by_seed(runs: Sequence[RunFiles]) -> dict[int, float]:
    return {
        run.seed: run.status.seconds
        for run in runs
        if run.status and run.status.state == "finished" and run.status.seconds
    }
