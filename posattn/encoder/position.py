"""How several mechanisms act as one: what the encoder shares, and what each attention layer has."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, cast, final

import torch
from jaxtyping import Num
from torch import Tensor, nn
from typing_extensions import override

from posattn.bias import AttentionBias, RelativeValues, Visibility, VisibilityRule, total_bias
from posattn.encoder.config import EncoderConfig
from posattn.encoder.texts import TextGroup
from posattn.errors import IncompatibleParts
from posattn.mechanisms import (
    Geometry,
    Heads,
    Mechanism,
    MechanismConfig,
    Places,
    Site,
    registry,
)
from posattn.shapes import Hidden, KeyHidden, QueryHidden

Placed: TypeAlias = Mapping[str, Num[Tensor, "#batch length"]]
"""Positions of all tokens, for each mechanism that sees them elsewhere than the encoder does."""


class Projected(NamedTuple):
    """Queries, keys and values of one attention layer before they are split into heads."""

    query_hidden: QueryHidden  # the states behind the queries
    query: QueryHidden
    key: KeyHidden
    value: KeyHidden


class Arrangement(ABC):
    """How the tokens of one forward meet in attention."""

    @abstractmethod
    def attended(
        self, projected: Projected, attend: "Callable[[Projected, Prepared], QueryHidden]"
    ) -> QueryHidden:
        """Return the attended values of all queries, each row of texts computed by `attend`."""


@final
@dataclass(frozen=True)
class Prepared(Arrangement):
    """What all layers of one forward share: each mechanism with what it made of the positions."""

    mechanisms: dict[str, tuple[Mechanism[Any], Any]]
    geometry: Geometry
    visibility: Visibility
    windowed: Visibility  # the same within the local window
    combined: dict[tuple[str | bool, ...], Visibility] = field(default_factory=dict)

    def visible(self, acting: Sequence[str], is_windowed: bool) -> Visibility:
        """Return what queries see where these mechanisms act, made once for all such layers."""
        key: tuple[str | bool, ...] = (is_windowed, *acting)
        if key not in self.combined:
            shared = self.windowed if is_windowed else self.visibility
            rules = [self.mechanisms[name][0].visibility(self.geometry) for name in acting]
            self.combined[key] = shared.with_rules(*(rule for more in rules for rule in more))
        return self.combined[key]

    @override
    def attended(
        self, projected: Projected, attend: "Callable[[Projected, Prepared], QueryHidden]"
    ) -> QueryHidden:
        return attend(projected, self)


@final
@dataclass(frozen=True)
class PreparedTexts(Arrangement):
    """The same for texts in one row: the keys of each group, its queries, and what it shares."""

    groups: tuple[tuple[TextGroup, TextGroup, Prepared], ...]

    @override
    def attended(
        self, projected: Projected, attend: "Callable[[Projected, Prepared], QueryHidden]"
    ) -> QueryHidden:
        numbers, found = [], []
        for keys, queries, prepared in self.groups:
            part = Projected(
                queries.take(projected.query_hidden),
                queries.take(projected.query),
                keys.take(projected.key),
                keys.take(projected.value),
            )
            attended = attend(part, prepared)
            found.append(attended.flatten(0, 1).index_select(0, queries.slots))
            numbers.append(queries.numbers)
        if not found:  # nothing is to be predicted
            return torch.zeros_like(projected.query)
        whole = found[0].new_zeros(projected.query.shape[1], found[0].shape[1])
        return whole.index_copy(0, torch.cat(numbers), torch.cat(found))[None]


@final
class PositionStack(nn.Module):
    """The mechanisms of an encoder, in the order of the recipe."""

    def __init__(self, config: EncoderConfig) -> None:
        """Build each mechanism once."""
        super().__init__()
        self.mechanisms = nn.ModuleDict()
        for name, part in named_parts(config).items():
            self.mechanisms[name] = registry.get(part.name)(part, config.dims())
        self.draws = any(part.traits().places for part in named_parts(config).values())

    def place(self, places: Places) -> Placed:
        """Return where the mechanisms see the tokens, left out where that is where they are."""
        placed = {name: mechanism.place(places) for name, mechanism in self.owned().items()}
        return {name: at for name, at in placed.items() if at is not places.positions}

    def embed(
        self, hidden: Hidden, positions: Num[Tensor, "#batch length"], placed: Placed
    ) -> Hidden:
        """Return the token embeddings with every mechanism's positions added."""
        for name, mechanism in self.owned().items():
            hidden = mechanism.embed(hidden, placed.get(name, positions))
        return hidden

    def owned(self) -> dict[str, Mechanism[Any]]:
        """Return each mechanism under its name."""
        return cast("dict[str, Mechanism[Any]]", dict(self.mechanisms.items()))

    def prepare(
        self,
        geometry: Geometry,
        rules: tuple[VisibilityRule, ...],
        window: VisibilityRule | None,
        placed: Mapping[str, Geometry] | None = None,
    ) -> Prepared:
        """Return what all layers share in one forward; `placed` are geometries of single mechanisms."""
        own = placed or {}
        parts = {
            name: (mechanism, mechanism.prepare(own.get(name, geometry)))
            for name, mechanism in self.owned().items()
        }
        visibility = Visibility(rules)
        windowed = visibility.with_rules(window) if window is not None else visibility
        return Prepared(parts, geometry, visibility, windowed)


