"""The `match` section of a study: which budget all arms get."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from posattn.config import NamedConfig

Count = Annotated[int, Field(ge=1)]


class StepsMatch(NamedConfig):
    """All arms take the steps of their recipes; nothing is changed."""

    name: Literal["steps"] = "steps"


class TokensMatch(NamedConfig):
    """All arms see as many training tokens as the baseline, by `train.steps`."""

    name: Literal["tokens"] = "tokens"


class ParametersMatch(NamedConfig):
    """All arms have as many parameters as the baseline, by `encoder.intermediate_size`."""

    name: Literal["parameters"] = "parameters"
    multiple: Count = Field(1, description="widths are multiples of this, 8 for instance")


class FlopsMatch(NamedConfig):
    """All arms take as many training operations as the baseline, by `train.steps`."""

    name: Literal["flops"] = "flops"


class TimeMatch(NamedConfig):
    """All arms train as long as the baseline, by `train.steps`; steps are timed before the runs."""

    name: Literal["time"] = "time"
    rounds: Count = Field(9, description="timed steps of each arm, all arms in turn")
    warmup: Annotated[int, Field(ge=0)] = Field(2, description="rounds before, not counted")


def _by_name(value: Any) -> Any:
    """Return a bare name as the section it stands for."""
    return {"name": value} if isinstance(value, str) else value


AnyMatch = Annotated[
    StepsMatch | TokensMatch | ParametersMatch | FlopsMatch | TimeMatch,
    Field(discriminator="name"),
    BeforeValidator(_by_name),
]

WIDTH, STEPS = "encoder.intermediate_size", "train.steps"

SETS = {"tokens": STEPS, "parameters": WIDTH, "flops": STEPS, "time": STEPS}
"""The dotted path that each matching changes."""

LEFT_OVER_NEEDS = {"parameters": "size", "flops": "size"}
"""The evaluation that says what a matching left over."""

HELD = {
    "steps": "steps and tokens",
    "tokens": "training tokens",
    "parameters": "parameters",
    "flops": "training operations (FLOPs)",
    "time": "training time",
}
"""What each matching holds equal, in words."""
