"""`Family`: checkpoints of one kind, from a config.json to recipe sections and a mapping table."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from posattn.admission import class_check
from posattn.checkpoints.mapping import Table
from posattn.checkpoints.settings import Settings
from posattn.registry import Registry
from posattn.training.weights import Shape


@dataclass(frozen=True)
class Plan:
    """What a checkpoint becomes: sections as a recipe writes them, heads by name, and the table.

    `has_head` says whether there is a masked-token head, stored or promised by the config.
    """

    encoder: dict[str, Any]
    table: Table
    has_head: bool
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    decoder: dict[str, Any] = field(default_factory=lambda: {"name": "plain"})
    head: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Family(ABC):
    """One kind of checkpoint. `plan` sees the config and the shapes, never the values."""

    name: ClassVar[str]
    model_types: ClassVar[frozenset[str]]  # as config.json has them
    custom_classes: ClassVar[frozenset[str]] = frozenset()
    """Classes of custom code, as `auto_map` names them behind `--`, whose computation this family is."""

    prefix: ClassVar[str] = ""
    """How transformers' classes of this kind begin; empty where an export has no place there."""
    zeros: ClassVar[tuple[str, ...]] = ()
    """Parameters of ours that `widened` may add; zeros make them do nothing."""

    @abstractmethod
    def plan(self, settings: Settings, stored: Mapping[str, Shape]) -> Plan:
        """Return what becomes of a checkpoint with this config and these tensors."""

    def config(self, encoder: Mapping[str, Any]) -> dict[str, Any]:
        """Return the config.json for an encoder section as `plain_section` writes it.

        Families with a `prefix` have it. Only what this kind can say is said; an export holds it to
        `plan`, which must give the section back.
        """
        raise NotImplementedError

    def widened(self, encoder: dict[str, Any]) -> dict[str, Any]:
        """Return the section with the parameters that transformers' class has in any case."""
        return encoder


families: Registry[type[Family]] = Registry(
    "checkpoint family", "posattn.checkpoints", class_check(Family)
)
