"""An encoder with heads for tasks, each called by its name."""

from collections.abc import Mapping
from typing import final

from jaxtyping import Bool, Int
from torch import Tensor, nn

from posattn.encoder.encoder import Encoder
from posattn.encoder.tasks.base import TaskConfig, TaskHead, TaskOutput, tasks
from posattn.errors import UnknownName


@final
class TaskModel(nn.Module):
    """An encoder and heads; a bare encoder has none."""

    def __init__(self, encoder: Encoder, heads: Mapping[str, TaskConfig]) -> None:
        """Build the heads, each under its name in `heads`."""
        super().__init__()
        self.config = encoder.config
        self.encoder = encoder
        self.tasks = nn.ModuleDict(
            {name: tasks.get(head.name)(head, encoder.config) for name, head in heads.items()}
        )

    def forward(
        self,
        task: str,
        ids: Int[Tensor, "*choices length"],
        *,
        visible: Bool[Tensor, "*choices length"] | None = None,
        segments: Int[Tensor, "*choices length"] | None = None,
    ) -> TaskOutput:
        """Return the output of one head; UnknownName if there is none of that name."""
        if task not in self.tasks:
            raise UnknownName(
                f"this model has no head '{task}' (it has: {', '.join(self.tasks) or 'none'})"
            )
        head = self.tasks[task]
        assert isinstance(head, TaskHead)
        return head.run(self.encoder, ids, visible=visible, segments=segments)
