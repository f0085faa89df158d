"""`recall_distance`: accuracy by how far back the symbol last stood that a target is asked by.

Where a place repeats an earlier symbol and must say what belongs to it (`needle`), the distance to be
bridged is that to the nearest earlier place with the same symbol in the row as the model sees it. Targets
whose symbol does not occur before are counted apart.
"""

from typing import Annotated, Any, ClassVar, Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from posattn.comparison.evaluations.base import EvaluationConfig, RunEvaluation, evaluations
from posattn.comparison.evaluations.subject import MASK_SEED, Subject, device_of
from posattn.config import Many
from posattn.training.batches import validation_batches
from posattn.training.evaluate import evaluating
from posattn.training.forward import run_batch
from posattn.training.lanes import LaneMemory

Whole = NDArray[np.int64]


class RecallDistanceConfig(EvaluationConfig):
    """How distances are grouped, how much is read, and at which multiple of the training length."""

    name: Literal["recall_distance"] = "recall_distance"
    edges: Many[Annotated[int, Field(ge=1)]] = Field((1, 5, 9, 17, 33, 65), min_length=1)
    multiple: Annotated[int, Field(ge=1)] = 4
    tokens: Annotated[int, Field(ge=1)] = 32768

    @model_validator(mode="after")
    def _ascending(self) -> "RecallDistanceConfig":
        if list(self.edges) != sorted({1, *self.edges}):
            raise ValueError(
                f"edges start at 1 and ascend, not {list(self.edges)}; "
                f"write {sorted({1, *self.edges})}"
            )
        return self


@final
@evaluations.register("recall_distance")
class RecallDistanceEvaluation(RunEvaluation):
    """Group i holds distances edges[i] to edges[i + 1] - 1, the last all beyond; an empty one is null."""

    Config: ClassVar[type[EvaluationConfig]] = RecallDistanceConfig
    config: RecallDistanceConfig

    @override
    def evaluate(self, subject: Subject) -> dict[str, Any]:
        length, limit = subject.length * self.config.multiple, subject.max_length()
        if limit is not None and length > limit:
            return {"length": length, "reason": f"the model takes at most {limit} tokens"}
        distances, hits = self._answers(subject, length)
        known = distances > 0
        which = np.searchsorted(self.config.edges, distances[known], side="right") - 1
        bins = len(self.config.edges)
        targets = np.bincount(which, minlength=bins)
        right = np.bincount(which, weights=hits[known], minlength=bins)
        names = _names(self.config.edges)
        found = zip(names, right.tolist(), targets.tolist(), strict=True)
        return {
            "length": length,
            "accuracy": {name: good / count if count else None for name, good, count in found},
            "targets": dict(zip(names, targets.tolist(), strict=True)),
            "without_earlier_place": int((~known).sum()),
            "reason": None,
        }

    def _answers(self, subject: Subject, length: int) -> tuple[Whole, NDArray[np.bool_]]:
        """Return of every target the distance to be bridged (0: none) and whether it was right."""
        recipe, device = subject.recipe, device_of(subject.recipe)
        batches = validation_batches(
            subject.corpus.validation,
            recipe.objective,
            length=length,
            batch_size=max(1, recipe.train.batch_size * subject.length // length),
            seed=MASK_SEED,
            limit_tokens=self.config.tokens,
        )
        distances, hits = [], []
        memory = LaneMemory(subject.model)
        with evaluating(subject.model), torch.inference_mode():
            for batch in batches:
                result = run_batch(
                    subject.model, batch, device, recipe.train.precision, memory.before(batch)
                )
                memory = memory.after(batch, result.memory)
                hits.append((result.logits.argmax(-1) == result.targets).cpu().numpy())
                back = distances_back(batch.ids.numpy())
                distances.append(back[batch.selected.numpy()])
        return np.concatenate(distances), np.concatenate(hits)


def distances_back(ids: Whole) -> Whole:
    """Return [batch, length]: tokens back to the nearest earlier place with the same symbol, or 0."""
    back = np.zeros_like(ids)
    for step in range(1, ids.shape[1]):
        same = ids[:, step:] == ids[:, :-step]
        found = back[:, step:]
        found[same & (found == 0)] = step
    return back


def _names(edges: tuple[int, ...]) -> list[str]:
    ends = [str(edge - 1) for edge in edges[1:]]
    spans = zip(edges, ends, strict=False)
    names = [str(first) if str(first) == last else f"{first} to {last}" for first, last in spans]
    return [*names, f"{edges[-1]} or more"]
