"""Mechanisms with one fault each, most of them once found in respected code."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Int
from pydantic import ConfigDict
from torch import Tensor, nn
from typing_extensions import override

from posattn.bias import AttentionBias, Causal, DenseBias, DistanceBias, SumBias, VisibilityRule
from posattn.mechanisms import (
    EncoderDims,
    Flops,
    Geometry,
    Heads,
    Mechanism,
    MechanismConfig,
    Places,
    Site,
    Traits,
)
from posattn.positions import Distances, GivenPairs
from posattn.shapes import Hidden

NAME = "broken"


class BrokenConfig(MechanismConfig):
    name: Literal["broken"] = "broken"
    slope: float = 0.5

    @override
    def traits(self) -> Traits:
        return Traits(adds_bias=True)


class Sound(Mechanism[Any]):
    """A penalty on distance, larger to the right, with nothing wrong in it."""

    Config = BrokenConfig

    @override
    def prepare(self, geometry: Geometry) -> Any:
        return geometry.distance

    @override
    def bias(self, site: Site) -> AttentionBias | None:
        return DistanceBias("distance", site.prepared, self.dims.num_heads, self.penalty)

    def penalty(self, distance: Tensor, head: Tensor) -> Tensor:
        return (
            -self.config.slope * torch.where(distance < 0, -2.0 * distance, distance) * (head + 1)
        )


class IndexForPosition(Sound):
    """Takes the place in the tensor for the position."""

    @override
    def prepare(self, geometry: Geometry) -> Any:
        query = torch.arange(geometry.query_positions.shape[1])
        key = torch.arange(geometry.key_positions.shape[1])
        return Distances(query[None], key[None])


@dataclass(frozen=True)
class SignError(AttentionBias):
    """States one bias as a whole, and its negative one by one."""

    whole: DistanceBias

    @override
    def materialize(self) -> Any:
        return self.whole.materialize()

    @override
    def terms(self) -> Any:
        return self.whole.terms()

    @override
    def score_mod(self) -> Any:
        mod = self.whole.score_mod()
        return lambda score, *place: 2 * score - mod(score, *place)


class TwoStatements(Sound):
    @override
    def bias(self, site: Site) -> AttentionBias | None:
        whole = super().bias(site)
        assert isinstance(whole, DistanceBias)
        return SignError(whole)


class TermThatDoesNothing(Sound):
    """Like p2p in public code: it is on, and adds no score."""

    @override
    def bias(self, site: Site) -> AttentionBias | None:
        nothing = DenseBias("nothing", torch.zeros(1, 1, 1, 1, dtype=site.heads.query.dtype))
        return SumBias(
            (DistanceBias("d", site.prepared, self.dims.num_heads, self.penalty), nothing)
        )


class RotationForgotten(Mechanism[Any]):
    """Computes a rotation and returns the heads unrotated, as cramming's default does."""

    class Config(BrokenConfig):
        @override
        def traits(self) -> Traits:
            return Traits(rotates=True)

    @override
    def rotate(self, heads: Heads, prepared: Any) -> Heads:
        heads.query.roll(1, -1)
        return heads


class AbsoluteLeak(Sound):
    """Lets the absolute position of the key into a bias of distances."""

    @override
    def prepare(self, geometry: Geometry) -> Any:
        return GivenPairs(geometry.distance.pairs * (1 + geometry.key_positions[:, None, :]))


class DirectionDenied(Sound):
    """Says that it cannot tell left from right, and can."""

    class Config(BrokenConfig):
        @override
        def traits(self) -> Traits:
            return Traits(adds_bias=True, knows_direction=False)


class DirectionClaimed(Sound):
    """Says that it can tell left from right, and cannot."""

    @override
    def penalty(self, distance: Tensor, head: Tensor) -> Tensor:
        return -self.config.slope * distance.abs() * (head + 1)


class SecretlyCausal(Sound):
    @override
    def visibility(self, geometry: Geometry) -> tuple[VisibilityRule, ...]:
        return (Causal(geometry.distance),)


class CausalInNameOnly(Sound):
    class Config(BrokenConfig):
        @override
        def traits(self) -> Traits:
            return Traits(adds_bias=True, causal=True)


class PositionDenied(Sound):
    class Config(BrokenConfig):
        @override
        def traits(self) -> Traits:
            return Traits(adds_bias=True, knows_position=False)


class InvarianceDenied(Sound):
    class Config(BrokenConfig):
        @override
        def traits(self) -> Traits:
            return Traits(adds_bias=True, translation_invariant=False)


class WrongDtype(Mechanism[Any]):
    """Turns queries in float32, whatever the model's dtype."""

    class Config(BrokenConfig):
        @override
        def traits(self) -> Traits:
            return Traits(rotates=True)

    @override
    def rotate(self, heads: Heads, prepared: Any) -> Heads:
        return Heads(heads.query.float() * 2, heads.key, heads.value)


class UnusedParameter(Sound):
    def __init__(self, config: BrokenConfig, dims: EncoderDims) -> None:
        super().__init__(config, dims)
        self.unused = nn.Embedding(3, 3)


