"""`Probed`: a model to be asked with changed inputs, and rows of text to ask it about."""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor

from posattn.comparison.evaluations.base import EvaluationConfig
from posattn.comparison.evaluations.subject import MASK_SEED, Subject
from posattn.encoder.model import MaskedLanguageModel
from posattn.errors import DataError, IncompatibleParts
from posattn.training.batches import validation_batches
from posattn.training.evaluate import evaluating

Precision = Literal["float32", "float64"]
LONGEST = 128
"""Tokens in a row unless asked otherwise, so that a large model is asked in seconds."""


class ProbedConfig(EvaluationConfig):
    """How much text is looked at, and with how many digits."""

    rows: Annotated[int, Field(ge=1)] = 4
    length: Annotated[int, Field(ge=4)] | None = (
        None  # tokens; null: the training length, at most 128
    )
    dtype: Precision = "float64"  # float64: by the eager backend, so that no rounding is measured


@dataclass(frozen=True)
class Probed:
    """A model in evaluation mode with rows of validation text, all of one length, without padding."""

    model: MaskedLanguageModel
    ids: Int[Tensor, "rows length"]
    padding: int

    @property
    def length(self) -> int:
        """Return the number of tokens in a row."""
        return self.ids.shape[1]

    def logits(
        self,
        ids: Int[Tensor, "rows length"],
        visible: Bool[Tensor, "rows length"] | None = None,
        positions: Int[Tensor, "#rows length"] | None = None,
    ) -> Float[Tensor, "rows length vocab"]:
        """Return the logits at every place."""
        device = self.model.encoder.tokens.weight.device
        with evaluating(self.model), torch.inference_mode():
            output = self.model(
                ids.to(device),
                visible=None if visible is None else visible.to(device),
                positions=None if positions is None else positions.to(device),
                segments=torch.zeros_like(ids, device=device),
            )
        return output.logits.cpu()


def probed(subject: Subject, config: ProbedConfig, room: int = 0) -> Probed:
    """Return what is asked: rows as validation shows them, with `room` more tokens to spare.

    Raises `IncompatibleParts` if the model cannot take the text and the room, `DataError` if there is
    too little text.
    """
    wanted = config.length or min(subject.length, LONGEST)
    limit = subject.max_length()
    length = wanted if limit is None else min(wanted, limit - room)
    if length < 2:
        raise IncompatibleParts(
            f"the model takes at most {limit} tokens, which leaves {length} beside {room} more; ask "
            "for less, or enlarge its table"
        )
    vocabulary = subject.corpus.tokenizer.vocabulary
    ids = text_rows(subject, config.rows, length)
    return Probed(as_asked(subject.model, config.dtype), ids, vocabulary.pad)


def text_rows(subject: Subject, rows: int, length: int) -> Int[Tensor, "rows length"]:
    """Return the first rows of validation text as the model sees them, targets hidden as in validation.

    Where rows are padded, each is cut to its tokens and all to the shortest.
    """
    batches = validation_batches(
        subject.corpus.validation,
        subject.recipe.objective,
        length=max(length, 4),
        batch_size=rows,
        seed=MASK_SEED,
    )
    batch = next(iter(batches))
    shortest = min(length, int(batch.visible.sum(1).min()))
    if shortest < 2:
        raise DataError(
            f"a row of the validation text has {shortest} tokens; at least 2 are needed"
        )
    first = (~batch.visible).to(torch.int8).argsort(dim=1, stable=True)[:, :shortest]
    return batch.ids.gather(1, first)


def as_asked(model: MaskedLanguageModel, dtype: Precision) -> MaskedLanguageModel:
    """Return the model itself for float32, else a copy in float64 that the eager backend computes."""
    if dtype == "float32":
        return model
    encoder = model.config.model_copy(update={"backend": "eager", "unpad": False})
    rows = model.encoder.tokens.num_embeddings
    copy = MaskedLanguageModel(encoder, model.decoder_config, rows, model.head_config)
    copy.load_state_dict(model.state_dict())
    return copy.to(model.encoder.tokens.weight.device, torch.float64)
