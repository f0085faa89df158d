"""The slopes of ALiBi, one per head."""

import math


def authors_slopes(num_heads: int) -> list[float]:
    """Return the slopes of the authors' code, for any number of heads.

    For a power of two n: 2 ** (-8 k / n), k = 1 .. n. Otherwise the slopes of the power of two below,
    followed by every second slope of the power of two above.
    Source: ofirpress/attention_with_linear_biases, fairseq/models/transformer.py (4b92f28).
    """
    lower = 2 ** math.floor(math.log2(num_heads))
    if lower == num_heads:
        return plain_slopes(num_heads)
    return plain_slopes(lower) + plain_slopes(2 * lower)[0::2][: num_heads - lower]


def end_to_end_slopes(num_heads: int) -> list[float]:
    """Return the geometric series from 1 / 2 to 1 / 256, both included; one head has 1 / 2."""
    return [2.0 ** (-1.0 - 7.0 * k / max(num_heads - 1, 1)) for k in range(num_heads)]


def plain_slopes(num_heads: int) -> list[float]:
    """Return the geometric series 2 ** (-8 k / num_heads), k = 1 .. num_heads: the paper's sentence."""
    return [2.0 ** (-8.0 * k / num_heads) for k in range(1, num_heads + 1)]