class StartsAtRandom(Sound):
    def __init__(self, config: BrokenConfig, dims: EncoderDims) -> None:
        super().__init__(config, dims)
        self.slopes = nn.Parameter(torch.rand(dims.num_heads))

    @override
    def penalty(self, distance: Tensor, head: Tensor) -> Tensor:
        return super().penalty(distance, head) * self.slopes[head]


class TableInTheState(Sound):
    """Saves a table as long as the longest sequence seen (MosaicBERT's examples)."""

    def __init__(self, config: BrokenConfig, dims: EncoderDims) -> None:
        super().__init__(config, dims)
        self.register_buffer("seen", torch.zeros(1))

    @override
    def prepare(self, geometry: Geometry) -> Any:
        self.seen = torch.zeros(max(len(self.seen), geometry.distance.largest))
        return geometry.distance


class RemembersTheLength(Sound):
    """Keeps the distances of the first call of each length."""

    def __init__(self, config: BrokenConfig, dims: EncoderDims) -> None:
        super().__init__(config, dims)
        self.kept: dict[tuple[int, int], Tensor] = {}

    @override
    def prepare(self, geometry: Geometry) -> Any:
        shape = geometry.query_positions.shape[1], geometry.key_positions.shape[1]
        return self.kept.setdefault(shape, geometry.distance)


KEPT_BY_ALL: list[float] = []


class SharedByAll(Sound):
    """A module-level cache without the option that decides its content (equinox's theta)."""

    @override
    def penalty(self, distance: Tensor, head: Tensor) -> Tensor:
        KEPT_BY_ALL[:] = [*KEPT_BY_ALL, self.config.slope]
        return super().penalty(distance, head) * len(set(KEPT_BY_ALL))


