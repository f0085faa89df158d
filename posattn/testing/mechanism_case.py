"""`MechanismCase`: a mechanism with options, built into a small attention layer or a small model."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final, get_args

import torch
from jaxtyping import Float, Int
from pydantic import ValidationError
from torch import Tensor, nn

from posattn.backends import AttentionCall, logits_by_term
from posattn.backends import registry as backends
from posattn.bias import VisibilityRule
from posattn.encoder.attention import MultiHeadAttention
from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import DecoderConfig, PlainDecoderConfig
from posattn.encoder.init import named_generator
from posattn.encoder.model import MaskedLanguageModel
from posattn.encoder.position import PositionStack, Prepared
from posattn.mechanisms import Geometry, LayerPattern, MechanismConfig, Traits
from posattn.mechanisms import registry as mechanisms
from posattn.shapes import Hidden, Logits, QueryHidden

VOCAB_SIZE = 23
PAD = 0


@final
class PositionedAttention(nn.Module):
    """One attention layer with its mechanism, at any query and key positions."""

    def __init__(self, config: EncoderConfig, layer: int) -> None:
        """Build the mechanism and the layer."""
        super().__init__()
        self.stack = PositionStack(config)
        backend = backends.get(config.backend)()
        self.attention = MultiHeadAttention(config, self.stack, layer, backend)

    def prepared(
        self,
        query_positions: Int[Tensor, "#batch query"],
        key_positions: Int[Tensor, "#batch key"],
        *rules: VisibilityRule,
    ) -> Prepared:
        """Return what the mechanism prepares for these positions."""
        return self.stack.prepare(Geometry(query_positions, key_positions), rules, None)

    def call(
        self,
        query_hidden: QueryHidden,
        hidden: Float[Tensor, "batch key hidden"],
        prepared: Prepared,
    ) -> AttentionCall:
        """Return what the backend would be asked to compute."""
        return self.attention.call(query_hidden, hidden, prepared)

    def forward(
        self,
        query_hidden: QueryHidden,
        hidden: Float[Tensor, "batch key hidden"],
        prepared: Prepared,
    ) -> QueryHidden:
        """Return the attended values, projected."""
        attended: Tensor = self.attention(query_hidden, hidden, prepared)
        return attended


@final
@dataclass(frozen=True)
class MechanismCase:
    """A mechanism by name, its options, and the size of the encoder it is tried in."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    hidden_size: int = 32
    num_heads: int = 4
    seed: int = 0

    @cached_property
    def config(self) -> MechanismConfig:
        """Return the validated options."""
        entry = mechanisms.get(self.name)
        return entry.Config.model_validate({"name": self.name, **self.options})

    @property
    def traits(self) -> Traits:
        """Return what the mechanism promises with these options."""
        return self.config.traits()

    @property
    def acting_layer(self) -> int:
        """Return the first layer in which the mechanism acts."""
        return next(layer for layer in range(self.num_layers) if self.config.acts_in(layer))

    @property
    def num_layers(self) -> int:
        """Return the layers of the small model: two, or as many as the options name."""
        layers = self.config.layers
        if isinstance(layers, LayerPattern):
            return max(2, layers.start + 1)
        return max(2, *(layer + 1 for layer in layers))

    def length(self, wanted: int) -> int:
        """Return the wanted length, or the longest that the mechanism takes if that is less."""
        limit = self.config.max_length()
        return wanted if limit is None else min(wanted, limit)

    def encoder_config(self, **changes: Any) -> EncoderConfig:
        """Return the configuration of a small encoder without dropout."""
        options: dict[str, Any] = {
            "hidden_size": self.hidden_size,
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "intermediate_size": self.hidden_size,
            "hidden_dropout": 0.0,
            "attention_dropout": 0.0,
            "mechanism": self.config,
            "backend": "eager",
        }
        return EncoderConfig.model_validate({**options, **changes})

    def model(
        self,
        *,
        decoder: DecoderConfig | None = None,
        dtype: torch.dtype = torch.float64,
        seed: int | None = None,
        **changes: Any,
    ) -> MaskedLanguageModel:
        """Return a small model in evaluation mode with random values in every parameter."""
        config = self.encoder_config(**changes)
        model = MaskedLanguageModel(config, decoder or PlainDecoderConfig(), VOCAB_SIZE)
        randomize(model, self.seed if seed is None else seed)
        return model.to(dtype).eval()

    def attention(self, dtype: torch.dtype = torch.float64, **changes: Any) -> PositionedAttention:
        """Return one attention layer in evaluation mode with random values in every parameter."""
        attention = PositionedAttention(self.encoder_config(**changes), self.acting_layer)
        randomize(attention, self.seed)
        return attention.to(dtype).eval()

    def ids(self, batch: int, length: int) -> Int[Tensor, "batch length"]:
        """Return random tokens, none of which is padding."""
        generator = named_generator(self.seed, f"ids {batch} {length}")
        return torch.randint(1, VOCAB_SIZE, (batch, self.length(length)), generator=generator)

    def segments(self, ids: Int[Tensor, "batch length"]) -> Int[Tensor, "batch length"] | None:
        """Return two segments in each row, or None if the mechanism reads none."""
        if not self.traits.reads_segments:
            return None
        return (torch.arange(ids.shape[1]) % 3 == 1).long().expand_as(ids)

    def hidden(self, batch: int, length: int, dtype: torch.dtype = torch.float64) -> Hidden:
        """Return random states."""
        generator = named_generator(self.seed, f"hidden {batch} {length}")
        shape = (batch, length, self.hidden_size)
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    def able_backends(self, dtype: torch.dtype = torch.float64) -> list[str]:
        """Return the names of the backends that do not refuse this mechanism in a dtype, `auto` left out."""
        hidden, positions = self.hidden(1, 2, dtype), torch.arange(2)[None]
        able = []
        for name in backends.names():
            attention = self.attention(backend=name).to(dtype)
            call = attention.call(hidden, hidden, attention.prepared(positions, positions))
            if name != "auto" and not attention.attention.backend.refusals(call):
                able.append(name)
        return able

    def alternatives(self) -> Iterator["MechanismCase"]:
        """Yield the case with one option changed, for each option that can be."""
        for name, value in self.config:
            if name in ("name", "layers"):
                continue
            for other in _other_values(value, type(self.config).model_fields[name].annotation):
                case = replace(self, options={**self.options, name: other})
                if case.is_possible():
                    yield case
                    break

    def is_possible(self) -> bool:
        """Return whether the options are valid and fit the small encoder."""
        try:
            self.encoder_config()
        except ValidationError:
            return False
        return True


def full_logits(call: AttentionCall) -> Logits:
    """Return the scaled query-key products with the whole bias, invisible keys included."""
    total = sum(logits_by_term(call).values(), torch.zeros(()))
    batch, heads, num_queries = call.query.shape[:3]
    return total.expand(batch, heads, num_queries, call.key.shape[2])


def randomize(module: nn.Module, seed: int) -> None:
    """Give every parameter a random value that depends on the seed and its name.

    Projections and tables are drawn afresh; anything else is moved a little from its first value.
    """
    with torch.no_grad():
        done: set[int] = set()
        for prefix, part in module.named_modules():
            for name, parameter in part.named_parameters(prefix, recurse=False):
                if id(parameter) in done:
                    continue
                done.add(id(parameter))
                noise = torch.randn(parameter.shape, generator=named_generator(seed, name))
                if isinstance(part, nn.Linear | nn.Embedding):
                    parameter.copy_(0.3 * noise)
                else:
                    parameter.add_(0.1 * noise)


def _other_values(value: object, annotation: object) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [2 * value, type(value)(value / 2)]
    if isinstance(value, str):
        return [other for other in get_args(annotation) if other != value]
    return []
