"""How a new mechanism may start from an old one: one function for each pair of mechanisms."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from posattn.checkpoints.swap.fit import fit_buckets, smallest_rows
from posattn.encoder.config import EncoderConfig
from posattn.errors import CheckpointError
from posattn.mechanisms import DisentangledConfig, LearnedConfig, T5Config
from posattn.positions import t5_buckets

_TABLE = "encoder.position.mechanisms.{}.table.weight"
_CONTENT = "encoder.layers.{}.attention.{}_proj.{}"
_OWN = "encoder.layers.{}.attention.position.parts.disentangled.position_{}_proj.{}"


@dataclass(frozen=True)
class Start:
    """First values of new parameters by name, and in words what they are."""

    tensors: dict[str, Tensor]
    how: str


@dataclass(frozen=True)
class Change:
    """An encoder before and after: options and stored tensors of the old one, options of the new one."""

    old: EncoderConfig
    new: EncoderConfig
    tensors: dict[str, Tensor]

    def weight(self, layer: int, name: str) -> Tensor:
        """Return the old content projection `query` or `key` of a layer: [heads, head_dim, hidden]."""
        found = self.tensors[_CONTENT.format(layer, name, "weight")].double()
        return found.unflatten(0, (self.old.num_heads, -1))

    def bias(self, layer: int, name: str) -> Tensor:
        """Return its bias, zeros where it has none: [heads, head_dim]."""
        shape = (self.old.num_heads, self.old.dims().head_dim)
        found = self.tensors.get(_CONTENT.format(layer, name, "bias"))
        return (
            torch.zeros(shape, dtype=torch.float64) if found is None else found.double().view(shape)
        )

    def position_scores(self, layer: int) -> Tensor:
        """Return the scaled products of the old table's rows as queries and as keys: [heads, L, L]."""
        table = self.tensors[_TABLE.format("learned")].double()
        query = torch.einsum("le,hde->hld", table, self.weight(layer, "query"))
        key = torch.einsum("le,hde->hld", table, self.weight(layer, "key"))
        return query @ key.mT / self.old.divisor(layer)


StartFunction: TypeAlias = Callable[[Change, Any, Any], Start]


def start_from_old(change: Change) -> Start:
    """Return first values for the mechanisms that are new; CheckpointError where nothing is meaningful."""
    before = {part.name: part for part in change.old.mechanism}
    after = {part.name: part for part in change.new.mechanism if part not in change.old.mechanism}
    for (old, new), function in STARTS.items():
        if old in before and new in after:
            return function(change, before[old], after[new])
    known = "; ".join(f"{old} to {new}" for old, new in STARTS)
    raise CheckpointError(
        f"--start-from-old: no way is known from {', '.join(before)} to {', '.join(after) or 'the same'} "
        f"(known: {known}); without it, new parameters start by seed and name"
    )


def _learned_to_t5(change: Change, old: LearnedConfig, new: T5Config) -> Start:
    scores = change.position_scores(0)
    distance = _distances(scores.shape[-1])
    bucket = t5_buckets(distance, new.num_buckets, new.max_distance, new.bidirectional)
    fit = fit_buckets(scores, bucket, new.num_buckets)
    how = (
        "bias of each bucket and head: least squares on the scores between positions of the old table in "
        f"layer 0, for {scores.shape[-1]} positions, up to a number per query; R^2 by head "
        f"{_spread(fit.r_squared)}"
    )
    return Start({_TABLE.format("t5"): fit.values.T.float()}, how)


