"""Who is where and sees whom, as kernels read it, and the lists of tiles that follow from it."""

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import triton
from torch import Tensor

from posattn.backends.triton_kernels.chunks import Piece
from posattn.backends.triton_kernels.lists import block_bounds, tile_lists
from posattn.backends.triton_kernels.sizes import TileSize
from posattn.backends.triton_kernels.slabs import Columns

NUM_BOUNDS, NUM_KINDS = 10, 4


class Rules(NamedTuple):
    """The visibility rules of a call that are no tensors; -1 where there is no such rule."""

    window: int
    is_causal: bool
    num_left: int

    @property
    def groups(self) -> int:
        """Return how many groups of heads see different keys."""
        return 2 if self.num_left >= 0 else 1


class Places(NamedTuple):
    """Integers of queries and of keys, [batch or 1, tokens]; empty where there is no such thing."""

    query_at: Tensor  # positions that the bias is about
    key_at: Tensor
    query_seen: Tensor  # positions that visibility is about
    key_seen: Tensor
    query_documents: Tensor
    key_documents: Tensor
    key_visible: Tensor

    def flags(self, rules: Rules) -> tuple[bool, bool, bool, bool, bool]:
        """Return which rules there are: visible keys, documents, window, causal, directions."""
        return (
            self.key_visible.numel() > 0,
            self.query_documents.numel() > 0,
            rules.window >= 0,
            rules.is_causal,
            rules.num_left >= 0,
        )

    def piece(self, piece: Piece, absent: Tensor) -> dict[str, Any]:
        """Return what belongs to a piece, with the batch strides of queries and keys."""
        batch = piece.batch if self.query_at.shape[0] > 1 else slice(None)
        of_queries = (self.query_at, self.query_seen, self.query_documents)
        at, seen, documents = (
            one[batch, piece.tokens] if one.numel() else absent for one in of_queries
        )
        of_keys = (self.key_at, self.key_seen, self.key_documents, self.key_visible)
        key_at, key_seen, key_documents, visible = (
            one[batch] if one.numel() else absent for one in of_keys
        )
        many = at.shape[0] > 1
        return {
            "places": (at, key_at, seen, key_seen, documents, key_documents, visible),
            "query_stride": at.stride(0) if many else 0,
            "key_stride": key_at.stride(0) if many else 0,
        }


@final
@dataclass(frozen=True)
class Tiles:
    """The tiles of each block, [groups, batch or 1, blocks, tiles], and where each kind's end."""

    lists: Tensor
    counts: Tensor
    block: int  # tokens of a block

    def piece(self, piece: Piece) -> dict[str, Any]:
        """Return the lists of a piece with their strides, counted in blocks."""
        _, batches, blocks, length = self.lists.shape
        batch = piece.batch.start if batches > 1 else 0
        start = piece.tokens.start // self.block
        return {
            "lists": (self.lists[:, batch:, start:], self.counts[:, batch:, start:]),
            "group_stride": batches * blocks,
            "sequence_stride": blocks if batches > 1 else 0,
            "list_length": length,
        }


def list_tiles(
    places: Places, rules: Rules, columns: Columns, size: TileSize, by_key: bool, has_bias: bool
) -> Tiles:
    """Return the tiles that every block of queries, or of keys, has to visit."""
    queries, query_blocks = _bounds(places.query_at, places.query_seen, places, size.queries, False)
    keys, key_blocks = _bounds(places.key_at, places.key_seen, places, size.keys, True)
    own, other = (key_blocks, query_blocks) if by_key else (query_blocks, key_blocks)
    batch = places.query_at.shape[0]
    lists = queries.new_empty(rules.groups, batch, own, other)
    counts = queries.new_empty(rules.groups, batch, own, NUM_KINDS)
    tile_lists[(own, rules.groups * batch)](
        queries,
        keys,
        lists,
        counts,
        own,
        other,
        batch,
        columns.low,
        columns.high,
        columns.first,
        rules.window,
        HAS_BIAS=has_bias,
        RULES=places.flags(rules),
        BY_KEY=by_key,
        OTHERS=triton.next_power_of_2(other),
    )
    return Tiles(lists, counts, size.keys if by_key else size.queries)


def _bounds(
    at: Tensor, seen: Tensor, places: Places, block: int, of_keys: bool
) -> tuple[Tensor, int]:
    batch, length = at.shape
    blocks = triton.cdiv(length, block)
    bounds = at.new_empty(batch, blocks, NUM_BOUNDS)
    documents = places.key_documents if of_keys else places.query_documents
    block_bounds[(blocks, batch)](
        at,
        seen,
        documents if documents.numel() else at,
        places.key_visible if of_keys and places.key_visible.numel() else at,
        bounds,
        length,
        HAS_DOCUMENTS=documents.numel() > 0,
        HAS_VISIBLE=of_keys and places.key_visible.numel() > 0,
        BLOCK=block,
    )
    return bounds, blocks
