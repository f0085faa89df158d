"""`evidence_distance`: loss of masked tokens by how far the nearest token is that the model can see.

Masks are this evaluation's own and the same in every run: runs of masked tokens of given lengths with
visible tokens between them, or with `rate` each token by itself. Evidence is a token that is neither
masked nor special; its distance is counted in tokens, on the left, on the right, and on the nearer side.
"""

from hashlib import sha256
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from posattn.comparison.evaluations.base import EvaluationConfig, RunEvaluation, evaluations
from posattn.comparison.evaluations.evidence_masks import NONE, distances, span_masks
from posattn.comparison.evaluations.subject import MASK_SEED, Subject, device_of
from posattn.config import Many
from posattn.training.batches import IGNORE, Batch
from posattn.training.evaluate import evaluating
from posattn.training.forward import run_batch
from posattn.training.masking import Shares, mask_tokens
from posattn.training.objectives import MlmConfig
from posattn.training.text.draws import Purpose, fold
from posattn.training.text.samples import Rows

Whole = NDArray[np.int64]
SIDES = ("nearest", "left", "right")


class EvidenceDistanceConfig(EvaluationConfig):
    """What is masked, how distances are grouped, and how much text is read."""

    name: Literal["evidence_distance"] = "evidence_distance"
    spans: Many[Annotated[int, Field(ge=1)]] = Field((1, 2, 4, 8, 16, 32), min_length=1)
    gap: Annotated[int, Field(ge=1)] = 8  # visible tokens between spans, on average
    rate: Annotated[float, Field(gt=0, lt=1)] | None = None  # mask single tokens, and no spans
    edges: Many[Annotated[int, Field(ge=1)]] = Field((1, 2, 3, 5, 9, 17), min_length=1)
    tokens: Annotated[int, Field(ge=1)] = 16384

    @model_validator(mode="after")
    def _fits(self) -> "EvidenceDistanceConfig":
        if list(self.edges) != sorted({1, *self.edges}):
            raise ValueError(
                f"edges start at 1 and ascend, not {list(self.edges)}; "
                f"write {sorted({1, *self.edges})}"
            )
        if self.rate is not None and {"spans", "gap"} & self.model_fields_set:
            raise ValueError("rate masks single tokens; leave out spans and gap, or rate")
        return self


class Sums(NamedTuple):
    """Loss and number of targets in each bin of distances on one side."""

    loss: NDArray[np.float64]
    targets: Whole


@final
@evaluations.register("evidence_distance")
class EvidenceDistanceEvaluation(RunEvaluation):
    """Bin i holds distances edges[i] to edges[i + 1] - 1, the last all beyond; an empty one is null."""

    Config: ClassVar[type[EvaluationConfig]] = EvidenceDistanceConfig
    config: EvidenceDistanceConfig

    @override
    def evaluate(self, subject: Subject) -> dict[str, Any]:
        objective = subject.recipe.objective
        if not isinstance(objective, MlmConfig):
            return {"reason": f"the objective '{objective.name}' restores no masked text"}
        bins = len(self.config.edges)
        sums = {side: Sums(np.zeros(bins), np.zeros(bins, np.int64)) for side in SIDES}
        digest = sha256()
        split = subject.corpus.validation
        samples = split.samples_at(subject.length, self.config.tokens)
        size, device = subject.recipe.train.batch_size, device_of(subject.recipe)
        with evaluating(subject.model), torch.inference_mode():
            for start in range(0, len(samples), size):
                numbers = np.arange(start, min(start + size, len(samples)))
                rows = samples.rows(numbers)
                batch = self._masked(rows, numbers, subject)
                digest.update(batch.digest().encode())
                if not batch.num_targets:
                    continue
                result = run_batch(subject.model, batch, device, subject.recipe.train.precision)
                self._add(sums, batch, rows, result.losses().double().cpu().numpy(), subject)
        return {
            "length": subject.length,
            "edges": list(self.config.edges),
            "masks": digest.hexdigest(),
            "reason": None,
            **{side: _plain(found) for side, found in sums.items()},
        }

    def _masked(self, rows: Rows, numbers: Whole, subject: Subject) -> Batch:
        """Return the rows with this evaluation's masks; every target is shown as [MASK]."""
        vocabulary = subject.corpus.tokenizer.vocabulary
        key = fold(int(Purpose.VALIDATION_MASKS), MASK_SEED)
        counters = rows.origins[:, None] + np.arange(rows.ids.shape[1])
        if self.config.rate is None:
            chosen = span_masks(
                rows.ids.shape, fold(MASK_SEED, rows.origins), self.config.spans, self.config.gap
            )
            chosen &= rows.visible & ~vocabulary.is_special(rows.ids)
            ids = np.where(chosen, vocabulary.mask, rows.ids)
            targets = np.where(chosen, rows.ids, IGNORE)
        else:
            keys = np.repeat(key, len(rows.ids))
            shares = Shares(1.0, 0.0, 0.0)
            ids, targets = mask_tokens(
                rows.ids, rows.visible, keys, counters, vocabulary, self.config.rate, shares
            )
        documents = None if rows.documents is None else torch.from_numpy(rows.documents)
        return Batch(
            ids=torch.from_numpy(ids),
            targets=torch.from_numpy(targets),
            visible=torch.from_numpy(rows.visible),
            sample_ids=torch.from_numpy(numbers),
            documents=documents,
        )

    def _add(
        self,
        sums: dict[str, Sums],
        batch: Batch,
        rows: Rows,
        losses: NDArray[np.float64],
        subject: Subject,
    ) -> None:
        """Add the loss of each target to the bins of its distances."""
        masked = batch.selected.numpy()
        special = subject.corpus.tokenizer.vocabulary.is_special(rows.ids)
        evidence = rows.visible & ~masked & ~special
        left, right = distances(evidence, rows.documents)
        found = {"nearest": np.minimum(left, right), "left": left, "right": right}
        for side, distance in found.items():
            at = distance[masked]
            known = at < NONE
            which = np.searchsorted(self.config.edges, at[known], side="right") - 1
            np.add.at(sums[side].loss, which, losses[known])
            np.add.at(sums[side].targets, which, 1)


def _plain(sums: Sums) -> dict[str, list[Any]]:
    pairs = zip(sums.loss.tolist(), sums.targets.tolist(), strict=True)
    return {
        "loss": [loss / count if count else None for loss, count in pairs],
        "targets": sums.targets.tolist(),
    }
