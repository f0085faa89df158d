"""xformers' memory-efficient attention, for mechanisms that add no bias to the logits.

The package is optional (`pip install posattn[xformers]`). What of it works depends on its version, on
PyTorch's and on the device, so its operators are asked about every call, and their own reasons are
passed on. Padding and packed documents become one row of texts of their own lengths, so nothing is
computed between texts. `auto` takes it only where SDPA refuses.
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple, final

import torch
from jaxtyping import Int
from torch import Tensor
from typing_extensions import override

from posattn.backends.base import AttentionBackend, AttentionCall, backends
from posattn.bias import Padding, SameDocument, VisibilityRule
from posattn.shapes import QueryHeads


class Blocks(NamedTuple):
    """Which queries and keys, counted row by row, attend in one row of texts, and the texts' lengths."""

    queries: Int[Tensor, " queries"]
    keys: Int[Tensor, " keys"]
    query_lengths: list[int]
    key_lengths: list[int]


@final
@backends.register("xformers")
class XformersBackend(AttentionBackend):
    """Block-diagonal attention over texts of any lengths, where an operator of xformers supports it."""

    name: ClassVar[str] = "xformers"

    @override
    def refusals(self, call: AttentionCall) -> list[str]:
        reasons = []
        if call.bias is not None:
            reasons.append(
                "it computes mechanisms without a bias on the logits only (sdpa adds one)"
            )
        if call.relative_values is not None:
            reasons.append(
                "it never forms the probabilities that relative values need (eager does)"
            )
        if others := _other_rules(call.visibility.rules):
            reasons.append(
                f"it knows padding and documents, but not {', '.join(others)} (sdpa does)"
            )
        if find_spec("xformers") is None:
            reasons.append(
                "the package xformers is not installed (pip install 'posattn[xformers]')"
            )
        return reasons or _reasons_of_operators(call)

    @override
    def rank(self, call: AttentionCall) -> int:
        return 30

    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        fmha = import_module("xformers.ops.fmha")
        query, key, value = _by_token(call)
        batch, _, num_queries = call.query.shape[:3]
        blocks = find_blocks(call)
        attended = query.new_zeros(*query.shape[:2], value.shape[2])
        if blocks.query_lengths:
            found = fmha.memory_efficient_attention(
                query[None, blocks.queries],
                key[None, blocks.keys],
                value[None, blocks.keys],
                attn_bias=_mask(fmha, blocks),
                p=call.dropout,
                scale=call.scale,
            )
            attended = attended.index_copy(0, blocks.queries, found[0])
        return attended.unflatten(0, (batch, num_queries)).transpose(1, 2)


def find_blocks(call: AttentionCall) -> Blocks:
    """Return the texts of a call: its rows, or the documents within them, with their visible keys."""
    batch, _, num_queries = call.query.shape[:3]
    num_keys, device = call.key.shape[2], call.query.device
    visible = torch.ones(batch, num_keys, dtype=torch.bool, device=device)
    query_text = torch.arange(batch, device=device)[:, None].expand(-1, num_queries)
    key_text = query_text[:, :1].expand(-1, num_keys)
    for rule in call.visibility.rules:
        if isinstance(rule, Padding):
            visible = visible & rule.keys
        elif isinstance(rule, SameDocument):
            query_text, key_text = _numbered(query_text, rule.queries, key_text, rule.keys)
    count = 1 + int(torch.maximum(query_text.max(), key_text.max()))
    key_text = key_text.masked_fill(~visible, count).flatten()
    query_text = query_text.flatten()
    of_queries = torch.bincount(query_text, minlength=count)
    of_keys = torch.bincount(key_text, minlength=count + 1)[:count]
    meet = (of_queries > 0) & (of_keys > 0)
    order, key_order = query_text.argsort(stable=True), key_text.argsort(stable=True)
    meet_key = torch.cat([meet, meet.new_zeros(1)])
    return Blocks(
        order[meet[query_text[order]]],
        key_order[meet_key[key_text[key_order]]],
        of_queries[meet].tolist(),
        of_keys[meet].tolist(),
    )


def _numbered(
    query_row: Tensor, query_document: Tensor, key_row: Tensor, key_document: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the number of each query's and each key's text, one for each row and document."""
    queries = torch.stack([query_row, query_document]).flatten(1)
    keys = torch.stack([key_row, key_document]).flatten(1)
    number = torch.unique(torch.cat([queries, keys], 1), dim=1, return_inverse=True)[1]
    first, second = number.split([queries.shape[1], keys.shape[1]])
    return first.view(query_row.shape), second.view(key_row.shape)


def _other_rules(rules: Sequence[VisibilityRule]) -> list[str]:
    known = (Padding, SameDocument)
    return [type(rule).__name__ for rule in rules if not isinstance(rule, known)]


def _by_token(call: AttentionCall) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values as [tokens, heads, channels]."""
    query, key, value = (
        heads.transpose(1, 2).flatten(0, 1) for heads in (call.query, call.key, call.value)
    )
    return query, key, value


def _mask(fmha: Any, blocks: Blocks) -> Any:
    mask = fmha.attn_bias.BlockDiagonalMask
    return mask.from_seqlens(blocks.query_lengths, blocks.key_lengths)


def _reasons_of_operators(call: AttentionCall) -> list[str]:
    """Return why no operator of the installed package runs the call; empty if one does."""
    try:
        fmha = import_module("xformers.ops.fmha")
        query, key, value = _by_token(call)
        one_text = Blocks(query, key, [query.shape[0]], [key.shape[0]])
        inputs = fmha.Inputs(
            query[None], key[None], value[None], _mask(fmha, one_text), call.dropout, call.scale
        )
        asked = [fmha.ALL_FW_OPS]
        if torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, value)):
            asked.append(fmha.ALL_BW_OPS)
        refused = [{op.NAME: op.not_supported_reasons(inputs) for op in ops} for ops in asked]
    except Exception as error:  # whatever a broken installation raises is why it cannot be used
        return [f"the installed xformers cannot be used: {type(error).__name__}: {error}"]
    for operators in refused:
        if operators and all(operators.values()):
            return [f"no operator of the installed xformers runs this ({_in_common(operators)})"]
    return []


def _in_common(refused: dict[str, list[str]]) -> str:
    """Return the reasons that all operators give, or if there are none, each operator's."""
    first, *others = refused.values()
    if common := [reason for reason in first if all(reason in other for other in others)]:
        return ", ".join(common)
    return "; ".join(f"{name}: {', '.join(reasons)}" for name, reasons in refused.items())
