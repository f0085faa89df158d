"""`Mechanism`: what position adds to an encoder, through hooks that do nothing unless overridden.

One mechanism object serves the whole encoder and owns what its layers share (DeBERTa's relative
table, Transformer-XL's u and v). What each layer has for itself comes from `make_layer` and is handed
back in `Site.layer`. What depends on positions alone is made by `prepare`, once per forward.
"""

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from jaxtyping import Int, Num
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor, nn

from posattn.admission import class_check
from posattn.bias import AttentionBias, RelativeValues, Visibility, VisibilityRule
from posattn.config import FrozenConfig, Many, NamedConfig, open_field
from posattn.lazy import cached_property
from posattn.mechanisms.chance import draw_seed
from posattn.registry import Registry
from posattn.relations import Geometry as Geometry
from posattn.relations import LineRelation, RelationConfig
from posattn.shapes import Hidden, KeyHeads, QueryHeads, QueryHidden, ValueHeads


class EncoderDims(NamedTuple):
    """What a mechanism may know of the encoder it serves."""

    hidden_size: int
    num_heads: int
    norm_eps: float = 1e-12
    relation: RelationConfig = LineRelation()

    @property
    def head_dim(self) -> int:
        """Return the channels per head."""
        return self.hidden_size // self.num_heads


ANY_RELATION = ("line", "grid", "distances", "categories")
DISTANCES = ("line", "distances")
LINE = ("line",)


@dataclass(frozen=True)
class Traits:
    """What a mechanism does and what its maths promises; the conformance suite holds it to them."""

    adds_to_input: bool = False  # overrides `embed`
    rotates: bool = False  # overrides `rotate`
    widens: bool = False  # and its rotation changes the number of channels of queries and keys
    adds_bias: bool = False  # overrides `bias`
    adds_values: bool = False  # overrides `relative_values`
    places: bool = False  # overrides `place`
    translation_invariant: bool = True  # shifting all positions changes nothing
    knows_direction: bool = True  # False: reversing the sequence reverses the output
    knows_position: bool = True  # False: the encoder is permutation-equivariant
    causal: bool = False  # keys after the query are invisible
    pairwise: bool = True  # False: a logit depends on other visible keys too (CoPE)
    reads_query: bool = False  # what position does to a logit depends on the query's content (c2p)
    reads_key: bool = False  # .. and on the key's (p2c)
    reads_segments: bool = False  # looks at `Geometry.query_segments` and `key_segments`
    relations: tuple[str, ...] = ("line",)  # the encoder's relations that it reads


class Flops(NamedTuple):
    """Floating-point operations a mechanism adds, a multiply-add counted as two."""

    per_sequence: int = 0  # in one attention layer, for one sequence
    per_forward: int = 0  # in one attention layer, however many sequences there are
    per_prepare: int = 0  # in `prepare`, for all layers and all sequences together
    per_encoder: int = 0  # in all layers that see the same queries together, however many sequences


class FanInLinear(nn.Linear):
    """A projection whose first weight and bias are uniform within 1 / sqrt(in_features), PyTorch's rule.

    For small networks inside a mechanism: at the encoder's `initializer_range`, made for wide
    projections, what such a network returns would vanish, and its gradient with it.
    """


class LayerPattern(FrozenConfig):
    """Every `every`-th layer, from layer `start` (the first layer is 0)."""

    every: PositiveInt = 1
    start: NonNegativeInt = 0

    def picks(self, layer: int) -> bool:
        """Return whether the pattern includes the layer."""
        return layer >= self.start and (layer - self.start) % self.every == 0


class MechanismConfig(NamedConfig):
    """Options of one mechanism; `layers` says where it acts (a list of layers, or a pattern)."""

    wraps: ClassVar[bool] = False  # its options contain another mechanism

    layers: Many[NonNegativeInt] | LayerPattern = LayerPattern()

    def acts_in(self, layer: int) -> bool:
        """Return whether the mechanism acts in the attention of this layer."""
        if isinstance(self.layers, LayerPattern):
            return self.layers.picks(layer)
        return layer in self.layers

    def traits(self) -> Traits:
        """Return what the mechanism does and promises with these options."""
        return Traits()

    def max_length(self) -> int | None:
        """Return the longest sequence it can take, or None if there is no limit."""
        return None

    def fresh_rows_beyond(self, trained: int) -> bool:
        """Return whether texts longer than `trained` tokens read rows of a table that those never read.

        Such rows are at their first values after training at that length.
        """
        return False

    def memory(self) -> int:
        """Return how many states of earlier segments each layer keeps as extra keys."""
        return 0

    def problems(self, dims: EncoderDims) -> list[str]:
        """Return every reason why these options do not fit an encoder of these dimensions."""
        return []

    def softmax_divisor(self, dims: EncoderDims) -> float | None:
        """Return what query-key products are divided by, or None for the usual sqrt(head_dim)."""
        return None

    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        """Return the lines of the architecture card: what is clipped, bucketed, added, scaled."""
        return {}

    def flops(self, dims: EncoderDims, num_queries: int, num_keys: int) -> Flops:
        """Return the operations added, in one attention layer or in all of them together."""
        return Flops()


