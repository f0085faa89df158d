"""match.json: the time of a training step of every arm, measured in turn before the runs."""

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from posattn.comparison.budgets.config import TimeMatch
from posattn.comparison.budgets.match import Recipes
from posattn.comparison.evaluations.arena import Arena
from posattn.comparison.evaluations.timing import TimingTask, time_arms
from posattn.comparison.pool import WorkerPool
from posattn.comparison.progress import ProgressBoard
from posattn.errors import RecipeError
from posattn.recipe.schema import recipe_digest
from posattn.training.durable import read_json, write_json

FILE = "match.json"


def step_times(
    recipes: Recipes, baseline: str, match: TimeMatch, out: Path, board: ProgressBoard
) -> Mapping[str, float]:
    """Return by arm the time of a step over the baseline's: the median over rounds of their ratio.

    What is stored in `out` is read and never measured again: the steps of all arms rest on it.
    """
    digests = {arm: recipe_digest(recipe) for arm, recipe in recipes.items()}
    path = out / FILE
    stored = _stored(path, digests) if path.is_file() else None
    if stored is None:
        stored = _measured(recipes, match, out, board)
        stored |= {"match": match.model_dump(mode="json"), "baseline": baseline, "arms": digests}
        ratios = ratios_in_rounds(stored["rounds"], baseline)
        write_json(path, {**stored, "ratio": ratios, "seconds": _seconds(stored["rounds"])})
    return ratios_in_rounds(stored["rounds"], baseline)


def ratios_in_rounds(rounds: list[dict[str, Any]], baseline: str) -> dict[str, float]:
    """Return by arm the median over rounds of its time over the baseline's in the same round."""
    by_arm: dict[str, dict[int, float]] = {}
    for line in rounds:
        by_arm.setdefault(line["arm"], {})[line["round"]] = line["seconds"]
    base = by_arm[baseline]
    return {
        arm: median(times[number] / base[number] for number in times)
        for arm, times in by_arm.items()
    }


def _seconds(rounds: list[dict[str, Any]]) -> dict[str, float]:
    arms = dict.fromkeys(line["arm"] for line in rounds)
    return {arm: median(r["seconds"] for r in rounds if r["arm"] == arm) for arm in arms}


def _measured(
    recipes: Recipes, match: TimeMatch, out: Path, board: ProgressBoard
) -> dict[str, Any]:
    """Time all arms in one process of its own."""
    threads = next(iter(recipes.values())).train.threads or 1
    with WorkerPool(1, threads=threads, logs=out / "workers") as pool:
        arena = Arena(
            out=out,
            recipes=recipes,
            threads=threads,
            jobs=1,
            pool=pool,
            say=lambda message: board.enter("matching", message),
        )
        task = TimingTask(
            recipes=dict(recipes),
            rounds=match.rounds,
            warmup=match.warmup,
            stages=("training_step",),
        )
        timed: dict[str, Any] = arena.alone(time_arms, task, "the time of a step")
    for arm, reason in timed["refused"].items():
        raise RecipeError(f"match: time cannot time the arm '{arm}': {reason}")
    return {"conditions": timed["conditions"], "rounds": timed["rounds"]}


def _stored(path: Path, digests: Mapping[str, str]) -> dict[str, Any]:
    """Return the stored times; raise `RecipeError` if they are of other arms than these."""
    try:
        content = read_json(path)
        known, rounds = content["arms"], content["rounds"]
        changed = sorted(arm for arm in {**known, **digests} if known.get(arm) != digests.get(arm))
        ratios_in_rounds(rounds, content["baseline"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecipeError(
            f"{path} is damaged ({type(error).__name__}: {error}); delete it to have steps timed anew"
        ) from error
    if changed:
        raise RecipeError(
            f"{path} holds the times of other arms than the study has now: {', '.join(changed)} "
            "changed. Choose another folder with --out, or delete the file, if no run has begun, "
            "to have steps timed anew"
        )
    return content
