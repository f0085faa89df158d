"""The `tuning` section of a study, and what it may try."""

from collections.abc import Mapping
from itertools import product
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from posattn.comparison.metrics import metrics
from posattn.config import FrozenConfig, Many, Text
from posattn.errors import RecipeError
from posattn.recipe.scalars import plain

Seed = Annotated[int, Field(ge=0)]
Values = Mapping[str, Any]
"""One point of the grid: a value for each dotted path."""

BUDGETS = ("train.steps", "train.epochs", "train.seed", "train.data_seed")
"""Paths that are held equal or set for each run, and so cannot be tuned."""

SPLIT = "validation"
"""The evaluation whose scores may choose: scores of anything else would leak into the result."""


class TuningConfig(FrozenConfig):
    """A grid of values for every arm, and how the best of them is found."""

    grid: dict[str, Many[Any]] = Field(
        min_length=1, description="by dotted path the values to try; all combinations are tried"
    )
    seeds: Many[Seed] = Field(min_length=1, description="of trials only, none of the study's")
    steps: Annotated[int, Field(ge=1)] | None = Field(
        None, description="steps of a trial of the baseline, others in proportion; null: all"
    )
    select_by: Text = Field("validation_loss", description="a score on the validation split")

    def points(self) -> list[dict[str, Any]]:
        """Return every combination of values; the first path changes slowest."""
        values = [[plain(value) for value in row] for row in self.grid.values()]
        return [dict(zip(self.grid, chosen, strict=True)) for chosen in product(*values)]

    @field_validator("select_by")
    @classmethod
    def _selects_on_validation(cls, name: str) -> str:
        try:
            metric = metrics.get(name)
        except RecipeError as error:
            raise ValueError(str(error)) from error
        if metric.section != SPLIT:
            raise ValueError(
                f"'{name}' comes from the evaluation '{metric.section}'; values are chosen by a "
                f"score of '{SPLIT}' only, such as validation_loss"
            )
        return name

    @model_validator(mode="after")
    def _grid_is_a_grid(self) -> "TuningConfig":
        for path, values in self.grid.items():
            if not values:
                raise ValueError(f"the grid gives no value for {path}; give two or more")
            texts = [repr(plain(value)) for value in values]
            twice = sorted({text for text in texts if texts.count(text) > 1})
            if twice:
                raise ValueError(f"the grid tries {path} = {', '.join(twice)} more than once")
            if path in BUDGETS:
                raise ValueError(f"{path} is a budget or a seed, which is not tuned")
        twice = sorted({str(seed) for seed in self.seeds if self.seeds.count(seed) > 1})
        if twice:
            raise ValueError(f"seeds must be distinct; given more than once: {', '.join(twice)}")
        return self


def edge(path_values: tuple[Any, ...], chosen: Any) -> str | None:
    """Return "lowest" or "highest" if the chosen value is at an end of the values tried, else None.

    A least value of 0 is a natural end. Values without order, or a single one, have no edge.
    """
    numbers = [v for v in path_values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) < len(path_values) or len(numbers) < 2:
        return None
    if chosen == max(numbers):
        return "highest"
    return "lowest" if chosen == min(numbers) and chosen != 0 else None
