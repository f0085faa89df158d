"""NomicBERT: under transformers' two spellings of its weights, and with the config of Nomic's own code."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from posattn.checkpoints import from_pretrained, import_checkpoint
from posattn.errors import CheckpointError
from tests.checkpoints.originals import TOLERANCE, sample, through_our_hands

from .parity import head_difference, largest_difference, original, rewrite

Record = Callable[[str, object], None]
CODE = "nomic-ai/nomic-bert-2048--"
AUTO_MAP = {
    "AutoConfig": f"{CODE}configuration_hf_nomic_bert.NomicBertConfig",
    "AutoModel": f"{CODE}modeling_hf_nomic_bert.NomicBertModel",
    "AutoModelForMaskedLM": f"{CODE}modeling_hf_nomic_bert.NomicBertForPreTraining",
}
GPT2 = {
    "n_embd": 24,
    "n_layer": 3,
    "n_head": 4,
    "n_inner": 40,
    "activation_function": "swiglu",
    "layer_norm_epsilon": 1e-12,
    "resid_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "rotary_emb_base": 1000,
    "rotary_emb_fraction": 1.0,
    "prenorm": False,
}
OURS = (
    "hidden_size num_hidden_layers num_attention_heads intermediate_size hidden_act layer_norm_eps "
    "hidden_dropout_prob attention_probs_dropout_prob rope_parameters"
)


def made(size: str = "tiny", head: str = "ForMaskedLM", **options: Any) -> Any:
    """Return a random NomicBERT."""
    model = getattr(transformers, f"NomicBert{head}")
    return original(model, transformers.NomicBertConfig, size, **options)


@torch.no_grad()
@pytest.mark.parametrize("size", ["tiny", "base"])
def test_all_states_and_logits_equal(size: str, tmp_path: Path, record_property: Record) -> None:
    model = made(size)
    found = through_our_hands(model, tmp_path)
    difference = largest_difference(model, found)
    record_property("difference", difference)
    assert difference <= TOLERANCE
    assert (found.report.unused, found.report.new) == ((), ())


@torch.no_grad()
def test_the_names_that_transformers_has_in_memory_are_known(tmp_path: Path) -> None:
    model = made()
    model.save_pretrained(tmp_path, save_original_format=False)
    assert "nomic_bert.layers.0.self_attn.q_proj.weight" in load_file(
        tmp_path / "model.safetensors"
    )
    assert largest_difference(model, from_pretrained(tmp_path), (11,)) <= TOLERANCE


@torch.no_grad()
@pytest.mark.parametrize(
    ("task", "head"),
    [("sequence", "ForSequenceClassification"), ("token", "ForTokenClassification")],
)
def test_logits_of_heads_equal(task: str, head: str, tmp_path: Path) -> None:
    model = made(head=head, num_labels=5)
    found = through_our_hands(model, tmp_path)
    assert head_difference(model, found, task, sample(7)) <= TOLERANCE


def as_nomics_own(model: Any, folder: Path) -> None:
    """Save a model as Nomic's code does: its prefix, GPT-2's keys, and a masked-token head without bias."""
    model.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    bare = ("cls.predictions.bias", "cls.predictions.transform.dense.bias")
    tensors = {
        name.replace("nomic_bert.", "bert."): tensor
        for name, tensor in tensors.items()
        if name not in bare
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    gone = dict.fromkeys(OURS.split())
    architectures = ["NomicBertForPreTraining"]
    rewrite(folder, **gone, **GPT2, auto_map=AUTO_MAP, architectures=architectures)


@torch.no_grad()
def test_nomics_own_config_and_head_are_the_same_model(tmp_path: Path) -> None:
    model = made()
    model.cls.predictions.bias.zero_()
    model.cls.predictions.decoder.bias.zero_()
    model.cls.predictions.transform.dense.bias.zero_()
    as_nomics_own(model, tmp_path / "theirs")
    import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    found = from_pretrained(tmp_path / "ours")
    assert largest_difference(model, found, (11,)) <= TOLERANCE
    assert found.masked_lm.head.proj.bias is None
    assert found.masked_lm.head.output.bias is None


@torch.no_grad()
def test_its_scaling_factor_is_dynamic_ntk_from_the_trained_length_on(tmp_path: Path) -> None:
    model = made()
    as_nomics_own(model, tmp_path)
    rewrite(tmp_path, rotary_scaling_factor=2, max_trained_positions=30)
    found = from_pretrained(tmp_path)
    scaling = found.recipe.encoder.mechanism[0].scaling
    assert (scaling.kind, scaling.factor, scaling.original_length) == ("dynamic_ntk", 2.0, 30)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prenorm": True}, "prenorm = True"),
        ({"qkv_proj_bias": True}, "qkv_proj_bias = True"),
        ({"rotary_emb_fraction": 0.5}, "rotary_emb_fraction = 0.5"),
        ({"rotary_emb_interleaved": True}, "rotary_emb_interleaved = True"),
        ({"num_experts": 8}, "num_experts = 8"),
        ({"activation_function": "glu"}, "activation_function = 'glu'"),
    ],
)
def test_what_released_models_do_not_use_is_refused_by_key(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    as_nomics_own(made(), tmp_path)
    rewrite(tmp_path, **changes)
    with pytest.raises(CheckpointError, match=message):
        from_pretrained(tmp_path)
