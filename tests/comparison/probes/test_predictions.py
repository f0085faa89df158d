"""Predictions follow from what parts promise, whatever they are called."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from posattn.comparison.probes import Facts, facts_of, make_probe, probes
from posattn.comparison.probes.guessing import most_frequent
from posattn.comparison.probes.retrieval import mirrored_share
from posattn.recipe.schema import load_recipe

NOTHING = Facts(
    order_blind=False,
    mirrored=False,
    shift_blind=False,
    reads_query=False,
    reads_key=False,
    adds_to_input=False,
    injects=False,
    adds_values=False,
    pairwise=True,
    moves=False,
    fresh_input_rows=False,
    fresh_rows=False,
    local=False,
    layers=2,
    heads=4,
)
SMALL = {"encoder.hidden_size": 64, "encoder.num_layers": 2}


def told(name, **facts):
    probe = make_probe(probes.get(name).Config(name=name))
    found = probe.expect(replace(NOTHING, **facts))
    return {
        p.score.removeprefix("validation_"): ("low" if p.at_least is None else "high", p.at_most)
        for p in found
    }


@pytest.mark.parametrize("name", probes.names())
def test_nothing_is_said_where_nothing_is_known(name):
    expected = {"accuracy"} if name == "offset_by_symbol" else set()
    assert set(told(name)) == expected


@pytest.mark.parametrize("name", probes.names())
def test_without_position_every_probe_stays_near_its_chance(name):
    probe = make_probe(probes.get(name).Config(name=name))
    (kind, most) = told(name, order_blind=True, shift_blind=True)["accuracy"]
    assert kind == "low"
    if name != "pointed":
        assert probe.chance() < most <= probe.chance() + 0.051
    assert probe.chance() < probe.solved()


def test_symmetric_ones_cannot_tell_the_order():
    assert told("order", mirrored=True, shift_blind=True) == {"accuracy": ("low", 0.55)}
    assert told("order", shift_blind=True)["accuracy"][0] == "high"
    assert told("order", shift_blind=True, local=True) == {}


def test_only_absolute_position_tells_twins_apart_when_edges_are_hidden():
    assert told("twin_masks_hidden", shift_blind=True)["accuracy"] == ("low", 0.3)
    assert told("twin_masks_hidden", adds_to_input=True)["accuracy"][0] == "high"
    assert told("twin_masks", shift_blind=True) == {}
    assert told("twin_masks", shift_blind=True, mirrored=True)["accuracy"] == ("low", 0.55)


@pytest.mark.parametrize(("query", "key"), list(product([False, True], repeat=2)))
def test_each_term_is_needed_by_its_own_probe(query, key):
    facts = {"shift_blind": True, "reads_query": query, "reads_key": key}
    by_symbol = told("offset_by_symbol", **facts)["accuracy"][0]
    assert by_symbol == ("high" if query else "low")
    pointed = told("pointed", **facts, layers=1)["accuracy"][0]
    assert pointed == ("high" if key else "low")
    two_layers = told("pointed", **facts, layers=2)
    assert set(two_layers) == ({"accuracy"} if key else set())
    fetched = told("offset", **facts)
    assert set(fetched) == ({"accuracy", "accuracy_at_4x"} if query or key else set())


def test_untrained_rows_take_back_what_is_said_of_longer_rows():
    facts = {"shift_blind": True, "reads_query": True}
    assert set(told("offset", **facts, fresh_rows=True)) == {"accuracy"}
    assert told("offset", adds_to_input=True, fresh_input_rows=True) == {
        "accuracy_at_4x": ("low", 0.95)
    }
    assert told("copy", fresh_input_rows=True) == {"accuracy_at_2x": ("low", 0.9)}


def test_absolute_position_at_the_end_needs_a_term_that_reads_the_query():
    injected = {"adds_to_input": True, "injects": True}
    assert told("reverse", **injected) == {}
    assert told("reverse", **injected, reads_query=True)["accuracy"][0] == "high"
    assert told("reverse", adds_to_input=True)["accuracy"][0] == "high"


FACTS = {
    "none": {"order_blind", "shift_blind"},
    "learned": {"adds_to_input", "fresh_input_rows", "fresh_rows"},
    "alibi": {"shift_blind"},
    "rope": {"shift_blind", "reads_query", "reads_key"},
    "t5": {"shift_blind", "fresh_rows"},
    "disentangled_emd": {"adds_to_input", "injects", "reads_query", "reads_key", "fresh_rows"},
}


@pytest.mark.parametrize("recipe", FACTS)
def test_facts_follow_from_traits(recipe):
    facts = facts_of(load_recipe(recipe, SMALL))
    flags = ("order_blind", "mirrored", "shift_blind", "reads_query", "reads_key", "adds_to_input")
    flags += ("injects", "fresh_input_rows", "fresh_rows", "local", "moves", "adds_values")
    assert {flag for flag in flags if getattr(facts, flag)} == FACTS[recipe]
    assert facts.pairwise
    assert (facts.layers, facts.heads) == (3 if "emd" in recipe else 2, 4)


def test_symmetry_and_blindness_are_lost_to_other_parts():
    symmetric = {**SMALL, "encoder.mechanism": {"name": "alibi", "variant": "symmetric"}}
    assert facts_of(load_recipe("none", symmetric)).mirrored is False  # [CLS] is at one end only
    symmetric["data.cls"] = False
    assert facts_of(load_recipe("none", symmetric)).mirrored
    assert not facts_of(load_recipe("none", {**symmetric, "encoder.convolution": {}})).mirrored
    windowed = facts_of(load_recipe("none", {**SMALL, "encoder.window": {"size": 8}}))
    assert not windowed.order_blind
    assert windowed.local
    assert facts_of(load_recipe("grid")) is None


@pytest.mark.parametrize(("count", "symbols"), [(1, 4), (5, 2), (32, 16)])
def test_the_most_frequent_symbol_is_as_frequent_as_in_draws(count, symbols):
    draws = np.random.default_rng(0).integers(0, symbols, (20000, count))
    counts = np.stack([(draws == symbol).sum(1) for symbol in range(symbols)])
    assert most_frequent(count, symbols) == pytest.approx(counts.max(0).mean(), abs=0.03)


def test_the_best_mirrored_guess_is_counted_over_places():
    length, distances, symbols = 20, [2, 5], 8
    right = asked = 0.0
    for k in distances:
        for i in range(k, length):
            asked += 1
            right += 0.5 + 0.5 / symbols if i + k < length else 1.0
    assert mirrored_share(length, distances, symbols) == pytest.approx(right / asked)
