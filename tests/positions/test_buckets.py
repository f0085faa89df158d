"""Log buckets of DeBERTa v2 and v3, and of T5, against exact arithmetic and the published values."""

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
import torch

from posattn.positions import log_buckets, t5_buckets

getcontext().prec = 60


def exact_bucket(distance: int, num_buckets: int, max_distance: int) -> int:
    """Return the bucket by 60-digit logarithms, where ceil meets a whole number only if it is one."""
    middle = num_buckets // 2
    size = min(abs(distance), max_distance - 1)
    if size <= middle:
        return int(math.copysign(size, distance)) if size else 0
    ratio = (Decimal(size) / middle).ln() / (Decimal(max_distance - 1) / middle).ln()
    scaled = ratio * (middle - 1)
    nearest = scaled.to_integral_value()
    steps = nearest if abs(scaled - nearest) < Decimal("1e-40") else math.ceil(scaled)
    return int(math.copysign(middle + int(steps), distance))


def released_bucket(distance: np.ndarray, num_buckets: int, max_distance: int) -> np.ndarray:
    """Return what microsoft/DeBERTa, da_utils.py, make_log_bucket_position returns."""
    middle = num_buckets // 2
    near = (distance < middle) & (distance > -middle)
    size = np.where(near, middle - 1, np.abs(distance))
    far = np.ceil(np.log(size / middle) / np.log((max_distance - 1) / middle) * (middle - 1))
    return np.where(size <= middle, distance, (far + middle) * np.sign(distance)).astype(int)


@pytest.mark.parametrize(
    ("num_buckets", "max_distance"),
    [(256, 512), (4, 8), (6, 9), (32, 128), (2, 3), (5, 40), (64, 34), (20, 81), (18, 197)],
)
def test_buckets_equal_exact_arithmetic(num_buckets: int, max_distance: int) -> None:
    distances = range(-max_distance - 20, max_distance + 21)
    found = log_buckets(torch.tensor(distances), num_buckets, max_distance).tolist()
    assert found == [exact_bucket(d, num_buckets, max_distance) for d in distances]


def test_buckets_of_deberta_v3_equal_the_released_code_up_to_length_512() -> None:
    distances = np.arange(-511, 512)
    found = log_buckets(torch.from_numpy(distances), 256, 512)
    assert found.tolist() == released_bucket(distances, 256, 512).tolist()


def test_deberta_v3_has_511_buckets_distance_300_in_207_and_row_0_is_dead() -> None:
    found = log_buckets(torch.arange(-511, 512), 256, 512)
    assert log_buckets(torch.tensor([300, -300]), 256, 512).tolist() == [207, -207]
    assert found.unique().tolist() == list(range(-255, 256))
    assert (found + 256).min() == 1


def test_distances_beyond_the_last_bucket_share_it() -> None:
    distance = torch.tensor([-500, -8, -7, 7, 8, 500])
    assert log_buckets(distance, num_buckets=4, max_distance=8).tolist() == [-3, -3, -3, 3, 3, 3]
    far = torch.tensor([511, 512, 1000, -1000, 10**9])
    assert log_buckets(far, 256, 512).tolist() == [255, 255, 255, -255, 255]


def test_distances_that_are_not_held_go_on_as_in_transformers() -> None:
    distances = np.concatenate([np.arange(-2000, -500), np.arange(500, 2000)])
    found = log_buckets(torch.from_numpy(distances), 256, 512, held=False)
    assert found.tolist() == released_bucket(distances, 256, 512).tolist()
    assert log_buckets(torch.tensor([1000, -1000]), 256, 512, held=False).tolist() == [317, -317]


def test_near_distances_are_their_own_bucket() -> None:
    near = torch.arange(-128, 129)
    assert torch.equal(log_buckets(near, 256, 512), near)


def test_buckets_never_decrease_with_distance_and_are_odd() -> None:
    distance = torch.arange(0, 600)
    bucket = log_buckets(distance, 256, 512)
    assert bool((bucket.diff() >= 0).all())
    assert torch.equal(log_buckets(-distance, 256, 512), -bucket)


def test_t5_buckets_of_an_encoder_are_the_known_integers() -> None:
    left = torch.tensor([7, 8, 12, 16, 23, 32, 46, 64, 91, 128, 1000])
    expected = [7, 8, 9, 10, 11, 12, 13, 14, 15, 15, 15]
    assert t5_buckets(left, 32, 128, bidirectional=True).tolist() == expected
    right = -torch.tensor([1, 7, 8, 16, 64, 128])
    found = t5_buckets(right, 32, 128, bidirectional=True).tolist()
    assert found == [17, 23, 24, 26, 30, 31]


def exact_t5_bucket(size: int, per_side: int, max_distance: int) -> int:
    exact = per_side // 2
    if size < exact:
        return size
    ratio = (Decimal(size) / exact).ln() / (Decimal(max_distance) / exact).ln()
    scaled = ratio * (per_side - exact)
    nearest = scaled.to_integral_value()
    steps = nearest if abs(scaled - nearest) < Decimal("1e-40") else math.floor(scaled)
    return min(exact + int(steps), per_side - 1)


@pytest.mark.parametrize(
    ("num_buckets", "max_distance"), [(32, 128), (4, 3), (8, 20), (6, 11), (64, 4096), (20, 125)]
)
@pytest.mark.parametrize("bidirectional", [True, False])
def test_t5_buckets_equal_exact_arithmetic(
    num_buckets: int, max_distance: int, bidirectional: bool
) -> None:
    per_side = num_buckets // 2 if bidirectional else num_buckets
    distances = range(-max_distance - 20, max_distance + 21)
    found = t5_buckets(torch.tensor(distances), num_buckets, max_distance, bidirectional).tolist()
    for distance, bucket in zip(distances, found, strict=True):
        to_right = distance < 0
        size = abs(distance) if bidirectional else max(distance, 0)
        expected = exact_t5_bucket(size, per_side, max_distance)
        assert bucket == expected + per_side * (bidirectional and to_right)


def test_t5_never_reaches_the_first_bucket_of_the_right_side() -> None:
    found = t5_buckets(torch.arange(-300, 301), 32, 128, bidirectional=True)
    assert sorted(set(range(32)) - set(found.tolist())) == [16]
