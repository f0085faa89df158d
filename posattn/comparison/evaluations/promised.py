"""`PromisedEvaluation`: what changed inputs do to the logits, against what the parts promise."""

from abc import abstractmethod
from typing import Any, ClassVar, final

from typing_extensions import override

from posattn.comparison.evaluations.base import RunEvaluation
from posattn.comparison.evaluations.changes import Check
from posattn.comparison.evaluations.probed import Probed, ProbedConfig, probed
from posattn.comparison.evaluations.subject import Subject
from posattn.errors import IncompatibleParts
from posattn.recipe.schema import Recipe


class PromisedEvaluation(RunEvaluation):
    """Asks the model again with changed inputs; each answer is one check."""

    alone: ClassVar[bool] = True
    config: ProbedConfig

    def room(self) -> int:
        """Return how many tokens more than its text a row is given."""
        return 0

    def reason_against(self, recipe: Recipe) -> str | None:
        """Return why such a model cannot be asked at all, None if it can."""
        return None

    @abstractmethod
    def checks(self, asked: Probed, recipe: Recipe) -> list[Check]:
        """Return how far the answers lie from the usual ones, and whether the promises held."""

    @final
    @override
    def evaluate(self, subject: Subject) -> dict[str, Any]:
        reason = self.reason_against(subject.recipe)
        if reason is not None:
            return {"checks": [], "reason": reason}
        try:
            asked = probed(subject, self.config, self.room())
        except IncompatibleParts as error:
            return {"checks": [], "reason": str(error)}
        return {
            "length": asked.length,
            "rows": len(asked.ids),
            "dtype": self.config.dtype,
            "checks": [check.plain() for check in self.checks(asked, subject.recipe)],
            "reason": None,
        }
