"""Verdicts: Holm's correction, the family-wise promise of a report, and groups."""

from itertools import combinations

import jaxtyping
import numpy as np
import pytest

from posattn.comparison.statistics import holm, holm_alphas, paired_difference
from posattn.comparison.verdicts import (
    groups_not_told_apart,
    judge,
    judge_study,
)


def draw_scores(means, seeds=3, noise=0.01, seed=0):
    random = np.random.default_rng(seed)
    shared = random.normal(0, 0.03, seeds)
    return {
        name: dict(enumerate(mean + shared + random.normal(0, noise, seeds)))
        for name, mean in means.items()
    }


def names_a_winner(judged):
    return any(
        item.judgement.verdict in ("better", "worse") for item in judged.contrasts + judged.pairs
    )


def test_holm_is_the_step_down_procedure():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_an_interval_at_the_alpha_of_its_step_excludes_zero_exactly_where_holm_rejects():
    random = np.random.default_rng(0)
    for _ in range(200):
        p_values = list(random.uniform(0, 0.08, size=5))
        rejected = [p <= 0.05 for p in holm(p_values)]
        alphas = holm_alphas(p_values)
        assert rejected == [p <= alpha for p, alpha in zip(p_values, alphas, strict=True)]


def test_corrected_interval_and_verdict_agree():
    scores = draw_scores({"a": 2.0, "b": 1.9, "c": 1.0, "d": 2.03, "e": 2.0})
    for item in judge_study(scores, "a", "lower").contrasts:
        judged = item.judgement
        assert judged.corrected_low is not None
        assert judged.corrected_high is not None
        crosses = judged.corrected_low <= 0 <= judged.corrected_high
        assert crosses == (judged.verdict == "indistinguishable")


@pytest.mark.parametrize(("better", "verdict"), [("lower", "better"), ("higher", "worse")])
def test_the_direction_of_the_score_decides_what_is_better(better, verdict):
    scores = draw_scores({"base": 2.0, "low": 1.0})
    (item,) = judge_study(scores, "base", better).contrasts
    assert item.judgement.verdict == verdict


@pytest.fixture
def unchecked_shapes():
    """Switch the type hook off: 28,000 tests of pairs would take a minute in it."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.mark.usefixtures("unchecked_shapes")
def test_eight_equal_systems_get_a_winner_in_at_most_8_percent_of_reports():
    names = [f"arm{i}" for i in range(8)]
    named = 0
    for report in range(1000):
        scores = draw_scores(dict.fromkeys(names, 2.0), seed=report)
        named += names_a_winner(judge_study(scores, names[0], "lower"))
    assert named <= 80


def test_a_large_difference_is_found_with_three_seeds():
    scores = draw_scores({"learned": 2.4, "rope": 1.3, "sinusoidal": 2.4})
    judged = judge_study(scores, "learned", "lower")
    verdicts = {item.first: item.judgement.verdict for item in judged.contrasts}
    assert verdicts == {"rope": "better", "sinusoidal": "indistinguishable"}
    assert judged.groups == [("learned", "sinusoidal"), ("rope",)]


def test_pairs_without_the_baseline_are_judged_only_if_a_contrast_holds():
    scores = {
        "base": {0: 1.0, 1: 2.0, 2: 4.0},
        "low": {0: 0.9, 1: 2.2, 2: 3.8},
        "high": {0: 1.9, 1: 3.21, 2: 4.82},
    }
    judged = judge_study(scores, "base", "lower")
    assert {c.judgement.verdict for c in judged.contrasts} == {"indistinguishable"} or (
        names_a_winner(judged)
    )
    equal = {name: scores["base"] | {2: 4.0 + i / 100} for i, name in enumerate("abc")}
    closed = judge_study(equal, "a", "lower")
    (pair,) = closed.pairs
    assert pair.judgement.verdict == "indistinguishable"
    assert "no contrast with the baseline holds" in (pair.judgement.reason or "")


def test_contrasts_named_beforehand_alone_form_the_judged_family():
    scores = draw_scores({"base": 2.0, "a": 1.9, "b": 2.0, "c": 1.0}, noise=0.02)
    judged = judge_study(scores, "base", "lower", [("a", "b")])
    (named,) = [item for item in judged.contrasts + judged.pairs if item.named]
    assert (named.first, named.second, named.judgement.family_size) == ("a", "b", 1)
    assert named.judgement.p_holm == named.difference.p_t, "one alone needs no correction"
    assert [item.first for item in judged.contrasts] == ["a", "b", "c"]
    assert {item.judgement.family_size for item in judged.contrasts} == {5}


def test_a_named_contrast_may_state_the_baseline_first_and_is_turned_round():
    scores = draw_scores({"base": 2.0, "a": 1.0})
    (item,) = judge_study(scores, "base", "lower", [("base", "a")]).contrasts
    assert (item.first, item.second, item.named) == ("a", "base", True)
    assert item.judgement.verdict == "better"


def test_without_a_named_contrast_that_holds_nothing_else_is_judged():
    scores = draw_scores({"base": 2.0, "a": 2.0, "b": 1.0})
    judged = judge_study(scores, "base", "lower", [("a", "base")])
    verdicts = {item.first: item.judgement for item in judged.contrasts}
    assert verdicts["a"].verdict == "indistinguishable"
    assert verdicts["b"].verdict == "indistinguishable"
    assert verdicts["b"].reason == (
        "not judged on its own: no contrast that was named beforehand holds"
    )


@pytest.mark.usefixtures("unchecked_shapes")
def test_equal_systems_with_a_contrast_named_beforehand_get_a_winner_as_rarely():
    named = 0
    for report in range(150):
        scores = draw_scores(dict.fromkeys("abc", 2.0), seed=report)
        named += names_a_winner(judge_study(scores, "a", "lower", [("b", "a")]))
    assert named <= 12


def test_pairs_are_judged_when_the_baseline_cannot_be_tested():
    scores = draw_scores({"base": 2.0, "a": 1.0, "b": 2.0}) | {"base": {}}
    judged = judge_study(scores, "base", "lower")
    assert {c.judgement.verdict for c in judged.contrasts} == {"not tested"}
    assert [c.judgement.verdict for c in judged.pairs] == ["better"]


def test_one_seed_is_never_judged():
    scores = draw_scores({"base": 2.0, "a": 1.0}, seeds=1)
    judged = judge_study(scores, "base", "lower")
    assert judged.contrasts[0].judgement.verdict == "not tested"
    assert judged.groups == []


def test_an_untested_difference_does_not_enlarge_the_family():
    scores = draw_scores({"base": 2.0, "a": 1.0, "b": 1.5})
    differences = [paired_difference(scores[name], scores["base"]) for name in ("a", "b")]
    untested = paired_difference({9: 1.0}, scores["base"])
    alone = judge(differences, "lower")
    with_untested = judge([*differences, untested], "lower")
    assert with_untested[:2] == alone
    assert with_untested[2].verdict == "not tested"


def test_groups_are_the_largest_sets_without_a_told_apart_pair_and_may_overlap():
    apart = {frozenset(pair): False for pair in combinations("abcd", 2)}
    apart[frozenset("ad")] = True
    assert groups_not_told_apart(list("abcd"), apart) == [("a", "b", "c"), ("b", "c", "d")]


def test_a_pair_that_was_not_tested_joins_no_group():
    apart = {frozenset("ab"): False, frozenset("bc"): True}
    assert groups_not_told_apart(list("abc"), apart) == [("a", "b"), ("c",)]
