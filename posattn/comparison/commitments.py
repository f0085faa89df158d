"""What a study commits to before its first step: contrasts named beforehand, and expected numbers."""

from collections.abc import Collection, Iterator, Sequence
from typing import Annotated

from pydantic import Field, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from posattn.comparison.metrics import Metric, metrics
from posattn.config import FrozenConfig, Text
from posattn.errors import RecipeError
from posattn.recipe.fields import nearest
from posattn.recipe.reader import KeyPath

Pair = Annotated[tuple[Text, Text], Field(strict=False)]
"""Two arms; the difference is `first - second`."""

PERCENT = 100.0

Problem = tuple[KeyPath, str]


class Expectation(FrozenConfig):
    """A number that an arm should reproduce, published or stored before, and where it stands."""

    arm: Text
    score: Text = Field(description="a metric, in its stored unit: nats, or a share from 0 to 1")
    value: float
    tolerance: Annotated[float, Field(ge=0)] = Field(
        description="the largest difference between the mean over seeds and the value"
    )
    source: Text = Field(min_length=1, description="where the number is from")


def check_commitments(
    pairs: Sequence[tuple[str, str]],
    expected: Sequence[Expectation],
    arms: Collection[str],
    evaluations: Collection[str] | None,
) -> None:
    """Raise a `ValidationError` with the place of every fault in what a study commits to.

    `evaluations` are those that the study runs; None for a study with tasks, which has no number of
    its own.
    """
    problems = contrast_problems(pairs, arms)
    if evaluations is not None:
        problems += expectation_problems(expected, arms, evaluations)
    elif expected:
        text = "a study with tasks has no number of its own: give 'expect' in the task it is of"
        problems.append((("expect",), text))
    if problems:
        faults = [
            InitErrorDetails(
                type=PydanticCustomError("disagreement", "{text}", {"text": text}),
                loc=path,
                input=None,
            )
            for path, text in problems
        ]
        raise ValidationError.from_exception_data("Study", faults)


def contrast_problems(pairs: Sequence[tuple[str, str]], arms: Collection[str]) -> list[Problem]:
    """Return what is wrong with the contrasts named beforehand, each with the path to mend."""
    found: list[Problem] = []
    seen: set[frozenset[str]] = set()
    for number, pair in enumerate(pairs):
        place = ("primary_contrasts", number)
        unknown = [(index, name) for index, name in enumerate(pair) if name not in arms]
        found += [((*place, index), _no_arm(name, arms)) for index, name in unknown]
        if pair[0] == pair[1]:
            found.append((place, f"'{pair[0]}' is compared with itself; name two arms"))
        elif frozenset(pair) in seen:
            found.append((place, f"the contrast of '{pair[0]}' and '{pair[1]}' is named twice"))
        seen.add(frozenset(pair))
    return found


def expectation_problems(
    expected: Sequence[Expectation], arms: Collection[str], evaluations: Collection[str]
) -> list[Problem]:
    """Return what is wrong with the expected numbers, each with the path to mend."""
    found: list[Problem] = []
    for number, item in enumerate(expected):
        if item.arm not in arms:
            found.append((("expect", number, "arm"), _no_arm(item.arm, arms)))
        found += [
            (("expect", number, key), text) for key, text in _score_problems(item, evaluations)
        ]
    return found


def _score_problems(item: Expectation, evaluations: Collection[str]) -> Iterator[tuple[str, str]]:
    try:
        metric = metrics.get(item.score)
    except RecipeError as error:
        yield "score", str(error)
        return
    if metric.section not in evaluations:
        ran = ", ".join(evaluations)
        yield (
            "score",
            f"'{item.score}' comes from the evaluation '{metric.section}', which this study does "
            f"not run (it runs: {ran})",
        )
    if _is_share(metric) and not 0 <= item.value <= 1:
        yield (
            "value",
            f"{item.value} is no share; '{item.score}' is stored from 0 to 1: write "
            f"{item.value / PERCENT:g} for {item.value:g} %",
        )


def _is_share(metric: Metric) -> bool:
    return metric.factor == PERCENT


def _no_arm(name: str, arms: Collection[str]) -> str:
    near = nearest(name, list(arms))
    hint = f"; did you mean '{near}'?" if near else ""
    return f"'{name}' is no arm{hint} (arms: {', '.join(arms)})"
