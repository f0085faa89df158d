"""Scaled rotary frequencies against the initialisers of transformers."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from posattn.mechanisms import RotaryConfig

Record = Callable[[str, object], None]
THEIRS = {"linear": "linear", "dynamic_ntk": "dynamic", "yarn": "yarn"}
CASES: list[tuple[dict[str, Any], int]] = [
    ({"kind": "linear", "factor": 4.0}, 64),
    ({"kind": "dynamic_ntk", "factor": 2.0, "original_length": 512}, 300),
    ({"kind": "dynamic_ntk", "factor": 2.0, "original_length": 512}, 1777),
    ({"kind": "yarn", "factor": 4.0, "original_length": 512}, 64),
    ({"kind": "yarn", "factor": 4.0, "original_length": 512, "attention_factor": 1.2}, 64),
    ({"kind": "yarn", "factor": 16.0, "original_length": 2048, "beta_fast": 16.0}, 64),
    ({"kind": "yarn", "factor": 4.0, "original_length": 512, "truncate": False}, 64),
]


@pytest.mark.parametrize(("scaling", "length"), CASES)
@pytest.mark.parametrize("base", [10000.0, 500000.0])
def test_frequencies_and_attention_factor_equal_those_of_transformers(
    scaling: dict[str, Any], length: int, base: float, record_property: Record
) -> None:
    options = {key: value for key, value in scaling.items() if key != "kind"}
    original = options.pop("original_length", 512)
    config = LlamaConfig(
        hidden_size=64,
        num_attention_heads=1,
        max_position_embeddings=original,
        rope_parameters={
            "rope_type": THEIRS[scaling["kind"]],
            "rope_theta": base,
            **options,
            **({"original_max_position_embeddings": original} if "yarn" in scaling["kind"] else {}),
        },
    )
    initialiser = ROPE_INIT_FUNCTIONS[THEIRS[scaling["kind"]]]
    theirs, amplitude = initialiser(config, torch.device("cpu"), seq_len=length)
    ours = RotaryConfig(base=base, scaling=scaling).scaling
    found = ours.frequencies(64, base, lambda: torch.tensor([[length]])).flatten()
    gap = ((found - theirs.double()) / found).abs().max()
    record_property("difference", float(gap))
    assert gap <= 1e-5  # theirs are float32
    assert ours.amplitude() == pytest.approx(amplitude, rel=1e-12)
