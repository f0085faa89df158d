from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_model, save_model

from posattn.encoder.heads import HeadConfig
from posattn.encoder.init import initialize
from posattn.encoder.model import MaskedLanguageModel
from posattn.errors import IncompatibleParts

from .small_models import HIDDEN, VOCAB, config, decoder, model


def tied(made: MaskedLanguageModel) -> bool:
    return made.head.output.weight.data_ptr() == made.encoder.tokens.weight.data_ptr()


def test_logits_are_projection_activation_norm_and_the_token_table() -> None:
    made = model(norm={"eps": 1e-5}).double()
    hidden = torch.randn(5, HIDDEN, dtype=torch.float64)
    head = made.head
    inner = torch.nn.functional.gelu(hidden @ head.proj.weight.T + head.proj.bias)
    centred = inner - inner.mean(-1, keepdim=True)
    spread = (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
    normed = centred / spread * head.norm.weight + head.norm.bias
    expected = normed @ made.encoder.tokens.weight.T + head.output.bias
    torch.testing.assert_close(head(hidden), expected, rtol=1e-12, atol=1e-12)


def test_output_weights_are_the_token_table_and_counted_once() -> None:
    made = model()
    assert tied(made)
    names = [name for name, _ in made.named_parameters()]
    assert "encoder.tokens.weight" in names
    assert "head.output.weight" not in names


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_one_copy_is_stored_and_one_storage_is_loaded(tmp_path: Path, dtype: torch.dtype) -> None:
    saved = model(seed=1).to(dtype)
    assert tied(saved)
    path = tmp_path / "model.safetensors"
    save_model(saved, str(path))
    bytes_of_weights = sum(p.numel() * p.element_size() for p in saved.parameters())
    assert path.stat().st_size < bytes_of_weights + 8192
    loaded = MaskedLanguageModel(config(), decoder(), VOCAB).to(dtype)
    load_model(loaded, str(path))
    assert tied(loaded)
    assert sum(p.numel() for p in loaded.parameters()) == sum(p.numel() for p in saved.parameters())
    assert torch.equal(loaded.encoder.tokens.weight, saved.encoder.tokens.weight)


def test_a_state_dict_loads_into_tied_weights() -> None:
    made = MaskedLanguageModel(config(), decoder(), VOCAB)
    made.load_state_dict(model(seed=2).state_dict())
    assert tied(made)


def test_one_step_on_the_head_moves_the_embedding() -> None:
    made = model()
    before = made.encoder.tokens.weight.detach().clone()
    optimizer = torch.optim.SGD(made.head.parameters(), lr=0.1)
    made.head(torch.randn(4, HIDDEN)).pow(2).sum().backward()
    optimizer.step()
    assert not torch.equal(made.encoder.tokens.weight, before)
    assert tied(made)


def with_head(**options: Any) -> MaskedLanguageModel:
    """Return a small model with this head and random weights."""
    made = MaskedLanguageModel(config(), decoder(), VOCAB, HeadConfig(**options))
    initialize(made, 0)
    return made.eval()


@torch.no_grad()
def test_without_a_transform_logits_are_states_times_the_token_table() -> None:
    made = with_head(transform=False)
    hidden = torch.randn(5, HIDDEN)
    made.head.output.bias.normal_()
    expected = hidden @ made.encoder.tokens.weight.T + made.head.output.bias
    torch.testing.assert_close(made.head(hidden), expected)
    assert [name for name, _ in made.head.named_parameters()] == ["output.weight", "output.bias"]


@torch.no_grad()
def test_activation_and_both_biases_are_options() -> None:
    made = with_head(activation="reglu", bias=False, output_bias=False)
    hidden = torch.randn(5, HIDDEN)
    inner = torch.relu(hidden @ made.head.proj.weight.T)
    expected = made.head.norm(inner) @ made.encoder.tokens.weight.T
    torch.testing.assert_close(made.head(hidden), expected)


@pytest.mark.parametrize("options", [{"bias": False}, {"activation": "relu"}])
def test_options_of_a_transform_that_is_left_out_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="transform: false leaves out"):
        HeadConfig(transform=False, **options)


def test_a_narrow_token_table_needs_the_transform() -> None:
    with pytest.raises(IncompatibleParts, match="16 wide, but the token table is 6 wide"):
        MaskedLanguageModel(config(embedding_size=6), decoder(), VOCAB, HeadConfig(transform=False))
