"""Floating-point operations of one forward, counted from the recipe alone.

A multiply-add counts as two. Matrix products are counted; norms, softmax, activations and additions are
not, as in torch's own counter, which the tests compare with. A training step takes three times as much,
or less by what would be the gradient of constants (the sinusoids of Transformer-XL, the distances of `mlp`).
"""

from dataclasses import dataclass, fields

from posattn.encoder.config import GATED, EncoderConfig
from posattn.recipe.schema import Recipe

TRAINING_FACTOR = 3.0
"""Operations of a training step over those of its forward: every product has two in backward."""


@dataclass(frozen=True)
class FlopCount:
    """Operations per token of the input in a forward, by part."""

    projections: float
    attention: float
    feed_forward: float
    mechanism: float
    head: float

    @property
    def total(self) -> float:
        """Return the sum of all parts."""
        return float(sum(getattr(self, field.name) for field in fields(self)))


def count_flops(
    recipe: Recipe,
    *,
    length: int | None = None,
    batch_size: int | None = None,
    vocab_size: int | None = None,
    decoded: int | None = None,
) -> FlopCount:
    """Return the operations per token for sequences of `length` tokens.

    `length` and `batch_size` are by default the recipe's; what a mechanism computes once per forward
    is spread over the batch. `decoded` is the number of places per sequence that are predicted.
    """
    encoder = recipe.encoder
    length = recipe.data.max_length if length is None else length
    batch = recipe.train.batch_size if batch_size is None else batch_size
    if vocab_size is None:
        vocab_size = recipe.data.tokenizer.expected_vocab_size()
    if decoded is None:
        decoded = max(1, round(recipe.objective.targets_in(length)))
    keys = length + encoder.memory_length()
    everywhere, at_decoded = recipe.decoder.layer_runs(encoder)
    last = encoder.num_layers - 1
    runs = [(min(layer, last), length) for layer in range(everywhere)]
    runs += [(last, decoded)] * at_decoded
    parts = [_layer(encoder, layer, queries, keys, batch) for layer, queries in runs]
    size = encoder.hidden_size
    narrow = encoder.embedding_size or size
    # what is prepared once is prepared anew for the queries that are decoded only
    prepared = sum(
        part.flops(encoder.dims(), length, keys).per_prepare for part in encoder.mechanism
    )
    prepared *= 2 if at_decoded else 1
    projections, attention, feed_forward, mechanism = (
        sum(part[index] for part in parts) / length for index in range(4)
    )
    everywhere_layers = [layer for layer, _ in runs[:everywhere]]
    decoded_layers = [layer for layer, _ in runs[everywhere:]]
    for layers, queries in ((everywhere_layers, length), (decoded_layers, decoded)):
        mechanism += _shared(encoder, layers, queries, keys) / batch / length
    mechanism += prepared / batch / length
    projections += _around_the_layers(encoder)
    columns = encoder.token_rows or vocab_size
    columns += size if recipe.head.transform else 0
    head = 2.0 * decoded * narrow * columns / length
    return FlopCount(projections, attention, feed_forward, mechanism, head)


def _around_the_layers(encoder: EncoderConfig) -> float:
    """Return what the projection of a narrow token table and the convolution take per token."""
    size = encoder.hidden_size
    found = 2.0 * (encoder.embedding_size or 0) * size
    if encoder.convolution is not None:
        found += 2.0 * encoder.convolution.kernel_size * size * size / encoder.convolution.groups
    return found


def _shared(encoder: EncoderConfig, layers: list[int], queries: int, keys: int) -> float:
    """Return what mechanisms that act in any of these layers compute for all of them together."""
    acting = [part for part in encoder.mechanism if any(map(part.acts_in, layers))]
    return float(sum(part.flops(encoder.dims(), queries, keys).per_encoder for part in acting))


def _layer(
    encoder: EncoderConfig, layer: int, queries: int, keys: int, batch: int
) -> tuple[float, float, float, float]:
    """Return projections, attention, feed-forward and mechanisms of one layer for one sequence."""
    size, inner = encoder.hidden_size, encoder.inner_size()
    matrices = 3 if encoder.activation in GATED else 2
    added = [part.flops(encoder.dims(), queries, keys) for part in encoder.acting_in(layer)]
    return (
        4.0 * size * size * (queries + keys),
        4.0 * queries * keys * size,
        2.0 * matrices * queries * size * inner,
        sum((part.per_sequence + part.per_forward / batch for part in added), 0.0),
    )
