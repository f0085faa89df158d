"""Shares and profiles against loops."""

import pytest
import torch

from posattn.decomposition import inspect, profiles, shares
from posattn.decomposition.terms import Terms
from tests.encoder.small_models import HEADS, MECHANISMS, ids, model

LENGTH = 6


def random_terms(*, causal: bool) -> Terms:
    draw = torch.Generator().manual_seed(3)
    shape = (HEADS, LENGTH, LENGTH)
    terms = {name: torch.randn(shape, generator=draw).double() for name in ("c2c", "c2p")}
    visible = torch.ones(shape, dtype=torch.bool)
    if causal:
        visible = visible.tril()
    logits = terms["c2c"] + terms["c2p"]
    return Terms("layer 1", terms, logits, logits.softmax(-1), visible, False)


def centred(terms: Terms, name: str) -> dict[tuple[int, int, int], float]:
    values = terms.logits if name == "logits" else terms.terms[name]
    found = {}
    for head in range(HEADS):
        for i in range(LENGTH):
            keys = [j for j in range(LENGTH) if terms.visible[head, i, j]]
            mean = sum(float(values[head, i, j]) for j in keys) / len(keys)
            found |= {(head, i, j): float(values[head, i, j]) - mean for j in keys}
    return found


@pytest.mark.parametrize("causal", [False, True])
def test_a_share_is_covariance_over_variance_and_shares_sum_to_1(causal: bool) -> None:
    terms = random_terms(causal=causal)
    found, logits = shares(terms), centred(terms, "logits")
    for head in range(HEADS):
        pairs = [pair for pair in logits if pair[0] == head]
        whole = sum(logits[pair] ** 2 for pair in pairs)
        for name, share in found.items():
            term = centred(terms, name)
            together = sum(term[pair] * logits[pair] for pair in pairs)
            size = (sum(term[pair] ** 2 for pair in pairs) / len(pairs)) ** 0.5
            assert share.share[head] == pytest.approx(together / whole)
            assert share.size[head] == pytest.approx(size)
        assert sum(share.share[head] or 0.0 for share in found.values()) == pytest.approx(1.0)


def test_what_is_the_same_for_all_keys_of_a_query_has_no_share() -> None:
    terms = random_terms(causal=False)
    constant = torch.randn(HEADS, LENGTH, 1).double().expand(HEADS, LENGTH, LENGTH)
    more = {**terms.terms, "constant": constant}
    found = shares(
        Terms("layer 1", more, terms.logits + constant, terms.probs, terms.visible, False)
    )
    assert found["constant"].share == pytest.approx([0.0] * HEADS, abs=1e-12)
    assert found["c2c"].share == pytest.approx(shares(terms)["c2c"].share)


def test_logits_that_are_all_alike_have_no_shares() -> None:
    flat = torch.ones(HEADS, LENGTH, LENGTH)
    found = shares(Terms("layer 1", {"a": flat}, flat, flat, flat.bool(), False))
    assert found["a"].share == [None] * HEADS
    assert found["a"].size == [0.0] * HEADS


def test_profiles_are_means_by_distance_of_query_minus_key() -> None:
    terms = random_terms(causal=True)
    for name, profile in profiles(terms, 3).items():
        values = centred(terms, name)
        assert profile.distances == [-3, -2, -1, 0, 1, 2, 3]
        for head in range(HEADS):
            for distance, mean in zip(profile.distances, profile.means[head], strict=True):
                found = [v for (h, i, j), v in values.items() if (h, i - j) == (head, distance)]
                expected = sum(found) / len(found) if found else None
                assert mean == (None if expected is None else pytest.approx(expected))


def test_an_inspection_is_plain_data_with_heat_maps_of_the_heads_asked_for() -> None:
    found = inspect(model(MECHANISMS["xpos"]), ids(1, 30)[0], [f"t{n}" for n in range(30)])
    plain = found.plain([1])
    layer = plain["layers"][0]
    assert list(layer["terms"]) == ["content", "rotation"]
    heat = layer["heat"]["head 2"]["logits"]
    assert (len(heat), len(heat[0])) == (24, 24)
    assert heat[0][1] is None  # causal: a later key
    assert heat[3][1] is not None
    assert "heat" not in found.plain()["layers"][0]
