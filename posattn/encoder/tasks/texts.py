"""`sequence` and `choice`: labels of a whole text, and the best of several texts."""

from abc import ABC
from typing import Literal, TypeVar, final

from jaxtyping import Bool, Int
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

from posattn.encoder.config import EncoderConfig, Probability
from posattn.encoder.encoder import Encoder
from posattn.encoder.tasks.base import TaskConfig, TaskHead, TaskOutput, tasks
from posattn.encoder.tasks.pooling import Pooling, Transform, TransformConfig, pool
from posattn.shapes import Hidden


class PooledConfig(TaskConfig):
    """What heads on one vector per text have in common."""

    pool: Pooling = "first"
    transform: TransformConfig | None = TransformConfig()
    dropout: Probability = 0.0  # before the last projection


class SequenceConfig(PooledConfig):
    """Options of labels of a text."""

    name: Literal["sequence"] = "sequence"
    num_labels: PositiveInt = 2


class ChoiceConfig(PooledConfig):
    """Options of a choice among texts; each gets one score."""

    name: Literal["choice"] = "choice"


P = TypeVar("P", bound=PooledConfig)


class PooledHead(TaskHead[P], ABC):
    """Pools, transforms and projects the states of a text."""

    def __init__(self, config: P, encoder: EncoderConfig, num_labels: int) -> None:
        """Build the transform, if there is one, and the projection."""
        super().__init__(config, encoder)
        transform = config.transform
        self.transform = nn.Identity() if transform is None else Transform(transform, encoder)
        self.output = nn.Linear(encoder.hidden_size, num_labels)

    @override
    def forward(
        self, hidden: Hidden, visible: Bool[Tensor, "batch length"] | None = None
    ) -> TaskOutput:
        pooled = self.transform(pool(hidden, visible, self.config.pool))
        dropped = functional.dropout(pooled, self.config.dropout, self.training)
        return TaskOutput(self.output(dropped), pooled)


@final
@tasks.register("sequence")
class SequenceHead(PooledHead[SequenceConfig]):
    """Logits [batch, labels] of each text, or of each pair of texts."""

    Config = SequenceConfig

    def __init__(self, config: SequenceConfig, encoder: EncoderConfig) -> None:
        """Build the head."""
        super().__init__(config, encoder, config.num_labels)


@final
@tasks.register("choice")
class ChoiceHead(PooledHead[ChoiceConfig]):
    """Logits [batch, choices] for ids [batch, choices, length]: one text per choice."""

    Config = ChoiceConfig

    def __init__(self, config: ChoiceConfig, encoder: EncoderConfig) -> None:
        """Build the head."""
        super().__init__(config, encoder, 1)

    @override
    def run(
        self,
        encoder: Encoder,
        ids: Int[Tensor, "*choices length"],
        *,
        visible: Bool[Tensor, "*choices length"] | None = None,
        segments: Int[Tensor, "*choices length"] | None = None,
    ) -> TaskOutput:
        found = super().run(
            encoder,
            ids.flatten(0, -2),
            visible=None if visible is None else visible.flatten(0, -2),
            segments=None if segments is None else segments.flatten(0, -2),
        )
        logits = None if found.logits is None else found.logits.view(ids.shape[:-1])
        return TaskOutput(logits, found.pooled)
