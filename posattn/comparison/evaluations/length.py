"""`length`: loss and accuracy at multiples of the training length, on about as many tokens each."""

from typing import Annotated, Any, ClassVar, Literal, final

from pydantic import Field, model_validator
from typing_extensions import override

from posattn.comparison.evaluations.base import EvaluationConfig, RunEvaluation, evaluations
from posattn.comparison.evaluations.subject import Subject
from posattn.config import Many
from posattn.errors import DataError, IncompatibleParts
from posattn.training.evaluate import Evaluation as Scores


class LengthConfig(EvaluationConfig):
    """Which multiples of `data.max_length`, and how many tokens at each."""

    name: Literal["length"] = "length"
    multiples: Many[Annotated[int, Field(ge=1)]] = Field((1, 2, 4, 8), min_length=1)
    tokens: Annotated[int, Field(ge=1)] = 16384

    @model_validator(mode="after")
    def _ascending(self) -> "LengthConfig":
        if list(self.multiples) != sorted(set(self.multiples)):
            raise ValueError(
                f"multiples must ascend, each once, not {list(self.multiples)}; "
                f"write {sorted(set(self.multiples))}"
            )
        return self


@final
@evaluations.register("length")
class LengthEvaluation(RunEvaluation):
    """A length that an arm cannot take is null, with the reason; the others are measured."""

    Config: ClassVar[type[EvaluationConfig]] = LengthConfig
    config: LengthConfig

    @override
    def evaluate(self, subject: Subject) -> dict[str, Any]:
        lengths = [subject.length * multiple for multiple in self.config.multiples]
        found: list[Scores | None] = []
        refused: dict[str, str] = {}
        for length in lengths:
            outcome = self._scores(subject, length)
            found.append(None if isinstance(outcome, str) else outcome)
            if isinstance(outcome, str):
                refused[str(length)] = outcome
        return {
            "lengths": lengths,
            "loss": [scores and scores.loss for scores in found],
            "accuracy": [scores and scores.accuracy for scores in found],
            "targets": [scores and scores.targets for scores in found],
            "tokens": [scores and scores.tokens for scores in found],
            "refused": refused,
        }

    def _scores(self, subject: Subject, length: int) -> Scores | str:
        """Return the scores at one length, or why there are none."""
        limit = subject.max_length()
        if limit is not None and length > limit:
            return f"the model takes at most {limit} tokens"
        try:
            return subject.scores(length, self.config.tokens)
        except (IncompatibleParts, DataError) as error:
            return str(error)
