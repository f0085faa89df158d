"""`EncoderConfig`: the shape of an encoder and which mechanisms and backend it uses."""

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from posattn.backends import registry as backends
from posattn.config import FrozenConfig, Many, Text
from posattn.errors import RecipeError
from posattn.mechanisms import AnyMechanismConfig, EncoderDims, LayerPattern, MechanismConfig
from posattn.relations import AnyRelation, LineRelation, RelationConfig

Activation = Literal["gelu", "gelu_tanh", "relu", "silu", "geglu", "geglu_tanh", "reglu", "swiglu"]
GATED = ("geglu", "geglu_tanh", "reglu", "swiglu")
Probability = Annotated[float, Field(ge=0, lt=1)]


class NormConfig(FrozenConfig):
    """Which norm, and where it stands."""

    kind: Literal["layer_norm", "rms_norm"] = "layer_norm"
    placement: Literal["post", "pre"] = (
        "post"  # after each residual sum (BERT), or before each block
    )
    eps: PositiveFloat = 1e-12
    before_first: bool = True  # False, with "pre": none before the first attention (ModernBERT)
    bias: bool = True  # False: layer norms without bias (ModernBERT); rms norms never have one

    @model_validator(mode="after")
    def _only_layer_norms_have_a_bias(self) -> "NormConfig":
        if self.kind == "rms_norm" and not self.bias:
            raise ValueError("kind: rms_norm has no bias to leave out; drop bias: false")
        return self

    @model_validator(mode="after")
    def _first_is_optional_only_before_blocks(self) -> "NormConfig":
        if self.placement == "post" and not self.before_first:
            raise ValueError("before_first: false needs placement: pre; use one of the two")
        return self


class WindowConfig(FrozenConfig):
    """Local attention: keys up to size // 2 positions away, to each side, in the layers named."""

    size: PositiveInt = 128
    layers: Many[NonNegativeInt] | LayerPattern = LayerPattern()

    def acts_in(self, layer: int) -> bool:
        """Return whether this layer's attention is local."""
        if isinstance(self.layers, LayerPattern):
            return self.layers.picks(layer)
        return layer in self.layers


class ConvolutionConfig(FrozenConfig):
    """A convolution of the embeddings, added to the first layer's states (DeBERTa v2 xlarge)."""

    kernel_size: PositiveInt = 3
    groups: PositiveInt = 1
    activation: Literal["tanh", "gelu", "gelu_tanh", "relu", "silu"] = "tanh"

    @model_validator(mode="after")
    def _has_a_middle(self) -> "ConvolutionConfig":
        if self.kernel_size % 2 == 0:
            raise ValueError(
                f"kernel_size {self.kernel_size} is even, so no place is in the middle; "
                f"use {self.kernel_size - 1} or {self.kernel_size + 1}"
            )
        return self


def _known_backend(name: object) -> object:
    if isinstance(name, str):
        try:
            backends.get(name)
        except RecipeError as error:
            raise ValueError(str(error)) from error
    return name


def _as_list(value: Any) -> Any:
    """Return one mechanism as a list of one, and a list as it is."""
    return value if isinstance(value, list | tuple) else [value]


Mechanisms = Annotated[Many[AnyMechanismConfig], BeforeValidator(_as_list)]


def unread_relation(part: MechanismConfig, relation: RelationConfig) -> list[str]:
    """Return why a mechanism does not go with the encoder's relation, if it does not."""
    readable = part.traits().relations
    if relation.name in readable:
        return []
    return [
        f"mechanism '{part.name}' with these options reads relation {' or '.join(readable)}, not "
        f"'{relation.name}'; use one that reads it (disentangled, t5, shaw, ..), or none"
    ]


