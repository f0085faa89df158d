"""`attention_distance`: how far each head looks, how much it gives to the ends of a text, how spread it is.

Of every query the attention probabilities give the mean distance to the keys, the mass on the first and the
last token and on [CLS], and the entropy in nats; all are means over the queries. `uniform` says what
attention spread evenly over the visible keys would give.
"""

from typing import Any, ClassVar, Literal, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from typing_extensions import override

from posattn.backends import AttentionCall, probabilities
from posattn.comparison.evaluations.base import EvaluationConfig, RunEvaluation, evaluations
from posattn.comparison.evaluations.probed import Precision, ProbedConfig, probed
from posattn.comparison.evaluations.subject import Subject
from posattn.decomposition import record
from posattn.training.evaluate import evaluating

Numbers = dict[str, list[float | None]]


class AttentionDistanceConfig(ProbedConfig):
    """How much text is looked at; the model is the one that was trained."""

    name: Literal["attention_distance"] = "attention_distance"
    dtype: Precision = "float32"  # float32: as it was trained; float64: by the eager backend


@final
@evaluations.register("attention_distance")
class AttentionDistanceEvaluation(RunEvaluation):
    """One entry per attention layer, each with one number per head; decoder passes are layers too."""

    Config: ClassVar[type[EvaluationConfig]] = AttentionDistanceConfig
    config: AttentionDistanceConfig
    alone: ClassVar[bool] = True

    @override
    def evaluate(self, subject: Subject) -> dict[str, Any]:
        asked = probed(subject, self.config)
        cls = subject.corpus.tokenizer.vocabulary.cls
        ids = asked.ids.to(asked.model.encoder.tokens.weight.device)
        layers = []
        with evaluating(asked.model), torch.inference_mode():
            for one in record(asked.model, ids, segments=torch.zeros_like(ids)).attentions:
                layers.append({"name": one.name, **_numbers(one.call, ids == cls)})
        return {"length": asked.length, "rows": len(ids), "layers": layers, "reason": None}


def _numbers(call: AttentionCall, is_cls: Bool[Tensor, "rows length"]) -> Numbers:
    """Return the numbers of one layer, a list with one for each head."""
    probs = probabilities(call).double()
    length = probs.shape[2]
    probs = probs[..., -length:]  # keys before them are memory, which is empty here
    pairs = call.visibility.pairs
    seen = torch.ones_like(probs) if pairs is None else pairs[..., -length:].expand_as(probs)
    even = seen.double() / seen.double().sum(-1, keepdim=True).clamp(min=1)
    place = torch.arange(length, device=probs.device)
    far = (place[:, None] - place[None, :]).abs().double()
    has_cls = bool(is_cls.any())
    on_cls = (probs * is_cls[:, None, None, :]).sum(-1)
    return {
        "distance": _by_head((probs * far).sum(-1)),
        "uniform_distance": _by_head((even * far).sum(-1)),
        "entropy": _by_head(_entropy(probs)),
        "uniform_entropy": _by_head(_entropy(even)),
        "first": _by_head(probs[..., 0]),
        "last": _by_head(probs[..., -1]),
        "cls": _by_head(on_cls) if has_cls else [None] * probs.shape[1],
    }


def _entropy(probs: Float[Tensor, "rows heads query key"]) -> Float[Tensor, "rows heads query"]:
    return -torch.special.xlogy(probs, probs).sum(-1)


def _by_head(values: Float[Tensor, "rows heads query"]) -> list[float | None]:
    return list(values.mean(dim=(0, 2)).tolist())
