"""`AttentionBackend`: one way of computing attention, and the registry of them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from posattn.admission import class_check
from posattn.bias import AttentionBias, RelativeValues, Visibility
from posattn.errors import BackendRefusal
from posattn.registry import Registry
from posattn.shapes import KeyHeads, QueryHeads, ValueHeads


@dataclass(frozen=True)
class AttentionCall:
    """`softmax(scale * query . key + bias) value` over the visible keys, with all it needs.

    A query that sees no key gets zeros. `dropout` is the share of probabilities dropped, 0 outside of
    training. `resting` is what queries and keys would be if all tokens were at one place, where a
    rotation acts; observers are told it, backends never need it.
    """

    query: QueryHeads
    key: KeyHeads
    value: ValueHeads
    scale: float
    bias: AttentionBias | None = None
    visibility: Visibility = field(default_factory=lambda: Visibility(()))
    relative_values: RelativeValues | None = None
    dropout: float = 0.0
    resting: tuple[QueryHeads, KeyHeads] | None = None


class AttentionBackend(ABC):
    """One way of computing attention. It refuses with reasons what it cannot do, and drops nothing."""

    name: ClassVar[str]

    @abstractmethod
    def refusals(self, call: AttentionCall) -> list[str]:
        """Return every reason why this backend cannot run the call; empty if it can."""

    @abstractmethod
    def run(self, call: AttentionCall) -> QueryHeads:
        """Return the attended values of a call that has no refusals."""

    def rank(self, call: AttentionCall) -> int:
        """Return the place of this backend in `auto`'s order for this call; the lowest is tried first."""
        return 100

    def taking(self, call: AttentionCall) -> "AttentionBackend":
        """Return the backend that would run the call, this one or one it chooses; raise with all reasons."""
        if reasons := self.refusals(call):
            raise BackendRefusal(
                f"backend '{self.name}' cannot run this attention: {'; '.join(reasons)}. "
                "Choose another backend, or 'auto'"
            )
        return self

    def attend(self, call: AttentionCall) -> QueryHeads:
        """Run the call, or raise with all reasons; a named backend never hands it to another."""
        return self.taking(call).run(call)

    def ran(self) -> list[str]:
        """Return the names of the backends that computed attention, in words for people."""
        return [self.name]


backends: Registry[type[AttentionBackend]] = Registry(
    "backend", "posattn.backends", class_check(AttentionBackend)
)