class EncoderConfig(FrozenConfig):
    """The encoder. Defaults are BERT's, at the size of the quick recipes."""

    hidden_size: PositiveInt = 128
    num_layers: PositiveInt = 4
    num_heads: PositiveInt = 4
    intermediate_size: PositiveInt | None = None  # None: 4 x hidden_size
    activation: Activation = "gelu"
    norm: NormConfig = NormConfig()
    hidden_dropout: Probability = 0.1
    attention_dropout: Probability = 0.1
    projection_bias: Literal["all", "no_key", "none"] = "all"  # of query, key, value, output
    feed_forward_bias: bool | Literal["output"] = True  # "output": of the last projection only
    segments: NonNegativeInt = 0  # rows of the segment (token type) table; 0: none
    token_rows: PositiveInt | None = None  # rows of the token table; None: the tokenizer's ids
    embedding_size: PositiveInt | None = (
        None  # a narrower token table, projected; None: hidden_size
    )
    # of a narrow table: of tokens alone (DeBERTa), or of tokens and segments, normed, with positions
    # added behind it (RoFormer)
    embedding_projection: Literal["tokens", "sum"] = "tokens"
    convolution: ConvolutionConfig | None = None  # beside the first layer
    embedding_norm: bool = True
    embedding_scale: Literal["none", "sqrt_hidden"] = "none"  # Vaswani: tokens x sqrt(hidden_size)
    initializer_range: PositiveFloat = 0.02
    mechanism: Mechanisms = Field(default=({"name": "none"},))  # one, or a list
    relation: AnyRelation = LineRelation()  # of two tokens: what relative mechanisms read
    window: WindowConfig | None = None
    unpad: bool = (
        False  # compute the real tokens only, texts of like length together; equal results
    )
    backend: Annotated[Text, BeforeValidator(_known_backend)] = "auto"

    @model_validator(mode="after")
    def _parts_fit(self) -> "EncoderConfig":
        if self.hidden_size % self.num_heads:
            near = [n for n in range(1, self.hidden_size + 1) if self.hidden_size % n == 0]
            raise ValueError(
                f"num_heads {self.num_heads} does not divide hidden_size {self.hidden_size}; "
                f"choose one of {', '.join(map(str, near[:12]))}"
            )
        problems = [text for part in self.mechanism for text in self._problems_of(part)]
        problems += self._problems_between()
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def dims(self) -> EncoderDims:
        """Return what mechanisms may know of this encoder."""
        return EncoderDims(self.hidden_size, self.num_heads, self.norm.eps, self.relation)

    def inner_size(self) -> int:
        """Return the width inside the feed-forward block."""
        return self.intermediate_size or 4 * self.hidden_size

    def max_length(self) -> int | None:
        """Return the longest sequence that all parts can take; None if there is no limit."""
        return min((limit for _, limit in self.limits()), default=None)

    def limits(self) -> list[tuple[str, int]]:
        """Return every part that limits the length of a sequence, in words, with its limit."""
        found = [(f"mechanism '{part.name}'", part.max_length()) for part in self.mechanism]
        found.append((f"relation '{self.relation.name}'", self.relation.max_length()))
        return [(name, limit) for name, limit in found if limit is not None]

    def memory_length(self) -> int:
        """Return the states of earlier segments that layers keep; 0 if no mechanism has memory."""
        return max((part.memory() for part in self.mechanism), default=0)

    def reads_segments(self) -> bool:
        """Return whether a mechanism reads which segment (token type) each token belongs to."""
        return any(part.traits().reads_segments for part in self.mechanism)

    def acting_in(self, layer: int) -> list[MechanismConfig]:
        """Return the mechanisms that act in the attention of a layer."""
        return [part for part in self.mechanism if part.acts_in(layer)]

    def divisor(self, layer: int) -> float:
        """Return what query-key products are divided by in a layer."""
        dims = self.dims()
        for part in self.acting_in(layer):
            if (divisor := part.softmax_divisor(dims)) is not None:
                return divisor
        return float(dims.head_dim**0.5)

    def _problems_of(self, part: MechanismConfig) -> list[str]:
        problems = part.problems(self.dims()) + unread_relation(part, self.relation)
        if not any(part.acts_in(layer) for layer in range(self.num_layers)):
            problems.append(f"mechanism '{part.name}' acts in no layer of {self.num_layers}")
        traits = part.traits()
        acts = traits.rotates or traits.adds_bias or traits.adds_values
        if traits.adds_to_input and not acts and part.layers != LayerPattern():
            problems.append(
                f"mechanism '{part.name}' adds to the input, before all layers, so its layers would "
                "change nothing; leave them out"
            )
        if isinstance(part.layers, tuple):
            outside = [layer for layer in part.layers if layer >= self.num_layers]
            if outside:
                problems.append(
                    f"mechanism '{part.name}' names layers {outside}, but the encoder has layers "
                    f"0 to {self.num_layers - 1}"
                )
        return problems

    def _problems_of_widths(self) -> list[str]:
        problems = []
        if self.embedding_size == self.hidden_size:
            problems.append(
                f"embedding_size {self.embedding_size} is hidden_size, where nothing is projected; "
                "leave it out"
            )
        if self.embedding_size is None and self.embedding_projection == "sum":
            problems.append(
                "embedding_projection 'sum' needs an embedding_size below hidden_size to project from; "
                "set one, or leave it out"
            )
        if self.convolution is not None and self.hidden_size % self.convolution.groups:
            problems.append(
                f"convolution.groups {self.convolution.groups} does not divide hidden_size "
                f"{self.hidden_size}"
            )
        if self.convolution is not None and self.num_layers < 2:
            problems.append("convolution follows the first of several layers; num_layers is 1")
        return problems

    def _problems_between(self) -> list[str]:
        problems = [] if self.mechanism else ["mechanism is an empty list; name one, or none"]
        problems += self._problems_of_widths()
        dims = self.dims()
        for layer in range(self.num_layers):
            acting = self.acting_in(layer)
            divisors = {part.softmax_divisor(dims) for part in acting} - {None}
            turning = [part for part in acting if part.traits().rotates]
            if len(turning) > 1 and any(part.traits().widens for part in turning):
                names = ", ".join(part.name for part in turning)
                problems.append(
                    f"{names} all turn queries and keys in layer {layer}, but one of them changes the "
                    "number of their channels; use one of them"
                )
                break
            if len(divisors) > 1:
                names = ", ".join(part.name for part in acting)
                problems.append(f"{names} ask for different scales in layer {layer}: {divisors}")
                break
        for part in self.mechanism:
            traits = part.traits()
            in_attention = traits.rotates or traits.adds_bias or traits.adds_values
            if traits.places and in_attention and self.memory_length():
                problems.append(
                    f"mechanism '{part.name}' chooses positions anew in every forward, which keys "
                    "remembered from earlier segments do not have; set memory_length to 0"
                )
        if self.unpad and self.memory_length():
            names = ", ".join(part.name for part in self.mechanism if part.memory())
            problems.append(
                f"unpad takes texts out of their rows, but '{names}' has memory, which continues one row "
                "in the next; set memory_length to 0, or unpad to false"
            )
        if self.window is not None and self.relation.name != "line":
            problems.append(
                f"window counts places on a line, but the relation is '{self.relation.name}'; leave out "
                "one of the two"
            )
        if self.window is not None and not any(map(self.window.acts_in, range(self.num_layers))):
            problems.append(f"window acts in no layer of {self.num_layers}")
        return problems
