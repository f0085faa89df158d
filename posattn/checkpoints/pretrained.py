"""`Pretrained`: an imported model in memory, with its recipe, heads, tokenizer and report."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from tokenizers import Encoding, Tokenizer
from torch import Tensor, nn

from posattn.checkpoints.report import ImportReport
from posattn.checkpoints.sentence import SENTENCE
from posattn.encoder.encoder import Encoder
from posattn.encoder.model import MaskedLanguageModel
from posattn.encoder.tasks import TaskConfig, TaskHead, TaskModel
from posattn.errors import DataError, IncompatibleParts
from posattn.recipe.schema import Recipe
from posattn.training.weights import unique_tensors


@dataclass(frozen=True)
class TokenBatch:
    """Texts as a model takes them; `segments` None for encoders without a segment table."""

    ids: Int[Tensor, "batch length"]
    visible: Bool[Tensor, "batch length"]
    segments: Int[Tensor, "batch length"] | None


@final
@dataclass(frozen=True)
class Pretrained:
    """What `from_pretrained` returns. All models here share one encoder.

    `masked_lm` is None where the checkpoint has no masked-token head. `tasks` holds the other heads, by
    name. `tokenizer` is one of the `tokenizers` library, or None if the checkpoint has no file for it.
    """

    recipe: Recipe
    masked_lm: MaskedLanguageModel | None
    tasks: TaskModel
    tokenizer: Tokenizer | None
    report: ImportReport

    @property
    def encoder(self) -> Encoder:
        """The encoder that all heads share."""
        return self.tasks.encoder

    def models(self) -> list[nn.Module]:
        """Return the models, whose weights together are those of the checkpoint."""
        return [self.tasks] if self.masked_lm is None else [self.masked_lm, self.tasks]

    def heads(self) -> dict[str, TaskConfig]:
        """Return the options of each head beside the masked-token one, by name."""
        heads = self.tasks.tasks.items()
        return {name: head.config for name, head in heads if isinstance(head, TaskHead)}

    def tensors(self) -> dict[str, Tensor]:
        """Return every weight once, by the name it is stored under."""
        found: dict[str, Tensor] = {}
        for model in self.models():
            found |= unique_tensors(model)[0]
        return found

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> TokenBatch:
        """Return texts, or pairs of texts, as the checkpoint's tokenizer frames them, padded on the right.

        Texts longer than the model takes, or than its sentence encoder was made for, are cut.
        DataError if the checkpoint came without a tokenizer.
        """
        if self.tokenizer is None:
            raise DataError(
                f"{self.report.source} came without a tokenizer that can be read (tokenizer.json, "
                "vocab.txt, or vocab.json with merges.txt); pass ids, or add the file and import again"
            )
        given = list(texts) if pairs is None else list(zip(texts, pairs, strict=True))
        encodings = self._cut().encode_batch(given)
        width = max((len(encoding.ids) for encoding in encodings), default=0)
        ids = _padded((encoding.ids for encoding in encodings), width, self._padding_id())
        ones = _padded((encoding.attention_mask for encoding in encodings), width, 0)
        return TokenBatch(ids, ones.bool(), self._segments(encodings, width))

    @torch.no_grad()
    def embed(
        self, texts: Sequence[str], *, task: str = SENTENCE, batch_size: int = 32
    ) -> Float[Tensor, "texts hidden"]:
        """Return a vector per text from the head `task`, by default the checkpoint's sentence embedding.

        Runs without dropout and without gradients. UnknownName if there is no such head.
        """
        was_training = self.tasks.training
        self.tasks.eval()
        parts = [
            self._vectors(list(texts[start : start + batch_size]), task)
            for start in range(0, len(texts), batch_size)
        ]
        self.tasks.train(was_training)
        if not parts:
            return torch.zeros(0, self.encoder.config.hidden_size)
        return torch.cat(parts)

    def _vectors(self, texts: list[str], task: str) -> Tensor:
        batch = self.encode(texts)
        device = self.encoder.tokens.weight.device
        ids, visible = batch.ids.to(device), batch.visible.to(device)
        segments = None if batch.segments is None else batch.segments.to(device)
        found = self.tasks(task, ids, visible=visible, segments=segments).pooled
        if found is None:
            raise IncompatibleParts(f"the head '{task}' gives no vector per text; use a pooled one")
        return found

    def _cut(self) -> Tokenizer:
        """Return a copy of the tokenizer that cuts texts to the length the model takes."""
        assert self.tokenizer is not None
        copy = Tokenizer.from_str(self.tokenizer.to_str())
        limits = [self.report.text_length, self.encoder.config.max_length()]
        known = [limit for limit in limits if limit is not None]
        if known:
            copy.enable_truncation(min(known))
        return copy

    def _padding_id(self) -> int:
        assert self.tokenizer is not None
        token = self.report.tokenizer.special_tokens.get("pad_token", "[PAD]")
        return int(self.tokenizer.token_to_id(token) or 0)

    def _segments(self, encodings: list[Encoding], width: int) -> Tensor | None:
        config = self.encoder.config
        if not (config.segments or config.reads_segments()):
            return None
        found = _padded((encoding.type_ids for encoding in encodings), width, 0)
        return found.clamp(max=config.segments - 1) if config.segments else found


def _padded(rows: Iterable[list[int]], width: int, value: int) -> Tensor:
    filled = [row + [value] * (width - len(row)) for row in rows]
    return torch.tensor(filled, dtype=torch.long).reshape(len(filled), width)
