"""Rotary position embedding, RoPE (Su et al. 2021, arXiv:2104.09864, section 3.2).

    q'_i = R(p_i) q_i,  k'_j = R(p_j) k_j,   q'_i . k'_j depends on p_i - p_j only
    R(p) turns channel pair t by the angle p * base ** (-2 t / r), r = rotated channels per head

    interleaved: pair t is channels (2 t, 2 t + 1)    RoFormer, GPT-J, x-transformers
    half:        pair t is channels (t, t + r / 2)    GPT-NeoX, LLaMA, ModernBERT

The layouts are the same function up to a permutation of the query and key projections' rows; loaded
weights need the one that they were trained with. `fraction` below 1 leaves the last channels of each
head unrotated (GPT-NeoX: 0.25). `rotate_value` turns values too (an option of RoFormer in transformers;
not in the paper). Angles, sines and cosines are computed in float64 and rounded once.

`scaling` stretches the angles to texts longer than `original_length`, s = factor, w_t as above:

    linear       w_t / s                        Chen et al. 2023, arXiv:2306.15595, and kaiokendev
    ntk          base * s ** (r / (r - 2))      bloc97 2023; x-transformers' base_rescale_factor
    dynamic_ntk  the same with s L / original_length - (s - 1) for s, L = max(length of the text,
                 original_length)               emozilla 2023
    yarn         between w_t and w_t / s along a ramp over pairs t: kept below floor(dim(beta_fast)),
                 divided from ceil(dim(beta_slow)) on, dim(b) = r ln(original_length / (2 pi b)) / (2
                 ln base); queries and keys times 0.1 ln s + 1       Peng et al. 2023, arXiv:2309.00071

An explicit `attention_factor` of yarn is final: no logarithm is taken of it. `truncate: false` leaves out
floor and ceil, as an option of transformers does. As in both released codes of yarn, the ramp runs over
the r / 2 pairs while its upper end is held within r - 1. The length that dynamic_ntk reads is each
text's own (its largest position plus one), afresh in every forward and remembered by nothing;
transformers takes the longest of the batch and keeps it for shorter texts that follow.

On a grid (`encoder.relation`) some pairs turn with the row and the others with the column (axial):

    split        the first half of the pairs turn by the row, the second by the column, each half with
                 the frequencies of r / 2 channels      SAM 2, DINOv3, Qwen2-VL and timm's "cat" forms
    alternating  one series of r channels dealt out in turn: rows have t = 0, 2, .., columns t = 1, 3, ..;
                 rows come first in the channels        Pixtral

Row before column is `encoder.relation.first: row`; SAM 2 has columns first. Rows and columns are counted from
0; DINOv3 scales them to -1 .. 1 and multiplies by 2 pi, which changes logits between cells like a
`linear` factor of side / (4 pi). Tokens in no cell are not turned, as in DINOv3; they see cells absolutely.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeAlias, final

import torch
from jaxtyping import Float, Int, Num
from pydantic import Field, PositiveFloat, PositiveInt, model_validator
from torch import Tensor
from typing_extensions import override

from posattn.config import FrozenConfig
from posattn.mechanisms.base import (
    EncoderDims,
    Geometry,
    Heads,
    Mechanism,
    MechanismConfig,
    Traits,
    mechanisms,
)
from posattn.positions import (
    PairLayout,
    angles,
    dynamic_ntk_frequencies,
    inverse_frequencies,
    ntk_frequencies,
    turned_pairs,
    yarn_frequencies,
    yarn_range,
)

Factor: TypeAlias = Annotated[float, Field(ge=1)]
Lengths: TypeAlias = Callable[[], Int[Tensor, "#batch #tokens"]]
Frequencies: TypeAlias = Float[Tensor, "*#tokens pairs"]


class RotaryScaling(FrozenConfig):
    """How angles are stretched to texts longer than those of training."""

    reads_length: ClassVar[bool] = False  # the angles depend on how long a text is

    factor: Factor  # how many times longer

    def problems(self, width: int, base: float) -> list[str]:
        """Return every reason why it does not suit so many rotated channels and this base."""
        return []

    @abstractmethod
    def frequencies(self, width: int, base: float, lengths: Lengths) -> Frequencies:
        """Return the frequencies of `width` channels; `lengths` looks up the lengths of texts."""

    def amplitude(self) -> float:
        """Return what turned queries and turned keys are multiplied by."""
        return 1.0

    @abstractmethod
    def words(self) -> str:
        """Return the scaling for the card."""


class LinearScaling(RotaryScaling):
    """Position interpolation: every position divided by the factor."""

    kind: Literal["linear"]

    @override
    def frequencies(self, width: int, base: float, lengths: Lengths) -> Frequencies:
        return inverse_frequencies(width // 2, width, base) / self.factor

    @override
    def words(self) -> str:
        return f"linear, positions divided by {self.factor:g}"


class NTKScaling(RotaryScaling):
    """A larger base, so that fast pairs turn as before and the slowest is divided by the factor."""

    kind: Literal["ntk"]

    @override
    def problems(self, width: int, base: float) -> list[str]:
        return _more_than_one_pair(self.kind, width)

    @override
    def frequencies(self, width: int, base: float, lengths: Lengths) -> Frequencies:
        return ntk_frequencies(width, base, self.factor)

    @override
    def words(self) -> str:
        return f"ntk, base for texts {self.factor:g} times longer"


class DynamicNTKScaling(RotaryScaling):
    """NTK scaling that grows with the length of each text, and does nothing up to the original one."""

    reads_length: ClassVar[bool] = True

    kind: Literal["dynamic_ntk"]
    original_length: PositiveInt  # longest text of training

    @override
    def problems(self, width: int, base: float) -> list[str]:
        return _more_than_one_pair(self.kind, width)

    @override
    def frequencies(self, width: int, base: float, lengths: Lengths) -> Frequencies:
        return dynamic_ntk_frequencies(width, base, self.factor, self.original_length, lengths())

    @override
    def words(self) -> str:
        return f"dynamic_ntk, factor {self.factor:g}, from length {self.original_length} on"


class YarnScaling(RotaryScaling):
    """Slow pairs interpolated, fast pairs kept, and a temperature."""

    kind: Literal["yarn"]
    original_length: PositiveInt  # longest text of training
    attention_factor: PositiveFloat | None = None  # final if given; None: 0.1 ln(factor) + 1
    beta_fast: PositiveFloat = 32.0  # rotations over the original length; bounds the low pair
    beta_slow: PositiveFloat = 1.0  # bounds the high pair
    truncate: bool = True  # both bounds to whole pairs

    @model_validator(mode="after")
    def _fast_is_faster(self) -> "YarnScaling":
        if self.beta_fast <= self.beta_slow:
            raise ValueError(
                f"beta_fast {self.beta_fast:g} must be more than beta_slow {self.beta_slow:g}: "
                "pairs that rotate faster than beta_fast are kept, slower than beta_slow divided"
            )
        return self

    @override
    def problems(self, width: int, base: float) -> list[str]:
        return [f"rope scaling 'yarn' needs a base above 1, not {base:g}"] if base <= 1 else []

    @override
    def frequencies(self, width: int, base: float, lengths: Lengths) -> Frequencies:
        betas = (self.beta_fast, self.beta_slow)
        bounds = yarn_range(width, base, self.original_length, betas, self.truncate)
        return yarn_frequencies(width, base, self.factor, *bounds)

    @override
    def amplitude(self) -> float:
        if self.attention_factor is not None:
            return self.attention_factor
        return 0.1 * math.log(self.factor) + 1.0

    @override
    def words(self) -> str:
        return (
            f"yarn, factor {self.factor:g} over length {self.original_length}, betas "
            f"{self.beta_fast:g} and {self.beta_slow:g}, queries and keys x {self.amplitude():.6g}"
        )


def _more_than_one_pair(kind: str, width: int) -> list[str]:
    return [f"rope scaling '{kind}' needs more than 2 rotated channels per head"] * (width == 2)


Scaling: TypeAlias = Annotated[
    LinearScaling | NTKScaling | DynamicNTKScaling | YarnScaling, Field(discriminator="kind")
]


class RotaryConfig(MechanismConfig):
    """Options of rotary position embedding."""

    name: Literal["rope"] = "rope"
    base: PositiveFloat = 10000.0
    layout: PairLayout = "half"
    fraction: Annotated[float, Field(gt=0, le=1)] = 1.0  # of each head's channels that are rotated
    rotate_value: bool = False
    scaling: Scaling | None = None  # of angles, to texts longer than those of training
    axes: Literal["split", "alternating"] | None = None  # on a grid: which pairs follow which axis

    def rotated(self, dims: EncoderDims) -> int:
        """Return the number of rotated channels per head."""
        return math.floor(dims.head_dim * self.fraction + 1e-9)  # 100 x 0.58 is 57.999..

    @override
    def traits(self) -> Traits:
        reads_length = self.scaling is not None and self.scaling.reads_length
        return Traits(
            rotates=True,
            reads_query=True,
            reads_key=True,
            translation_invariant=not (self.rotate_value or reads_length),
            relations=("line",) if reads_length else ("line", "grid"),
        )

    @override
    def problems(self, dims: EncoderDims) -> list[str]:
        rotated, scaling, axes = self.rotated(dims), self.scaling, dims.relation.num_axes
        if self.axes is not None and axes == 1:
            return [f"rope axes: {self.axes} has one axis only on a line; use relation: grid"]
        if rotated and rotated % (2 * axes) == 0:
            return [] if scaling is None else scaling.problems(self.series(dims), self.base)
        wanted = "an even, positive number" if axes == 1 else f"a positive multiple of {2 * axes}"
        return [
            f"rope rotates pairs of channels, but fraction {self.fraction:g} of head_dim "
            f"{dims.head_dim} is {rotated}; choose {wanted} of channels"
        ]

    def series(self, dims: EncoderDims) -> int:
        """Return the number of channels that one series of frequencies is made for."""
        rotated = self.rotated(dims)
        return rotated if self.axes == "alternating" else rotated // dims.relation.num_axes

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        what = "query, key and value" if self.rotate_value else "query and key"
        lines = {
            "positions": f"rotation of {what}, base {self.base:g}, unlimited",
            "rotated channels": f"{self.rotated(dims)} of {dims.head_dim} per head, {self.layout}",
        }
        if dims.relation.num_axes > 1:
            lines["axes"] = (
                f"{self.axes or 'split'}, {self.series(dims) // 2} frequencies in a series"
            )
        return lines if self.scaling is None else {**lines, "scaling": self.scaling.words()}


class Turn(NamedTuple):
    """Cosines and sines for queries and for keys, [batch or 1, 1, length, rotated / 2], float64."""

    query_cosine: Tensor
    query_sine: Tensor
    key_cosine: Tensor
    key_sine: Tensor


@final
@mechanisms.register("rope")
class RotaryPositions(Mechanism[RotaryConfig]):
    """Turns pairs of query and key channels by an angle that grows with position."""

    Config = RotaryConfig

    @override
    def prepare(self, geometry: Geometry) -> Turn:
        query_angle = self._angles(geometry.query_positions, lambda: geometry.query_lengths)
        key_angle = self._angles(geometry.key_positions, lambda: geometry.key_lengths)
        return Turn(query_angle.cos(), query_angle.sin(), key_angle.cos(), key_angle.sin())

    @override
    def rotate(self, heads: Heads, prepared: Turn) -> Heads:
        factor = 1.0 if self.config.scaling is None else self.config.scaling.amplitude()
        of_query = prepared.query_cosine * factor, prepared.query_sine * factor
        of_key = prepared.key_cosine * factor, prepared.key_sine * factor
        layout = self.config.layout
        query = turned_pairs(heads.query, *of_query, layout)
        key = turned_pairs(heads.key, *of_key, layout)
        if not self.config.rotate_value:
            return Heads(query, key, heads.value)
        of_value = prepared.key_cosine, prepared.key_sine
        return Heads(query, key, turned_pairs(heads.value, *of_value, layout))

    @override
    def resting(self, prepared: Turn) -> Turn:
        query, key = torch.ones_like(prepared.query_cosine), torch.ones_like(prepared.key_cosine)
        return Turn(query, torch.zeros_like(query), key, torch.zeros_like(key))

    def _angles(
        self, positions: Num[Tensor, "batch length"], lengths: Lengths
    ) -> Float[Tensor, "batch 1 length pairs"]:
        width, base, scaling = self.config.series(self.dims), self.config.base, self.config.scaling
        if scaling is None:
            frequency = inverse_frequencies(width // 2, width, base)
        else:
            frequency = scaling.frequencies(width, base, lengths)
        places = self.dims.relation.places(positions)
        along = places.coordinates.unbind(-1)
        if self.config.axes == "alternating":
            turns = [angles(at, frequency[axis :: len(along)]) for axis, at in enumerate(along)]
        else:
            turns = [angles(at, frequency) for at in along]
        return places.kept(torch.cat(turns, dim=-1))[:, None]
