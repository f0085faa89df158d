"""Visibility stated by token hides what the rules hide; what cannot be stated so stays a tensor of pairs."""

import torch

from posattn.bias import Causal, Padding, SameDocument, TokenRule, Visibility, Window
from posattn.bias.visibility import FAR
from posattn.positions import Distances, GivenPairs

PLACES = torch.arange(6)[None]
DISTANCE = Distances(PLACES, PLACES)
KEYS = torch.tensor([[True, True, True, True, False, True]])
TEXTS = torch.tensor([[0, 0, 0, 1, 1, 1]])


def test_rules_of_every_kind_are_joined_without_pairs() -> None:
    rules = (Padding(KEYS), SameDocument(TEXTS, TEXTS), Window(DISTANCE, 2), Causal(DISTANCE))
    stated = Visibility(rules).by_token
    assert stated.pairs is None
    assert stated.keys is KEYS
    assert stated.documents == (TEXTS, TEXTS)
    assert stated.limits is not None
    assert stated.limits.tolist() == [[0, 2]]


def test_two_paddings_leave_what_both_show() -> None:
    stated = Visibility((Padding(KEYS), Padding(~KEYS))).by_token
    assert stated.keys is not None
    assert not bool(stated.keys.any())


def test_rules_of_other_positions_and_given_pairs_stay_pairs() -> None:
    far = Distances(PLACES + 9, PLACES)
    stated = Visibility((Causal(DISTANCE), Window(far, 3))).by_token
    assert stated.limits is not None
    assert stated.limits.tolist() == [[0, FAR]]
    assert stated.pairs is not None
    assert torch.equal(stated.pairs, Window(far, 3).materialize())
    given = Causal(GivenPairs(DISTANCE.pairs))
    assert given.by_token() is None
    assert Visibility(()).by_token == TokenRule()
