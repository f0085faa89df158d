"""`vector`: one vector per text, such as BERT's pooled output or a sentence embedding."""

from typing import Literal, final

from jaxtyping import Bool
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

from posattn.encoder.config import EncoderConfig
from posattn.encoder.tasks.base import TaskConfig, TaskHead, TaskOutput, tasks
from posattn.encoder.tasks.pooling import Pooling, Transform, TransformConfig, pool
from posattn.shapes import Hidden


class VectorConfig(TaskConfig):
    """Options of a vector per text."""

    name: Literal["vector"] = "vector"
    pool: Pooling = "first"
    transform: TransformConfig | None = None
    normalize: bool = False  # to length 1, so that products are cosines


@final
@tasks.register("vector")
class VectorHead(TaskHead[VectorConfig]):
    """A vector per text, `pooled`, [batch, hidden]; no logits."""

    Config = VectorConfig

    def __init__(self, config: VectorConfig, encoder: EncoderConfig) -> None:
        """Build the transform, if there is one."""
        super().__init__(config, encoder)
        transform = config.transform
        self.transform = nn.Identity() if transform is None else Transform(transform, encoder)

    @override
    def forward(
        self, hidden: Hidden, visible: Bool[Tensor, "batch length"] | None = None
    ) -> TaskOutput:
        pooled = self.transform(pool(hidden, visible, self.config.pool))
        if self.config.normalize:
            pooled = functional.normalize(pooled, dim=-1)
        return TaskOutput(None, pooled)