def _learned_to_disentangled(change: Change, old: LearnedConfig, new: DisentangledConfig) -> Start:
    """Fit rows t to b = (K t . q + Q t . k) / divisor in all layers, q and k being those of a mean token."""
    if new.norm_table:
        raise CheckpointError(
            "--start-from-old: a normalised table cannot take values that were fitted; add "
            "--set encoder.mechanism.norm_table=false"
        )
    distance = _distances(change.position_scores(0).shape[-1])
    span = new.buckets.span()
    bucket = (new.buckets.signed(distance) + span).clamp(0, 2 * span - 1)
    mean = change.tensors["encoder.tokens.weight"].double().mean(0)
    weights, targets, shares = [], [], []
    for layer in range(change.old.num_layers):
        fit = fit_buckets(change.position_scores(layer), bucket, 2 * span)
        weights.append(_mean_scores(change, new, layer, mean))
        targets.append(fit.values)
        shares.append(fit.r_squared)
    rows, reached = smallest_rows(torch.cat(weights), torch.cat(targets))
    tensors = {_TABLE.format("disentangled"): rows.float(), **_own_projections(change, new)}
    how = (
        "rows of the table: the smallest whose scores with a token of mean embedding come nearest to the "
        "scores between positions of the old table by bucket, in all layers and heads; R^2 of the buckets "
        f"{_spread(torch.cat(shares))}, R^2 of the rows {reached:.3f}"
    )
    own = "; position projections are copies of the content projections" if len(tensors) > 1 else ""
    return Start(tensors, how + own)


def _mean_scores(change: Change, new: DisentangledConfig, layer: int, mean: Tensor) -> Tensor:
    """Return what multiplies a row of the table in its scores with a mean token: [heads, hidden]."""
    query, key = change.weight(layer, "query"), change.weight(layer, "key")
    found = torch.zeros(query.shape[0], query.shape[2], dtype=torch.float64)
    if new.c2p:
        found += torch.einsum("hd,hde->he", query @ mean + change.bias(layer, "query"), key)
    if new.p2c:
        found += torch.einsum("hd,hde->he", key @ mean + change.bias(layer, "key"), query)
    return found / change.new.divisor(layer)


def _own_projections(change: Change, new: DisentangledConfig) -> dict[str, Tensor]:
    """Return the table's own projections, where it has them, as copies of the content's; biases are zero."""
    if new.projections == "shared":
        return {}
    found = {}
    for layer in range(change.old.num_layers):
        for name, wanted in zip(("key", "query"), new.projected(), strict=True):
            if wanted:
                weight = change.tensors[_CONTENT.format(layer, name, "weight")]
                found[_OWN.format(layer, name, "weight")] = weight.clone()
            if wanted and (name == "query" or new.key_bias):
                found[_OWN.format(layer, name, "bias")] = torch.zeros(len(weight))
    return found


def _between_tables(change: Change, old: DisentangledConfig, new: DisentangledConfig) -> Start:
    table = change.tensors[_TABLE.format("disentangled")]
    far = max(old.buckets.largest(), new.buckets.largest())
    distance = torch.arange(-far, far + 1)
    before, after = (
        (part.buckets.signed(distance) + part.buckets.span()).clamp(0, 2 * part.buckets.span() - 1)
        for part in (old, new)
    )
    counts = torch.bincount(after, minlength=2 * new.buckets.span())
    rows = table.new_zeros(len(counts), table.shape[1]).index_add_(0, after, table[before])
    rows[counts > 0] /= counts[counts > 0, None]
    nearest = table[before[0]]  # a row that no distance has: the first
    rows[counts == 0] = nearest
    how = (
        f"each of {len(rows)} rows is the mean of the old rows of its distances, up to {far} either way; "
        f"distances past the old table's {old.buckets.largest()} take its last rows"
    )
    return Start({_TABLE.format("disentangled"): rows}, how)


def _between_rotations(change: Change, old: Any, new: Any) -> Start:
    before, after = old.model_dump(mode="json"), new.model_dump(mode="json")
    given = {key: value for key, value in after.items() if value != before[key]}
    chosen = ", ".join(f"{key} {value}" for key, value in given.items())
    return Start({}, f"rotations have no weights; queries and keys now turn with {chosen}")


STARTS: dict[tuple[str, str], StartFunction] = {
    ("learned", "t5"): _learned_to_t5,
    ("learned", "disentangled"): _learned_to_disentangled,
    ("disentangled", "disentangled"): _between_tables,
    ("rope", "rope"): _between_rotations,
}


def _distances(length: int) -> Tensor:
    places = torch.arange(length)
    return places[:, None] - places[None, :]


def _spread(shares: Tensor) -> str:
    return (
        f"{float(shares.mean()):.3f} (from {float(shares.min()):.3f} to {float(shares.max()):.3f})"
    )
