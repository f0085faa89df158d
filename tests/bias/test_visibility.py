"""Which keys a query may see, rule by rule."""

import pytest
import torch

from posattn.bias import (
    Causal,
    HeadDirections,
    Padding,
    SameDocument,
    Visibility,
    VisibilityRule,
    Window,
)
from posattn.positions import Distances

POSITIONS = torch.arange(4)[None]
DISTANCE = Distances(POSITIONS, POSITIONS)


def seen(rule: VisibilityRule) -> list[str]:
    """Return the rows of the first sequence and head as text, x for visible."""
    rows = rule.materialize()[0, 0].tolist()
    return ["".join("x" if visible else "." for visible in row) for row in rows]


def test_padding_hides_keys_from_all_queries() -> None:
    assert seen(Padding(torch.tensor([[True, True, False, True]]))) == ["xx.x"]


def test_tokens_see_their_own_document_only() -> None:
    documents = torch.tensor([[0, 0, 1, 1]])
    assert seen(SameDocument(documents, documents)) == ["xx..", "xx..", "..xx", "..xx"]
    assert seen(SameDocument(documents[:, 2:3], documents)) == ["..xx"]


def test_a_window_reaches_equally_far_to_both_sides() -> None:
    assert seen(Window(DISTANCE, 1)) == ["xx..", "xxx.", ".xxx", "..xx"]
    assert seen(Window(DISTANCE, 0)) == ["x...", ".x..", "..x.", "...x"]


def test_causal_hides_later_positions_wherever_they_stand() -> None:
    assert seen(Causal(DISTANCE)) == ["x...", "xx..", "xxx.", "xxxx"]
    backwards = Distances(POSITIONS, POSITIONS.flip(1))
    assert seen(Causal(backwards)) == ["...x", "..xx", ".xxx", "xxxx"]


def test_heads_look_left_or_right_and_all_see_their_own_place() -> None:
    pairs = HeadDirections(DISTANCE, num_left=1, num_heads=3).materialize()
    assert torch.equal(pairs[0, 0], torch.ones(4, 4).tril().bool())
    for head in (1, 2):
        assert torch.equal(pairs[0, head], torch.ones(4, 4).triu().bool())


def test_a_key_is_visible_if_every_rule_lets_it_be() -> None:
    keys = torch.tensor([[True, True, True, False], [False, True, True, True]])
    visibility = Visibility((Padding(keys),)).with_rules(Causal(DISTANCE), Window(DISTANCE, 1))
    assert visibility.pairs is not None
    for b in range(2):
        for i in range(4):
            for j in range(4):
                expected = bool(keys[b, j]) and j <= i and i - j <= 1
                assert bool(visibility.pairs[b, 0, i, j]) == expected


def test_no_rules_means_that_everything_is_visible() -> None:
    everything = Visibility(())
    assert everything.pairs is None
    assert everything.with_rules() is everything


def test_pairs_are_computed_once() -> None:
    visibility = Visibility((Causal(DISTANCE),))
    assert visibility.pairs is visibility.pairs


class EvenKeys(VisibilityRule):
    """A rule that states no pair of its own, as a plug-in may."""

    def materialize(self) -> torch.Tensor:
        return (torch.arange(4) % 2 == 0)[None, None, None]


DOCUMENTS = torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1]])
RULES = [
    Padding(torch.tensor([[True, True, False, True], [True] * 4])),
    SameDocument(DOCUMENTS, DOCUMENTS),
    Window(DISTANCE, 1),
    Causal(DISTANCE),
    HeadDirections(DISTANCE, num_left=1, num_heads=3),
    EvenKeys(),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_a_rule_pair_by_pair_is_the_whole_rule(rule: VisibilityRule) -> None:
    for visibility in (Visibility((rule,)), Visibility((rule, Causal(DISTANCE)))):
        grid = torch.meshgrid(*map(torch.arange, (2, 3, 4, 4)), indexing="ij")
        single = torch.vmap(visibility.mask_mod())(*(index.flatten() for index in grid))
        assert visibility.pairs is not None
        assert torch.equal(single.view(2, 3, 4, 4), visibility.pairs.expand(2, 3, 4, 4))
        assert visibility.differs_by_head == (visibility.pairs.shape[1] > 1)
