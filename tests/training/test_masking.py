import time

import numpy as np
import pytest

from posattn.training.masking import IGNORE, Shares, mask_tokens
from posattn.training.text.draws import Purpose, fold
from posattn.training.text.vocabulary import Vocabulary

PAD, UNK, CLS, SEP, MASK = range(5)
BERT = Shares(0.8, 0.1, 0.1)


def vocabulary(size: int, special: list[int] | None = None) -> Vocabulary:
    marked = np.array(special or [PAD, UNK, CLS, SEP, MASK])
    ordinary = np.setdiff1d(np.arange(size), marked)
    return Vocabulary(size, PAD, UNK, CLS, SEP, MASK, marked, ordinary)


def masked(
    ids: np.ndarray,
    probability: float = 0.15,
    shares: Shares = BERT,
    vocab: Vocabulary | None = None,
    seed: int = 0,
    visible: np.ndarray | None = None,
    counters: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    keys = fold(int(Purpose.TRAINING_MASKS), seed, 0, np.arange(len(ids)))
    if counters is None:
        counters = np.tile(np.arange(ids.shape[1]), (len(ids), 1))
    seen = np.ones(ids.shape, np.bool_) if visible is None else visible
    return mask_tokens(ids, seen, keys, counters, vocab or vocabulary(1000), probability, shares)


@pytest.fixture
def tokens() -> np.ndarray:
    """200 000 ordinary tokens of a vocabulary of 1000."""
    return np.random.default_rng(0).integers(5, 1000, (200, 1000))


def test_fifteen_percent_are_selected_and_split_80_10_10(tokens: np.ndarray) -> None:
    seen, targets = masked(tokens)
    selected = targets != IGNORE
    assert abs(selected.mean() - 0.15) < 0.003
    assert np.array_equal(targets[selected], tokens[selected])
    assert np.array_equal(seen[~selected], tokens[~selected])
    as_mask = seen[selected] == MASK
    kept = seen[selected] == tokens[selected]
    assert abs(as_mask.mean() - 0.8) < 0.006
    # one in 995 random replacements is the token itself by chance
    assert abs(kept.mean() - 0.1) < 0.006
    assert abs((~as_mask & ~kept).mean() - 0.1) < 0.006


def test_pure_splits_are_exact(tokens: np.ndarray) -> None:
    seen, targets = masked(tokens, shares=Shares(0.0, 0.0, 1.0))
    assert np.array_equal(seen, tokens)
    assert (targets != IGNORE).sum() > 29_000
    seen, targets = masked(tokens, shares=Shares(1.0, 0.0, 0.0))
    assert np.array_equal(seen == MASK, targets != IGNORE)
    seen, targets = masked(tokens, shares=Shares(0.0, 1.0, 0.0))
    replaced = seen[targets != IGNORE]
    assert not (replaced == MASK).any()
    assert abs((replaced == targets[targets != IGNORE]).mean() - 1 / 995) < 0.001


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_none_and_all_are_exact(tokens: np.ndarray, probability: float) -> None:
    seen, targets = masked(tokens, probability)
    assert (targets != IGNORE).mean() == probability
    if probability == 0:
        assert np.array_equal(seen, tokens)


def test_special_tokens_and_padding_are_never_selected() -> None:
    user_added, a, b = 7, 8, 9
    vocab = vocabulary(40, [PAD, UNK, CLS, SEP, MASK, user_added])
    row = np.array([CLS, a, user_added, b, SEP, PAD, PAD, UNK, MASK])
    ids = np.tile(row, (1000, 1))
    for seed in range(10):
        seen, targets = masked(ids, 0.5, vocab=vocab, seed=seed, visible=ids != PAD)
        for column, token in enumerate(row.tolist()):
            if token not in (a, b):
                assert (targets[:, column] == IGNORE).all()
                assert (seen[:, column] == token).all()
        assert abs((targets[:, 1] != IGNORE).mean() - 0.5) < 0.08


def test_padding_is_not_selected_even_if_its_id_is_an_ordinary_token() -> None:
    ids = np.full((100, 20), 50)
    visible = np.tile(np.arange(20) < 7, (100, 1))
    _, targets = masked(ids, 1.0, visible=visible)
    assert np.array_equal(targets != IGNORE, visible)


def test_a_row_without_ordinary_tokens_has_no_targets() -> None:
    seen, targets = masked(np.array([[CLS, SEP]]), 1.0)
    assert (targets == IGNORE).all()
    assert seen.tolist() == [[CLS, SEP]]


def test_random_tokens_are_ordinary_tokens_of_the_tokenizer_and_all_of_them() -> None:
    vocab = vocabulary(33)
    ids = np.full((100, 1000), 5)
    seen, _ = masked(ids, 1.0, Shares(0.0, 1.0, 0.0), vocab)
    assert set(np.unique(seen)) == set(range(5, 33))
    counts = np.bincount(seen.ravel(), minlength=33)[5:]
    assert np.abs(counts - 100_000 / 28).max() < 5 * np.sqrt(100_000 / 28)


def test_random_tokens_leave_out_gaps_and_specials_in_the_middle() -> None:
    marked = np.array([0, 1, 2, 10, 31])
    ordinary = np.array([3, 9, 11, 32])
    vocab = Vocabulary(33, 0, 1, 2, 10, 31, marked, ordinary)
    seen, _ = masked(np.full((10, 1000), 3), 1.0, Shares(0.0, 1.0, 0.0), vocab)
    assert set(np.unique(seen)) == set(ordinary.tolist())


def test_a_row_does_not_depend_on_the_other_rows_or_on_what_is_padded(tokens: np.ndarray) -> None:
    seen, targets = masked(tokens[:50, :30])
    alone, alone_targets = masked(tokens[:3, :20])
    assert np.array_equal(alone, seen[:3, :20])
    assert np.array_equal(alone_targets, targets[:3, :20])


def test_the_selection_does_not_depend_on_the_split_into_classes(tokens: np.ndarray) -> None:
    _, targets = masked(tokens)
    _, kept = masked(tokens, shares=Shares(0.0, 0.0, 1.0))
    assert np.array_equal(targets, kept)


def test_rows_and_seeds_have_different_masks(tokens: np.ndarray) -> None:
    same = np.tile(tokens[0], (2, 1))
    _, targets = masked(same)
    assert not np.array_equal(targets[0], targets[1])
    _, other = masked(same, seed=1)
    assert not np.array_equal(targets[0], other[0])


def test_masking_a_batch_is_fast(tokens: np.ndarray) -> None:
    ids = tokens[:32, :64]
    masked(ids)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        masked(ids)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.005
