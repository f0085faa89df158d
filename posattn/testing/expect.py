"""Expectations that hold under `python -O` too and say by how much they failed."""

import torch
from torch import Tensor


def ensure(condition: bool, text: str) -> None:
    """Raise AssertionError with `text` unless the condition holds."""
    if not condition:
        raise AssertionError(text)


def ensure_close(
    actual: Tensor, expected: Tensor, what: str, tolerance: float, relative: float = 0.0
) -> None:
    """Raise unless both have one shape and differ nowhere by more than the tolerance; NaN fails."""
    ensure(
        actual.shape == expected.shape,
        f"{what}: shape {tuple(actual.shape)} where {tuple(expected.shape)} is expected",
    )
    actual, expected = actual.detach().double(), expected.detach().double()
    ensure(bool(actual.isfinite().all()), f"{what}: not all values are finite")
    excess = (actual - expected).abs() - relative * expected.abs()
    worst = float(excess.max()) if excess.numel() else 0.0
    ensure(worst <= tolerance, f"{what}: off by {worst:.3g}, at most {tolerance:.3g} is allowed")


def ensure_differs(actual: Tensor, other: Tensor, what: str, least: float = 1e-4) -> None:
    """Raise if the two are nowhere further apart than `least`."""
    distance = float((actual.detach().double() - other.detach().double()).abs().max())
    ensure(distance > least, f"{what} (largest difference {distance:.3g})")


def ensure_finite(actual: Tensor, what: str) -> None:
    """Raise if a value is infinite or no number."""
    ensure(bool(torch.isfinite(actual).all()), f"{what}: not all values are finite")
