"""`Probe`: a task that asks one question of a position mechanism, with what the maths predicts."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Optional, TypeAlias, final

from pydantic import Field

from posattn.admission import class_check
from posattn.comparison.evaluations import EvaluationConfig
from posattn.comparison.evaluations.length import LengthConfig
from posattn.comparison.evaluations.size import SizeConfig
from posattn.comparison.evaluations.validation import ValidationConfig
from posattn.comparison.probes.facts import Facts, facts_of
from posattn.comparison.probes.guessing import most_frequent
from posattn.config import NamedConfig, open_field
from posattn.recipe.schema import Recipe
from posattn.registry import Registry

AT_TRAINED_LENGTH = "validation_accuracy"
BLIND = "permuting the tokens only permutes the outputs, so the row is a bag of symbols"
TOLERANCE = 0.05
"""What a score at chance may exceed it by: over three standard errors of the fewest targets."""


def accuracy_at(multiple: int) -> str:
    """Return the name of the accuracy at a multiple of the training length."""
    return AT_TRAINED_LENGTH if multiple == 1 else f"accuracy_at_{multiple}x"


@dataclass(frozen=True)
class Prediction:
    """What the maths says of one score of one arm: a bound, or two, and why in one sentence."""

    score: str
    at_least: float | None
    at_most: float | None
    because: str

    def holds(self, value: float) -> bool:
        """Return whether a value lies within the bounds."""
        above = self.at_least is None or value >= self.at_least
        return above and (self.at_most is None or value <= self.at_most)


class ProbeConfig(NamedConfig):
    """The options that every probe has; each may have more."""

    steps: int | None = Field(default=None, ge=1)
    """Training steps; by default what the probe needs at two layers of 64."""
    num_symbols: int | None = Field(default=None, ge=2)
    length: int | None = Field(default=None, ge=4)


class Probe(ABC):
    """One question. Class variables are its sizes; what it predicts follows from `Facts` alone."""

    Config: ClassVar[type[ProbeConfig]]
    question: ClassVar[str]
    steps: ClassVar[int] = 300
    batch_size: ClassVar[int] = 32
    learning_rate: ClassVar[float] = 3e-3
    length: ClassVar[int] = 32
    num_symbols: ClassVar[int] = 16
    multiples: ClassVar[tuple[int, ...]] = (1,)
    """Lengths of evaluation, as multiples of the training length."""
    further: ClassVar[tuple[EvaluationConfig, ...]] = ()
    """Evaluations of this probe alone."""
    solved_from: ClassVar[float] = 0.95

    def __init__(self, config: Any) -> None:
        """Take the options."""
        self.config = config

    @abstractmethod
    def objective(self) -> dict[str, Any]:
        """Return the objective as a recipe states it."""

    def chance(self) -> float:
        """Return the accuracy of the best guess without any position, at the training length.

        Where nothing else is known it is the most frequent symbol of the row.
        """
        return most_frequent(self.row, self.symbols) / self.row

    @abstractmethod
    def expect(self, facts: Facts) -> Iterator[Prediction]:
        """Yield what the maths says of an encoder with these facts; nothing where it says nothing."""

    @final
    @property
    def row(self) -> int:
        """Return the symbols in a row of the training length."""
        length: int = self.config.length or type(self).length
        return length

    @final
    @property
    def symbols(self) -> int:
        """Return how many symbols there are."""
        symbols: int = self.config.num_symbols or type(self).num_symbols
        return symbols

    @final
    def overrides(self) -> dict[str, Any]:
        """Return what the probe sets in a recipe: objective, data and training, no architecture."""
        return {
            "objective": self.objective(),
            "data": {
                "corpus": {"name": "symbols", "num_symbols": self.symbols},
                "tokenizer": {"name": "characters"},
                "layout": "packed",
                "order": "shuffled",
                "cls": False,
                "across_documents": True,
                "max_length": self.row,
                "padding_side": "right",
                "validation_fraction": 0.1,
            },
            "train": {
                "steps": self.config.steps or self.steps,
                "epochs": None,
                "batch_size": self.batch_size,
                "learning_rate": self.learning_rate,
                "warmup_fraction": 0.1,
                "warmup_steps": None,
                "schedule": "linear",
                "weight_decay": 0.01,
                "clip_norm": 1.0,
                "log_every": 50,
                "evaluate_every": 100,
                "evaluation_tokens": 4096,
                "checkpoint_every": 0,
                "keep_checkpoints": 1,
            },
        }

    @final
    def evaluations(self) -> tuple[EvaluationConfig, ...]:
        """Return what is measured: accuracy at the training length and beyond, and size."""
        beyond = [LengthConfig(multiples=self.multiples)] if len(self.multiples) > 1 else []
        return (ValidationConfig(tokens=32768), *beyond, *self.further, SizeConfig())

    def primary(self) -> str:
        """Return the score that verdicts are about."""
        return AT_TRAINED_LENGTH

    def solved(self) -> float:
        """Return the accuracy from which a run counts as solved."""
        return self.solved_from

    @final
    def predict(self, recipe: Recipe) -> tuple[Prediction, ...]:
        """Return what the maths says of a recipe; nothing of relations other than the line."""
        facts = facts_of(recipe)
        if facts is None:
            return ()
        return tuple(self.expect(facts))

    @final
    def at_chance(self, because: str, bound: float | None = None) -> Prediction:
        """Return the prediction that accuracy is at most `bound` (the probe's chance) up to noise."""
        most = min(1.0, (self.chance() if bound is None else bound) + TOLERANCE)
        return Prediction(AT_TRAINED_LENGTH, None, round(most, 4), because)

    @final
    def solves(self, because: str, multiple: int = 1) -> Prediction:
        """Return the prediction that a length is solved."""
        return Prediction(accuracy_at(multiple), self.solved(), None, because)

    @final
    def fails(self, because: str, multiple: int = 1) -> Prediction:
        """Return the prediction that a length is not solved."""
        return Prediction(accuracy_at(multiple), None, self.solved(), because)


probes: Registry[type[Probe]] = Registry(
    "probe", "posattn.probes", class_check(Probe, config=ProbeConfig)
)
AnyProbe = open_field(probes, ProbeConfig)
if TYPE_CHECKING:
    OptionalProbe: TypeAlias = ProbeConfig | None
else:
    OptionalProbe = Optional[AnyProbe]  # noqa: UP045  (an open field is no class)


def make_probe(config: ProbeConfig) -> Probe:
    """Return the probe of some options."""
    return probes.get(config.name)(config)
