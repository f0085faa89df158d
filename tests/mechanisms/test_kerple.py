"""KERPLE's kernels against their formula and the authors' numbers; parameters that stay legal."""

import math
from typing import Any

import pytest
import torch

from posattn.mechanisms import EncoderDims, Geometry, Kerple, KerpleConfig
from posattn.testing.mechanism_case import MechanismCase

from .golden import golden
from .oracle import KEY_POSITIONS, QUERY_POSITIONS, assert_terms, far_call

HEADS = 3


def case_of(**options: Any) -> MechanismCase:
    return MechanismCase("kerple", options, hidden_size=4 * HEADS, num_heads=HEADS)


def kerple(p: list[float], a: list[float], kernel: str) -> Kerple:
    """Return a mechanism in float64 with these p and a."""
    mechanism = Kerple(KerpleConfig(kernel=kernel), EncoderDims(4 * len(p), len(p))).double()
    exact_p, exact_a = (torch.tensor(values, dtype=torch.float64) for values in (p, a))
    with torch.no_grad():
        mechanism.log_a.copy_(exact_a.log())
        if kernel == "log":
            mechanism.log_p.copy_(exact_p.log())
        else:
            mechanism.logit_p.copy_((exact_p / 2).logit())
    return mechanism


def bias_of(mechanism: Kerple, length: int) -> torch.Tensor:
    """Return the bias of a whole sequence, [heads, query, key]."""
    positions = torch.arange(length)[None]
    return mechanism.prepare(Geometry(positions, positions)).materialize()[0]


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("kernel", ["log", "power"])
def test_the_bias_is_the_formula_written_as_loops(kernel: str, bidirectional: bool) -> None:
    attention, call = far_call(case_of(kernel=kernel, bidirectional=bidirectional))
    mechanism = attention.stack.mechanisms["kerple"]
    assert isinstance(mechanism, Kerple)
    a = [math.exp(x) for x in mechanism.log_a.tolist()]
    if kernel == "log":
        p = [math.exp(x) for x in mechanism.log_p.tolist()]
    else:
        p = [2 / (1 + math.exp(-x)) for x in mechanism.logit_p.tolist()]
    one = []
    for h in range(HEADS):
        rows = []
        for query in QUERY_POSITIONS:
            gaps = [abs(query - key) for key in KEY_POSITIONS]
            if kernel == "log":
                rows.append([-p[h] * math.log(1 + a[h] * gap) for gap in gaps])
            else:
                rows.append([-a[h] * gap ** p[h] for gap in gaps])
        one.append(rows)
    assert_terms(call, {"distance": [one, one]})


@pytest.mark.parametrize("kernel", ["log", "power"])
def test_the_bias_is_that_of_the_authors_code(kernel: str) -> None:
    known = golden("kerple")[kernel]
    mechanism = kerple(known["p"], known["a"], kernel)
    expected = torch.tensor(known["last_row"], dtype=torch.float64)
    found = bias_of(mechanism, expected.shape[1])
    torch.testing.assert_close(found[:, -1], expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found[:, 0].flip(-1), expected, rtol=1e-12, atol=1e-12)


def test_the_log_kernel_with_ones_is_the_known_table() -> None:
    found = bias_of(kerple([1.0], [1.0], "log"), 4)[0, 0].tolist()
    assert found == pytest.approx([0, -0.6931, -1.0986, -1.3863], abs=5e-5)


@pytest.mark.parametrize("kernel", ["log", "power"])
@pytest.mark.parametrize("raw", [-30.0, -3.0, 3.0])
def test_any_parameter_gives_a_legal_bias_and_a_gradient(kernel: str, raw: float) -> None:
    """After an optimizer step from anywhere, farther keys never get a better bias."""
    mechanism = kerple([1.0], [1.0], kernel)
    with torch.no_grad():
        for parameter in mechanism.parameters():
            parameter.fill_(raw)
    before = [parameter.clone() for parameter in mechanism.parameters()]
    optimizer = torch.optim.AdamW(mechanism.parameters(), lr=0.01)
    bias_of(mechanism, 6).sum().backward()
    for parameter in mechanism.parameters():
        assert parameter.grad is not None
        assert bool(parameter.grad.isfinite().all())
        assert bool((parameter.grad != 0).all())
    optimizer.step()
    for parameter, old in zip(mechanism.parameters(), before, strict=True):
        assert bool((parameter != old).all())
    row = bias_of(mechanism, 6)[0, 0]
    assert bool(row.isfinite().all())
    assert bool((row <= 0).all())
    assert bool((row.diff() <= 0).all())
    assert row[0].item() == 0.0


@pytest.mark.parametrize("kernel", ["log", "power"])
@pytest.mark.parametrize("num_heads", [1, 4, 12])
def test_first_values_fill_the_published_ranges(kernel: str, num_heads: int) -> None:
    p, a = Kerple(KerpleConfig(kernel=kernel), EncoderDims(4 * num_heads, num_heads)).values()
    assert bool(((p > 0) & (p < 2)).all())
    assert bool(((a >= 0.0099) & (a < 1)).all())
    assert len(set(p.tolist())) == len(set(a.tolist())) == num_heads
    assert p.mean().item() == pytest.approx(1.0)
    if num_heads == 12:
        assert a.mean().item() == pytest.approx(0.5, abs=0.1)


def test_all_layers_share_two_numbers_per_head_and_one_bias() -> None:
    model = case_of().model(num_layers=3)
    shapes = {n: p.shape for n, p in model.named_parameters() if "position" in n}
    home = "encoder.position.mechanisms.kerple"
    assert shapes == {f"{home}.log_a": (HEADS,), f"{home}.log_p": (HEADS,)}
    seen = []
    model(case_of().ids(1, 5), observer=lambda call, _: seen.append(call.bias.materialize()))
    assert all(bias is seen[0] for bias in seen)


def test_the_causal_form_hides_later_keys_and_the_default_none() -> None:
    assert far_call(case_of())[1].visibility.pairs is None
    pairs = far_call(case_of(bidirectional=False))[1].visibility.pairs
    assert pairs is not None
    expected = [[key <= query for key in KEY_POSITIONS] for query in QUERY_POSITIONS]
    assert pairs[0, 0].tolist() == expected


def test_the_card_says_what_it_cannot_tell() -> None:
    dims = EncoderDims(16, 4)
    assert "cannot tell left from right" in KerpleConfig().card(dims)["positions"]
    assert "causal" in KerpleConfig(bidirectional=False).card(dims)["positions"]
    assert "** p" in KerpleConfig(kernel="power").card(dims)["positions"]
