"""`Host`: what `speed_up` knows of one attention implementation of transformers."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import ValidationError
from torch import nn

from posattn.checkpoints.drop_in.modules import SpedUpAttention, SpedUpEncoder
from posattn.mechanisms import ClippedDistances, DisentangledConfig, LogBuckets

_REPLACED = (
    "another tool has replaced the forward of {} (hooks of accelerate do); remove that first"
)
Beyond: TypeAlias = Literal["held", "growing"]


@dataclass(frozen=True)
class Facts:
    """What one attention module computes; `buckets` None without relative attention."""

    terms: frozenset[str]
    num_score_terms: int
    buckets: ClippedDistances | LogBuckets | None
    is_shared: bool  # the content projections serve the table too
    projections: tuple[Any, Any]  # of keys and queries of the table where it has its own, or None
    norm: nn.LayerNorm | None  # of the table

    def config(self) -> DisentangledConfig | None:
        """Return the same as options of the mechanism, or None if there are no position terms."""
        if self.buckets is None or not self.terms:
            return None
        return DisentangledConfig(
            c2p="c2p" in self.terms,
            p2c="p2c" in self.terms,
            buckets=self.buckets,
            projections="shared" if self.is_shared else "own",
            norm_table=self.norm is not None,
        )


class Host(ABC):
    """One version of DeBERTa in transformers. `beyond` says what buckets do past their last one."""

    name: ClassVar[str]
    fast_encoder: ClassVar[type[SpedUpEncoder]]
    fast_attention: ClassVar[type[SpedUpAttention]]

    def __init__(self, beyond: Beyond) -> None:
        """Take the option."""
        self.beyond = beyond

    @abstractmethod
    def facts(self, encoder: Any, attention: Any) -> Facts:
        """Return what an attention module of an encoder computes."""

    @abstractmethod
    def problems(self, attention: Any) -> list[str]:
        """Return what an attention module does that posattn has no form of."""

    def layers(self, encoder: Any) -> list[Any]:
        """Return the attention module of each layer."""
        return [layer.attention.self for layer in encoder.layer]

    def is_encoder(self, module: nn.Module) -> bool:
        """Return whether a module is this version's encoder, sped up or not."""
        return type(module) in (self.fast_encoder, self.fast_encoder.transformers_class)

    def is_attention(self, module: nn.Module) -> bool:
        """Return whether a module is this version's attention, sped up or not."""
        return type(module) in (self.fast_attention, self.fast_attention.transformers_class)

    def refusals(self, encoder: Any) -> Iterator[str]:
        """Yield every reason why this encoder's attention cannot be replaced."""
        if not self.layers(encoder):
            yield "the encoder has no layers"
        if "forward" in vars(encoder):
            yield _REPLACED.format(type(encoder).__name__)
        for index, attention in enumerate(self.layers(encoder)):
            yield from (f"layer {index}: {text}" for text in self._of_layer(encoder, attention))

    def _of_layer(self, encoder: Any, attention: Any) -> Iterator[str]:
        if not self.is_attention(attention):
            yield f"its attention is {type(attention).__qualname__}, not transformers' own"
            return
        if "forward" in vars(attention):
            yield _REPLACED.format(type(attention).__name__)
        if any(parameter.is_meta for parameter in attention.parameters()):
            yield "its weights are on the meta device; load them first"
        yield from self.problems(attention)
        try:
            facts = self.facts(encoder, attention)
            facts.config()
        except ValidationError as error:
            yield "; ".join(problem["msg"] for problem in error.errors())
            return
        for projection in facts.projections:
            if projection is not None and not isinstance(projection, nn.Linear):
                yield f"the table's projection is a {type(projection).__name__}, not an nn.Linear"
