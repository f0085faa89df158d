"""`TaskHead`: from the encoder's states to what a task wants, and the registry of such heads."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from posattn.admission import class_check
from posattn.config import NamedConfig, open_field
from posattn.encoder.config import EncoderConfig
from posattn.encoder.encoder import Encoder
from posattn.registry import Registry
from posattn.shapes import Hidden


class TaskConfig(NamedConfig):
    """Options of one head."""


@dataclass(frozen=True)
class TaskOutput:
    """What a head returns; which axes there are, each head says.

    `pooled` is the vector per text that the logits were read from, where there is one.
    """

    logits: Float[Tensor, "*any labels"] | None
    pooled: Float[Tensor, "batch hidden"] | None


C = TypeVar("C", bound=TaskConfig)


class TaskHead(nn.Module, ABC, Generic[C]):
    """What stands on the encoder for one task."""

    Config: ClassVar[type[TaskConfig]]

    def __init__(self, config: C, encoder: EncoderConfig) -> None:
        """Build the head for an encoder of this shape."""
        super().__init__()
        self.config = config

    def run(
        self,
        encoder: Encoder,
        ids: Int[Tensor, "*choices length"],
        *,
        visible: Bool[Tensor, "*choices length"] | None = None,
        segments: Int[Tensor, "*choices length"] | None = None,
    ) -> TaskOutput:
        """Return the head's output for these tokens; arguments as in `Encoder.forward`."""
        return self(encoder(ids, visible=visible, segments=segments), visible)

    @abstractmethod
    def forward(
        self, hidden: Hidden, visible: Bool[Tensor, "batch length"] | None = None
    ) -> TaskOutput:
        """Return the head's output for the states of the last layer."""


tasks: Registry[type[TaskHead[Any]]] = Registry(
    "task head", "posattn.tasks", class_check(TaskHead, config=TaskConfig)
)
if TYPE_CHECKING:
    AnyTaskConfig: TypeAlias = TaskConfig
else:
    AnyTaskConfig = open_field(tasks, TaskConfig)
