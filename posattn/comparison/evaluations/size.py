"""`size`: parameters, and floating-point operations per token of a forward, by count."""

from typing import Any, ClassVar, Literal, final

from typing_extensions import override

from posattn.comparison.evaluations.base import EvaluationConfig, RunEvaluation, evaluations
from posattn.comparison.evaluations.subject import Subject
from posattn.encoder.model import position_parameters
from posattn.recipe.flops import count_flops


class SizeConfig(EvaluationConfig):
    """There is nothing to choose."""

    name: Literal["size"] = "size"


@final
@evaluations.register("size")
class SizeEvaluation(RunEvaluation):
    """Counts; a parameter that is used in several places counts once."""

    Config: ClassVar[type[EvaluationConfig]] = SizeConfig
    config: SizeConfig

    @override
    def evaluate(self, subject: Subject) -> dict[str, Any]:
        model = subject.model
        sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
        position = position_parameters(model)
        flops = count_flops(subject.recipe, vocab_size=subject.corpus.tokenizer.vocab_size)
        return {
            "parameters": sum(sizes.values()),
            "position_parameters": sum(size for name, size in sizes.items() if name in position),
            "embedding_parameters": model.encoder.tokens.weight.numel(),
            "flops_per_token": flops.total,
            "mechanism_flops_per_token": flops.mechanism,
        }
