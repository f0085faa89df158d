"""The fused operator is one node of a compiled graph, at lengths that it was not traced with."""

import pytest
import torch
from torch.testing import assert_close

from posattn.backends.fused.library import NativeLibrary
from posattn.positions import clipped

pytestmark = pytest.mark.compile


def attend(query, key, value, table, seen, places, buckets):
    lookup = (None, query, table, buckets, None, key, table, buckets)
    hidden = (seen, None, None, None, None, None, None)
    given = (query, key, value, 0.3, places, places, *lookup, None, None, *hidden, 0.0, None)
    return torch.ops.posattn.fused_attention(*given)[0]


def test_it_has_no_graph_break_and_its_gradient_is_compiled_too():
    assert NativeLibrary().problem() is None
    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager", dynamic=True)
    for length in (9, 14):
        states = [torch.randn(2, 3, length, 8, requires_grad=True) for _ in range(3)]
        learned = [*states, torch.randn(3, 7, 8, requires_grad=True)]
        seen = torch.ones(2, length, dtype=torch.bool)
        seen[1, -2:] = False
        buckets = clipped(torch.arange(1 - length, length), 3) + 3
        given = (*learned, seen, torch.arange(length)[None], buckets)
        expected, found = attend(*given), compiled(*given)
        assert_close(found, expected)
        wanted = torch.autograd.grad(expected.square().sum(), learned)
        for gradient, exact in zip(
            torch.autograd.grad(found.square().sum(), learned), wanted, strict=True
        ):
            assert_close(gradient, exact)
