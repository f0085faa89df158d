"""What an evaluation is: something measured on each trained model, or once on all arms of a study."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from posattn.admission import class_check
from posattn.config import NamedConfig
from posattn.registry import Registry

if TYPE_CHECKING:
    from posattn.comparison.evaluations.arena import Arena
    from posattn.comparison.evaluations.subject import Subject


class EvaluationConfig(NamedConfig):
    """The options of an evaluation."""


class Evaluation(ABC):
    """A kind of measurement; it registers by name, with its options in `Config`."""

    Config: ClassVar[type[EvaluationConfig]]

    def __init__(self, config: Any) -> None:
        """Take the options, an instance of `Config`."""
        self.config = config


class RunEvaluation(Evaluation):
    """Measures one trained model, in the process that trained it.

    `alone` says that it tells something of a model outside of a study too, trained or not.
    """

    alone: ClassVar[bool] = False

    @abstractmethod
    def evaluate(self, subject: "Subject") -> dict[str, Any]:
        """Return plain numbers by name; a number that cannot be had is None, with a reason."""


class StudyEvaluation(Evaluation):
    """Measures all arms together, after the runs."""

    file: ClassVar[str]
    """What `measure` writes; a study that has it already does not measure again."""

    @abstractmethod
    def measure(self, arena: "Arena") -> None:
        """Measure and write the evaluation's own file into the study folder."""


evaluations: Registry[type[Evaluation]] = Registry(
    "evaluation",
    "posattn.evaluations",
    class_check(RunEvaluation, StudyEvaluation, config=EvaluationConfig),
)
