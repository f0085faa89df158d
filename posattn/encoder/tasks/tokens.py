"""`token` and `span`: labels of every token, and where an answer starts and ends."""

from abc import ABC
from typing import Literal, TypeVar, final

from jaxtyping import Bool
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

from posattn.encoder.config import EncoderConfig, Probability
from posattn.encoder.tasks.base import TaskConfig, TaskHead, TaskOutput, tasks
from posattn.encoder.tasks.pooling import Transform, TransformConfig
from posattn.shapes import Hidden


class PerTokenConfig(TaskConfig):
    """What heads on every token have in common."""

    transform: TransformConfig | None = None
    dropout: Probability = 0.0  # before the last projection


class TokenConfig(PerTokenConfig):
    """Options of labels of tokens."""

    name: Literal["token"] = "token"
    num_labels: PositiveInt = 2


class SpanConfig(PerTokenConfig):
    """Options of a span in the text."""

    name: Literal["span"] = "span"


P = TypeVar("P", bound=PerTokenConfig)


class PerTokenHead(TaskHead[P], ABC):
    """Transforms and projects the state of every token, padding included."""

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
        dropped = functional.dropout(self.transform(hidden), self.config.dropout, self.training)
        return TaskOutput(self.output(dropped), None)


@final
@tasks.register("token")
class TokenHead(PerTokenHead[TokenConfig]):
    """Logits [batch, length, labels] of each token."""

    Config = TokenConfig

    def __init__(self, config: TokenConfig, encoder: EncoderConfig) -> None:
        """Build the head."""
        super().__init__(config, encoder, config.num_labels)


@final
@tasks.register("span")
class SpanHead(PerTokenHead[SpanConfig]):
    """Logits [batch, length, 2]: that the answer starts at a token, and that it ends there."""

    Config = SpanConfig

    def __init__(self, config: SpanConfig, encoder: EncoderConfig) -> None:
        """Build the head."""
        super().__init__(config, encoder, 2)
