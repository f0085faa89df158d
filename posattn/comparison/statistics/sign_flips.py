"""The exact sign-flip test over pairs: what it finds, and the least it can find."""

import numpy as np
from numpy.typing import NDArray

MAX_EXACT_SEEDS = 16


def sign_flip_p(differences: NDArray[np.float64]) -> float:
    """Return the two-sided p of the exact sign-flip test (above 16 seeds: 65,536 random flips)."""
    n = len(differences)
    if n <= MAX_EXACT_SEEDS:
        bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    else:
        bits = np.random.default_rng(0).integers(0, 2, size=(2**MAX_EXACT_SEEDS, n))
        bits[0] = 0
    sums = np.abs((1 - 2 * bits) @ differences)
    observed = abs(float(differences.sum()))
    return float(np.mean(sums >= observed * (1 - 1e-12)))


def smallest_sign_flip_p(n: int) -> float:
    """Return the least two-sided p that n pairs allow: 0.25 for 3, 0.0625 for 5, 0.031 for 6."""
    return float(min(1.0, 2.0 ** (1 - n)))
