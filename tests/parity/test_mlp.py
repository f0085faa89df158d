"""The continuous relative bias as x-transformers' dynamic position bias."""

from collections.abc import Callable

import pytest
import torch
from x_transformers import Encoder as TheirEncoder

from .copy_weights import Source, Tensors
from .originals import TOLERANCE, difference, sample
from .x_layers import pair

Record = Callable[[str, object], None]
NEW = "encoder.position.mechanisms.mlp.network"


def weights(depth: int, norm: bool) -> Callable[[Source], Tensors]:
    def take(source: Source) -> Tensors:
        found: Tensors = {}
        for index in range(depth):
            old = f"rel_pos.mlp.{index}"
            found |= source.module(f"{old}.0", f"{NEW}.inner.{index}")
            if norm and index == 0:  # their own norm, without bias
                found[f"{NEW}.norms.0.weight"] = source.take(f"{old}.1.gamma")
                found[f"{NEW}.norms.0.bias"] = torch.zeros_like(found[f"{NEW}.norms.0.weight"])
            elif norm:
                found |= source.module(f"{old}.1", f"{NEW}.norms.{index}")
        return found | source.module(f"rel_pos.mlp.{depth}", f"{NEW}.output")

    return take


@torch.no_grad()
@pytest.mark.parametrize(
    ("log", "depth", "norm"),
    [(False, 2, False), (True, 2, False), (True, 3, True), (False, 1, True)],
)
def test_encoders_of_x_transformers_equal(
    log: bool, depth: int, norm: bool, record_property: Record
) -> None:
    options = {"coordinate": "log" if log else "linear", "depth": depth, "norm": norm}
    original, encoder = pair(
        TheirEncoder,
        {"name": "mlp", **options},
        weights(depth, norm),
        dynamic_pos_bias=True,
        dynamic_pos_bias_log_distance=log,
        dynamic_pos_bias_mlp_depth=depth,
        dynamic_pos_bias_norm=norm,
    )
    gaps = []
    for length in (1, 6, 11, 24):
        ids, visible, _ = sample(length)
        theirs = original(encoder.tokens(ids), mask=visible)
        gaps.append(difference(encoder(ids, visible=visible), theirs, visible))
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE
