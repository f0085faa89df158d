"""What mechanisms share that have another mechanism in their options: all that is not theirs is its own."""

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from jaxtyping import Int
from torch import Tensor, nn
from typing_extensions import override

from posattn.bias import AttentionBias, RelativeValues, VisibilityRule
from posattn.mechanisms.base import (
    EncoderDims,
    Flops,
    Geometry,
    Heads,
    InnerMechanismConfig,
    LayerPattern,
    Mechanism,
    MechanismConfig,
    Site,
    Traits,
    mechanisms,
)
from posattn.shapes import Hidden


class WrapperConfig(MechanismConfig):
    """Options of a mechanism around another; wrappers do not nest."""

    wraps: ClassVar[bool] = True

    mechanism: InnerMechanismConfig

    @override
    def traits(self) -> Traits:
        traits: Traits = self.mechanism.traits()
        return traits

    @override
    def max_length(self) -> int | None:
        limit: int | None = self.mechanism.max_length()
        return limit

    @override
    def fresh_rows_beyond(self, trained: int) -> bool:
        fresh: bool = self.mechanism.fresh_rows_beyond(trained)
        return fresh

    @override
    def memory(self) -> int:
        memory: int = self.mechanism.memory()
        return memory

    @override
    def problems(self, dims: EncoderDims) -> list[str]:
        problems: list[str] = self.mechanism.problems(dims)
        if self.mechanism.layers == LayerPattern():
            return problems
        return [*problems, f"layers belong to '{self.name}', not to the mechanism that it wraps"]

    @override
    def softmax_divisor(self, dims: EncoderDims) -> float | None:
        divisor: float | None = self.mechanism.softmax_divisor(dims)
        return divisor

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        return {"wrapped": self.mechanism.name, **self.mechanism.card(dims)}

    @override
    def flops(self, dims: EncoderDims, num_queries: int, num_keys: int) -> Flops:
        flops: Flops = self.mechanism.flops(dims, num_queries, num_keys)
        return flops


C = TypeVar("C", bound=WrapperConfig)


class Wrapper(Mechanism[C]):
    """A mechanism around another, whose hooks it passes on unless it overrides them."""

    def __init__(self, config: C, dims: EncoderDims) -> None:
        """Build the wrapped mechanism."""
        super().__init__(config, dims)
        wrapped = config.mechanism
        self.wrapped: Mechanism[Any] = mechanisms.get(wrapped.name)(wrapped, dims)

    @override
    def make_layer(self) -> nn.Module:
        return self.wrapped.make_layer()

    @override
    def embed(self, hidden: Hidden, positions: Int[Tensor, "#batch length"]) -> Hidden:
        return self.wrapped.embed(hidden, positions)

    @override
    def prepare(self, geometry: Geometry) -> Any:
        return self.wrapped.prepare(geometry)

    @override
    def rotate(self, heads: Heads, prepared: Any) -> Heads:
        return self.wrapped.rotate(heads, prepared)

    @override
    def resting(self, prepared: Any) -> Any:
        return self.wrapped.resting(prepared)

    @override
    def bias(self, site: Site) -> AttentionBias | None:
        return self.wrapped.bias(site)

    @override
    def relative_values(self, site: Site) -> RelativeValues | None:
        return self.wrapped.relative_values(site)

    @override
    def visibility(self, geometry: Geometry) -> tuple[VisibilityRule, ...]:
        return self.wrapped.visibility(geometry)

    @override
    def content_term(self) -> str | None:
        return self.wrapped.content_term()