class StaleProjection(Sound):
    """Projects its slopes once and for all in evaluation."""

    def __init__(self, config: BrokenConfig, dims: EncoderDims) -> None:
        super().__init__(config, dims)
        self.slopes = nn.Embedding(dims.num_heads, 1)
        self.kept: Tensor | None = None

    @override
    def penalty(self, distance: Tensor, head: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return super().penalty(distance, head) * self.slopes.weight[head, 0]
        if self.kept is None:
            self.kept = self.slopes.weight.detach().clone()
        return super().penalty(distance, head) * self.kept[head, 0]


class LongerThanItSays(Sound):
    """Has a limit and says so, but one that is off by one for RoBERTa's form."""

    class Config(BrokenConfig):
        @override
        def traits(self) -> Traits:
            return Traits(adds_to_input=True, translation_invariant=False)

        @override
        def max_length(self) -> int:
            return 41

    def __init__(self, config: BrokenConfig, dims: EncoderDims) -> None:
        super().__init__(config, dims)
        self.table = nn.Embedding(40, dims.hidden_size)

    @override
    def embed(self, hidden: Hidden, positions: Int[Tensor, "#batch length"]) -> Hidden:
        return hidden + self.table(positions.clamp(min=0))

    @override
    def bias(self, site: Site) -> AttentionBias | None:
        return None


class TakesAnyOption(Sound):
    class Config(BrokenConfig):
        model_config = ConfigDict(extra="ignore")


class CanBeChanged(Sound):
    class Config(BrokenConfig):
        model_config = ConfigDict(frozen=False)


class SpoiltGradient(Sound):
    """Divides by a distance of zero where it is not used: the value is right, the gradient is not."""

    def __init__(self, config: BrokenConfig, dims: EncoderDims) -> None:
        super().__init__(config, dims)
        self.slopes = nn.Embedding(dims.num_heads, 1)

    @override
    def penalty(self, distance: Tensor, head: Tensor) -> Tensor:
        size = distance.abs() * self.slopes.weight[head, 0] ** 2
        return super().penalty(distance, head) + torch.where(distance == 0, 0.0, size.sqrt())


class Costly(Sound):
    class Config(BrokenConfig):
        @override
        def flops(self, dims: EncoderDims, num_queries: int, num_keys: int) -> Any:
            return Flops(per_sequence=100 - num_queries)


class LooksAtPadding(Sound):
    """Scales its bias by the length of the batch, padding included."""

    @override
    def prepare(self, geometry: Geometry) -> Any:
        return geometry.distance.mapped(lambda apart: apart * geometry.key_positions.shape[1])


class MovesSecretly(Sound):
    """Sees the tokens elsewhere in training, and does not say so."""

    @override
    def place(self, places: Places) -> Tensor:
        return places.positions + (places.seed % 7 + 1 if places.training else 0)


class MovesInEvaluation(Sound):
    """Draws positions in evaluation too."""

    class Config(BrokenConfig):
        @override
        def traits(self) -> Traits:
            return Traits(adds_bias=True, places=True)

    @override
    def place(self, places: Places) -> Tensor:
        return places.positions * (places.seed % 97 + 1)


class ReadsDistancesConfig(BrokenConfig):
    @override
    def traits(self) -> Traits:
        return Traits(adds_bias=True, relations=("line", "distances"))


class RelationIgnored(Sound):
    """Says that it reads given distances, and reads those on a line."""

    Config = ReadsDistancesConfig


class OrderBesideTheRelation(Sound):
    """Reads given distances, and the order of the tokens too."""

    Config = ReadsDistancesConfig

    @override
    def prepare(self, geometry: Geometry) -> Any:
        return GivenPairs(geometry.relation.pairs + geometry.distance.pairs)


class ReadsTheQuerySecretly(Sound):
    """Lets the query's content decide about distance, and keeps it to itself."""

    @override
    def bias(self, site: Site) -> AttentionBias | None:
        content_BHQ = site.heads.query.sum(-1)
        return DenseBias("c2p", content_BHQ[..., None] * site.prepared.pairs[:, None])


class ReadsTheKeySecretly(Sound):
    """Lets the key's content decide about distance, and keeps it to itself."""

    @override
    def bias(self, site: Site) -> AttentionBias | None:
        content_BHK = site.heads.key.sum(-1)
        return DenseBias("p2c", content_BHK[:, :, None] * site.prepared.pairs[:, None])


class ContentClaimed(Sound):
    """Says that content decides about distance; only distance does."""

    class Config(BrokenConfig):
        @override
        def traits(self) -> Traits:
            return Traits(adds_bias=True, reads_query=True)


class KeyClaimed(Sound):
    """Says that the key decides about distance; only distance does."""

    class Config(BrokenConfig):
        @override
        def traits(self) -> Traits:
            return Traits(adds_bias=True, reads_key=True)


class TableClaimed(Sound):
    """Says that longer texts read untrained rows, and has no table."""

    class Config(BrokenConfig):
        @override
        def fresh_rows_beyond(self, trained: int) -> bool:
            return True


FAULTS: dict[type[Mechanism[Any]], tuple[str, str]] = {
    MovesSecretly: ("active_hooks_are_the_declared_ones", "declare places=True"),
    MovesInEvaluation: ("chance_moves_places_in_training_only", "evaluation places by chance"),
    IndexForPosition: ("positions_may_be_any_integers", "logits at chosen positions: off by"),
    TwoStatements: ("score_mod_equals_materialize", "score_mod against materialize"),
    TermThatDoesNothing: ("terms_sum_to_the_bias", "term 'nothing' is zero everywhere"),
    RotationForgotten: (
        "active_hooks_are_the_declared_ones",
        "says rotates=True, but the hook says False",
    ),
    AbsoluteLeak: ("translation_changes_nothing", "output at shifted positions: off by"),
    DirectionDenied: ("reversal_mirrors_the_output", "output of reversed tokens: off by"),
    DirectionClaimed: ("reversal_changes_the_output", "declare knows_direction=False"),
    SecretlyCausal: ("later_tokens_are_visible", "declare causal=True"),
    CausalInNameOnly: ("later_tokens_are_invisible", "outputs before the changed token: off by"),
    PositionDenied: ("the_encoder_is_permutation_equivariant", "output of permuted tokens: off by"),
    InvarianceDenied: ("translation_changes_the_output", "declare translation_invariant=True"),
    WrongDtype: ("every_dtype_is_kept", "dtype|scalar type"),
    UnusedParameter: ("every_parameter_learns", "unused.weight gets no gradient"),
    StartsAtRandom: ("first_values_come_from_seed_and_name", "slopes starts at random"),
    TableInTheState: ("state_does_not_depend_on_length", "length 3 changed the state dict"),
    RemembersTheLength: ("positions_are_not_remembered", "an earlier call reached a later one"),
    SharedByAll: ("instances_do_not_share_state", "another instance changed this one"),
    StaleProjection: ("evaluation_sees_changed_weights", "loaded weights are not used"),
    LongerThanItSays: ("the_longest_sequence_is_enforced", "index out of range"),
    TakesAnyOption: ("unknown_options_are_refused", "an unknown option is accepted"),
    CanBeChanged: ("options_are_frozen", "can be reassigned"),
    SpoiltGradient: ("every_parameter_learns", "slopes.weight: not all values are finite"),
    Costly: ("the_card_and_the_cost_are_stated", "flops"),
    RelationIgnored: (
        "the_declared_relations_reach_the_output",
        "relation 'distances': another relation changes nothing",
    ),
    OrderBesideTheRelation: (
        "numbering_tokens_anew_permutes_the_output",
        "relation 'distances': tokens numbered anew: off by",
    ),
    ReadsTheQuerySecretly: ("position_ignores_the_query", "with another query .reads_query=True"),
    ReadsTheKeySecretly: ("position_ignores_the_key", "with another key .reads_key=True"),
    ContentClaimed: ("position_meets_the_query", "declare reads_query=False"),
    KeyClaimed: ("position_meets_the_key", "declare reads_key=False"),
    TableClaimed: ("fresh_rows_are_declared", "not are in: no table"),
    LooksAtPadding: ("padding_changes_nothing", "right pads: off by"),
}
"""Each faulty mechanism with the check that has to find it, and what the check has to say."""
