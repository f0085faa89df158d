import numpy as np

from posattn.training.text.draws import Purpose, fold, permutation, uniforms, words

WORD = (1 << 64) - 1


def mix(state: int) -> int:
    """SplitMix64's output function in plain Python integers."""
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & WORD
    return state ^ (state >> 31)


def test_the_stream_of_key_zero_is_splitmix64_as_published() -> None:
    # the first outputs of the reference implementation for seed 0
    drawn = words(np.zeros(1, np.uint64), np.arange(3))
    assert [hex(word) for word in drawn.tolist()] == [
        "0xe220a8397b1dcdaf",
        "0x6e789e6aa1b965f4",
        "0x6c45d188009454f",
    ]


def test_draws_equal_plain_python_integers() -> None:
    keys = fold(3, -5, np.array([0, 1, 2**40]))
    drawn = words(keys[:, None], np.arange(-1, 4)[None, :])
    for key, row in zip(keys.tolist(), drawn.tolist(), strict=True):
        expected = [mix((key + (at + 1) * 0x9E3779B97F4A7C15) & WORD) for at in range(-1, 4)]
        assert row == expected


def test_uniform_draws_are_in_the_half_open_unit_interval_and_even() -> None:
    drawn = uniforms(fold(Purpose.SELECTION, 0), np.arange(100_000))
    assert drawn.min() >= 0
    assert drawn.max() < 1
    counts = np.histogram(drawn, bins=20, range=(0, 1))[0]
    assert np.abs(counts - 5000).max() < 5 * np.sqrt(5000)


def test_streams_of_neighbouring_keys_are_not_correlated() -> None:
    drawn = uniforms(fold(1, np.arange(200))[:, None], np.arange(500)[None, :])
    correlation = np.corrcoef(drawn)
    off_diagonal = correlation[~np.eye(200, dtype=bool)]
    assert np.abs(off_diagonal).max() < 6 / np.sqrt(500)


def test_a_permutation_has_every_number_once_and_depends_on_each_part() -> None:
    first = permutation(50, 1, 7, 0)
    assert sorted(first.tolist()) == list(range(50))
    assert np.array_equal(first, permutation(50, 1, 7, 0))
    for other in (permutation(50, 1, 7, 1), permutation(50, 1, 8, 0), permutation(50, 2, 7, 0)):
        assert not np.array_equal(first, other)


def test_the_order_of_the_parts_of_a_key_counts() -> None:
    assert fold(1, 2)[0] != fold(2, 1)[0]