@final
class LayerPosition(nn.Module):
    """The mechanisms that act in one attention layer, with what that layer owns of each."""

    def __init__(self, config: EncoderConfig, stack: PositionStack, layer: int) -> None:
        """Let each acting mechanism make its part of the layer."""
        super().__init__()
        self.scale = 1.0 / config.divisor(layer)
        self.is_windowed = config.window is not None and config.window.acts_in(layer)
        self.parts = nn.ModuleDict()
        for name, part in named_parts(config).items():
            if part.acts_in(layer):
                self.parts[name] = stack.owned()[name].make_layer()

    def sites(
        self,
        heads: Heads,
        prepared: Prepared,
        projections: tuple[nn.Linear, nn.Linear],
        visibility: Visibility,
        query_hidden: QueryHidden,
    ) -> list[tuple[Mechanism[Any], Site]]:
        """Return each acting mechanism with this layer as it sees it."""
        sites = []
        for name, layer in self.parts.items():
            mechanism, value = prepared.mechanisms[name]
            site = Site(heads, self.scale, value, layer, *projections, visibility, query_hidden)
            sites.append((mechanism, site))
        return sites

    def rotate(self, sites: list[tuple[Mechanism[Any], Site]], heads: Heads) -> Heads:
        """Return the heads as all acting mechanisms turn them."""
        for mechanism, site in sites:
            heads = mechanism.rotate(heads, site.prepared)
        return heads

    def rest(self, sites: list[tuple[Mechanism[Any], Site]], heads: Heads) -> Heads | None:
        """Return the heads as they would be turned if all tokens were at one place; None if unknown."""
        turning = [(part, site) for part, site in sites if part.config.traits().rotates]
        for mechanism, site in turning:
            resting = mechanism.resting(site.prepared)
            if resting is None:
                return None
            heads = mechanism.rotate(heads, resting)
        return heads if turning else None

    def bias(self, sites: list[tuple[Mechanism[Any], Site]]) -> AttentionBias | None:
        """Return the sum of what the acting mechanisms add to the logits."""
        return total_bias([mechanism.bias(site) for mechanism, site in sites])

    def relative_values(self, sites: list[tuple[Mechanism[Any], Site]]) -> RelativeValues | None:
        """Return what one acting mechanism adds to the attended values."""
        given = [(mechanism, mechanism.relative_values(site)) for mechanism, site in sites]
        found = [(mechanism, values) for mechanism, values in given if values is not None]
        if len(found) > 1:
            names = ", ".join(type(mechanism).__name__ for mechanism, _ in found)
            raise IncompatibleParts(f"only one mechanism of a layer may add values, not {names}")
        return found[0][1] if found else None

    def visibility(self, prepared: Prepared) -> Visibility:
        """Return what the queries of this layer may see."""
        return prepared.visible(tuple(self.parts), self.is_windowed)

    def content_term(self, prepared: Prepared) -> str:
        """Return the name of the query-key term: the field's own if one mechanism has one."""
        names = {prepared.mechanisms[name][0].content_term() for name in self.parts} - {None}
        return str(names.pop()) if len(names) == 1 else "content"


def named_parts(config: EncoderConfig) -> dict[str, MechanismConfig]:
    """Return the mechanisms under their names, repeated ones numbered from 2."""
    parts: dict[str, MechanismConfig] = {}
    for part in config.mechanism:
        earlier = sum(other.name == part.name for other in parts.values())
        parts[part.name if earlier == 0 else f"{part.name}_{earlier + 1}"] = part
    return parts