@dataclass(frozen=True)
class Places:
    """The tokens of one forward as `Mechanism.place` sees them; padding has position -1."""

    positions: Int[Tensor, "#batch length"]
    documents: Int[Tensor, "batch length"] | None = None  # None: each row is one text
    training: bool = False
    rows: int = 1  # sequences in the batch; one row of positions may stand for all of them
    drawn: Tensor | None = None  # the seed, if it is drawn already, as it is for a compiled graph

    @cached_property
    def seed(self) -> int:
        """Return `seed_tensor` as a number, which ends a compiled graph: its value is looked at."""
        return int(self.seed_tensor)

    @cached_property
    def seed_tensor(self) -> Int[Tensor, ""]:
        """Return one integer per forward, drawn when first asked for; `mechanisms.chance` takes it.

        It comes from torch's global generator on the CPU, whatever the device. Training seeds that
        one for each micro-batch, so the number follows from (seed, step, micro-batch) and from no data.
        """
        return draw_seed() if self.drawn is None else self.drawn

    @property
    def lengths(self) -> Int[Tensor, "#batch #length"]:
        """Return the length of each token's text, which is its largest position plus one."""
        positions, documents = self.positions, self.documents
        return Geometry(positions, positions, None, documents, documents).key_lengths


class Heads(NamedTuple):
    """Queries, keys and values of one attention layer, split into heads.

    A rotation may give queries and keys another number of channels than values have.
    """

    query: QueryHeads
    key: KeyHeads
    value: ValueHeads


@dataclass(frozen=True)
class Site:
    """One attention layer as a mechanism sees it.

    `heads` are as projected, before any rotation; `scale` multiplies query-key products in this
    layer; `prepared` is what `prepare` returned; `layer` is what `make_layer` returned for this layer;
    `query_proj` and `key_proj` are the layer's own content projections. `visibility` is what the
    queries may see, for biases that count keys; `query_hidden` are the states behind the queries.
    """

    heads: Heads
    scale: float
    prepared: Any
    layer: nn.Module
    query_proj: nn.Linear
    key_proj: nn.Linear
    visibility: Visibility = field(default_factory=lambda: Visibility(()))
    query_hidden: QueryHidden | None = None


C = TypeVar("C", bound=MechanismConfig)


class Mechanism(nn.Module, ABC, Generic[C]):
    """What position adds to an encoder. Override the hooks that the mechanism uses, and only those.

    Parameters of nn.Linear, nn.Embedding and the norms are initialised by (seed, name) after
    construction, at the encoder's initializer_range unless they are of a FanInLinear; any other
    parameter must get its first value in the constructor without chance.
    """

    Config: ClassVar[type[MechanismConfig]]

    def __init__(self, config: C, dims: EncoderDims) -> None:
        """Build what all layers share."""
        super().__init__()
        self.config = config
        self.dims = dims

    def make_layer(self) -> nn.Module:
        """Return what one attention layer owns; called once for each layer where it acts."""
        return nn.Module()

    def place(self, places: Places) -> Num[Tensor, "#batch length"]:
        """Return the positions at which this mechanism sees the tokens; called once per forward.

        `embed` and `prepare` get what it returns. Chance, in training only, comes from `places.seed_tensor`.
        """
        return places.positions

    def embed(self, hidden: Hidden, positions: Int[Tensor, "#batch length"]) -> Hidden:
        """Return the token embeddings with position added."""
        return hidden

    def prepare(self, geometry: Geometry) -> Any:
        """Return what depends on positions alone; called once per forward, shared by all layers."""
        return None

    def rotate(self, heads: Heads, prepared: Any) -> Heads:
        """Return queries, keys and values as position transforms them."""
        return heads

    def resting(self, prepared: Any) -> Any:
        """Return what `prepare` would if all tokens were at one place, for `rotate`; None if unknown.

        It tells what rotated queries and keys say of content from what turning adds. Without it the two
        are one term wherever terms are shown.
        """
        return None

    def bias(self, site: Site) -> AttentionBias | None:
        """Return what is added to the logits, which are scaled already: terms scale themselves."""
        return None

    def relative_values(self, site: Site) -> RelativeValues | None:
        """Return what is added to the attended values."""
        return None

    def visibility(self, geometry: Geometry) -> tuple[VisibilityRule, ...]:
        """Return further rules on which keys a query may see."""
        return ()

    def content_term(self) -> str | None:
        """Return the field's name for the query-key term beside this mechanism's terms, if it has one."""
        return None


mechanisms: Registry[type[Mechanism[Any]]] = Registry(
    "mechanism", "posattn.mechanisms", class_check(Mechanism, config=MechanismConfig)
)
AnyMechanismConfig = open_field(mechanisms, MechanismConfig)
InnerMechanismConfig = open_field(mechanisms, MechanismConfig, lambda config: config.wraps)
"""Any mechanism but those that themselves contain one."""
