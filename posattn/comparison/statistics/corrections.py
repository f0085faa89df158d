"""Holm's correction for many tests at once (Holm 1979)."""

from collections.abc import Sequence

import numpy as np

from posattn.comparison.statistics.paired import ALPHA


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p values, in the order given."""
    adjusted = [1.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(np.argsort(p_values, kind="stable")):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted


def holm_alphas(p_values: Sequence[float], alpha: float = ALPHA) -> list[float]:
    """Return the alpha of each value's step; after the first step that fails, all keep its alpha.

    An interval at `1 - alpha` of its step excludes zero exactly where Holm's procedure rejects.
    """
    alphas = [alpha] * len(p_values)
    step, failed = alpha, False
    for rank, index in enumerate(np.argsort(p_values, kind="stable")):
        if not failed:
            step = alpha / (len(p_values) - rank)
            failed = p_values[index] > step
        alphas[index] = step
    return alphas
