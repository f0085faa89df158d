"""What the budgets and the tuning of a study must not do, found when the study is read."""

from collections.abc import Collection, Iterable

from posattn.comparison.budgets.config import HELD, LEFT_OVER_NEEDS, SETS, AnyMatch
from posattn.comparison.differences import under
from posattn.comparison.tuning.config import TuningConfig


def check_match(
    match: AnyMatch, differing: Collection[str], evaluations: Collection[str] | None
) -> None:
    """Raise ValueError if `match` sets a path in which arms differ, or its rest could not be told.

    `evaluations` are the names of those that run; None where each task has its own.
    """
    name = match.name
    path, needed = SETS.get(name), LEFT_OVER_NEEDS.get(name)
    if path and under(path, differing):
        raise ValueError(
            f"match: {name} sets {path} in every arm, and this study lets arms differ there "
            "themselves ('varies' or 'declared'); keep one"
        )
    if needed and evaluations is not None and needed not in evaluations:
        raise ValueError(
            f"match: {name} needs the evaluation '{needed}', which says what is left over in "
            f"{HELD[name]}; add {{name: {needed}}} to 'evaluations'"
        )


def check_tuning(
    tuning: TuningConfig, match: AnyMatch, seeds: Collection[int], differing: Collection[str]
) -> None:
    """Raise ValueError if trials share seeds with the runs reported, or try what arms differ in."""
    both = sorted({*seeds} & {*tuning.seeds})
    if both:
        raise ValueError(
            f"tuning seeds ({_listed(tuning.seeds)}) and reporting seeds ({_listed(seeds)}) share "
            f"{_listed(both)}: values chosen by a seed look better on it. Give tuning seeds of "
            "their own"
        )
    for path in tuning.grid:
        if under(path, differing) or path == SETS.get(match.name):
            raise ValueError(
                f"tuning: {path} is tried in every arm, and this study also lets it differ by "
                "'varies', 'declared' or 'match'; keep one"
            )


def _listed(seeds: Iterable[int]) -> str:
    return ", ".join(map(str, seeds))
