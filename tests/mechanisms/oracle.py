"""Attention layers as lists of Python floats, for formulas written as loops."""

import math
from typing import TypeAlias

import torch
from torch import nn

from posattn.backends import AttentionCall
from posattn.shapes import Logits
from posattn.testing.mechanism_case import MechanismCase, PositionedAttention

Rows: TypeAlias = list[list[float]]

QUERY_POSITIONS = [3, 0, 11, 700]
KEY_POSITIONS = [0, 2, 3, 9, 12, 1000]
"""Few enough for loops; distances 0, near, at the edges of small tables, and far beyond them."""


def far_call(case: MechanismCase) -> tuple[PositionedAttention, AttentionCall]:
    """Return an attention layer, and its call for two sequences at far-apart positions."""
    attention = case.attention()
    prepared = attention.prepared(torch.tensor([QUERY_POSITIONS]), torch.tensor([KEY_POSITIONS]))
    query = case.hidden(2, len(QUERY_POSITIONS))
    return attention, attention.call(query, case.hidden(2, len(KEY_POSITIONS)), prepared)


def dot(left: list[float], right: list[float]) -> float:
    """Return the sum of products."""
    return sum(a * b for a, b in zip(left, right, strict=True))


def linear(rows: Rows, projection: nn.Module) -> Rows:
    """Return every row projected, number by number."""
    assert isinstance(projection, nn.Linear)
    weight = projection.weight.tolist()
    bias = [0.0] * len(weight) if projection.bias is None else projection.bias.tolist()
    return [[dot(row, w) + b for w, b in zip(weight, bias, strict=True)] for row in rows]


def layer_norm(rows: Rows, norm: nn.Module) -> Rows:
    """Return every row normalised, number by number."""
    assert isinstance(norm, nn.LayerNorm)
    gains, shifts = norm.weight.tolist(), norm.bias.tolist()
    found = []
    for row in rows:
        mean = sum(row) / len(row)
        spread = math.sqrt(sum((x - mean) ** 2 for x in row) / len(row) + norm.eps)
        normal = [(x - mean) / spread for x in row]
        found.append([x * g + s for x, g, s in zip(normal, gains, shifts, strict=True)])
    return found


def head_of(row: list[float], head: int, num_heads: int) -> list[float]:
    """Return one head's share of a row of all heads."""
    width = len(row) // num_heads
    return row[head * width : (head + 1) * width]


def assert_terms(call: AttentionCall, expected: dict[str, list[list[Rows]]]) -> None:
    """Assert that the named terms of the bias are the expected ones, and no others."""
    assert call.bias is not None
    terms = call.bias.terms()
    assert list(terms) == list(expected)
    batch, heads, num_queries = call.query.shape[:3]
    shape = (batch, heads, num_queries, call.key.shape[2])
    total: Logits = torch.zeros(shape, dtype=torch.float64)
    for name, loops in expected.items():
        wanted = torch.tensor(loops, dtype=torch.float64)
        torch.testing.assert_close(terms[name].expand(shape), wanted, rtol=1e-10, atol=1e-10)
        total = total + wanted
    torch.testing.assert_close(call.bias.materialize().expand(shape), total, rtol=1e-10, atol=1e-10)
