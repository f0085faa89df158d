"""Jina-BERT v2 and MosaicBERT: transformers has no class for them, so their formulas stand here as loops."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from posattn.checkpoints import Pretrained, from_pretrained, import_checkpoint
from posattn.errors import CheckpointError
from tests.checkpoints.originals import TOLERANCE, Sample, all_states, gap, sample

from .parity import rewrite

Record = Callable[[str, object], None]
Tensors = dict[str, Tensor]
VOCAB, LAYERS, HEADS = 31, 2, 6
JINA = {
    "AutoConfig": "jinaai/jina-bert-implementation--configuration_bert.JinaBertConfig",
    "AutoModel": "jinaai/jina-bert-implementation--modeling_bert.JinaBertModel",
    "AutoModelForMaskedLM": "jinaai/jina-bert-implementation--modeling_bert.JinaBertForMaskedLM",
    "AutoModelForSequenceClassification": "jinaai/x--modeling_bert.JinaBertForSequenceClassification",
}
MOSAIC = {
    "AutoConfig": "mosaicml/mosaic-bert-base--configuration_bert.BertConfig",
    "AutoModelForMaskedLM": "bert_layers.BertForMaskedLM",
    "AutoModelForSequenceClassification": "bert_layers.BertForSequenceClassification",
}
FORMS: dict[str, dict[str, Any]] = {
    "jina": {"auto_map": JINA, "position_embedding_type": "alibi", "feed_forward_type": "geglu"},
    "jina reglu": {
        "auto_map": JINA,
        "position_embedding_type": "alibi",
        "feed_forward_type": "reglu",
    },
    "mosaic": {"auto_map": MOSAIC, "alibi_starting_size": 16},
}


def tensors_of(form: str, hidden: int, inner: int, head: str) -> Tensors:
    """Return random weights under the names of the form."""
    shapes: dict[str, tuple[int, ...]] = {
        "bert.embeddings.word_embeddings.weight": (VOCAB, hidden),
        "bert.embeddings.token_type_embeddings.weight": (2, hidden),
        **_norm("bert.embeddings.LayerNorm", hidden),
    }
    for index in range(LAYERS):
        layer = f"bert.encoder.layer.{index}"
        if form == "mosaic":
            shapes |= _linear(f"{layer}.attention.self.Wqkv", 3 * hidden, hidden)
        else:
            for part in ("query", "key", "value"):
                shapes |= _linear(f"{layer}.attention.self.{part}", hidden, hidden)
        shapes |= _linear(f"{layer}.attention.output.dense", hidden, hidden)
        shapes |= _norm(f"{layer}.attention.output.LayerNorm", hidden)
        shapes[f"{layer}.mlp.gated_layers.weight"] = (2 * inner, hidden)
        shapes |= _linear(f"{layer}.mlp.wo", hidden, inner)
        shapes |= _norm(f"{layer}.mlp.layernorm", hidden)
    if head == "MaskedLM":
        shapes |= _linear("cls.predictions.transform.dense", hidden, hidden)
        shapes |= _norm("cls.predictions.transform.LayerNorm", hidden)
        shapes["cls.predictions.decoder.bias" if form == "mosaic" else "cls.predictions.bias"] = (
            VOCAB,
        )
    else:
        shapes |= _linear("bert.pooler.dense", hidden, hidden) | _linear("classifier", 5, hidden)
    generator = torch.Generator().manual_seed(1)
    spread = 0.2 if hidden < 100 else 0.03
    made = {
        name: spread * torch.randn(shape, generator=generator) for name, shape in shapes.items()
    }
    norms = [name for name in made if "norm" in name.lower() and name.endswith("weight")]
    return made | {name: 1.0 + made[name] for name in norms}


def _linear(name: str, rows: int, columns: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}


def _norm(name: str, width: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def folder_of(
    path: Path, form: str, size: str = "tiny", head: str = "MaskedLM", **changes: Any
) -> Tensors:
    """Write a checkpoint of the form and return its tensors in float64."""
    hidden, inner = (24, 20) if size == "tiny" else (768, 512)
    tensors = tensors_of(form, hidden, inner, head)
    path.mkdir()
    save_file(tensors, path / "model.safetensors")
    prefix = "" if form == "mosaic" else "Jina"
    config = {
        "model_type": "bert",
        "architectures": [f"{prefix}BertFor{head}"],
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "vocab_size": VOCAB,
        **FORMS[form],
        **changes,
    }
    (path / "config.json").write_text(json.dumps(config))
    return {name: tensor.double() for name, tensor in tensors.items()}


def slopes(count: int) -> list[float]:
    """Return the slopes of the ALiBi authors' rule, written out for 2 ** n heads and for 6."""
    of_four = [2.0 ** (-8.0 * step / 4) for step in (1, 2, 3, 4)]
    of_eight = [2.0 ** (-8.0 * step / 8) for step in range(1, 9)]
    return {4: of_four, 6: [*of_four, *of_eight[0::2][:2]]}[count]


class ByHand:
    """The public formula in float64; one sequence without padding at a time."""

    def __init__(self, weights: Tensors, form: str) -> None:
        self.weights = weights
        self.form = form

    def linear(self, states: Tensor, name: str) -> Tensor:
        return states @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, states: Tensor, name: str) -> Tensor:
        centred = states - states.mean(-1, keepdim=True)
        scaled = centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-12).sqrt()
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def states(self, ids: Tensor, segments: Tensor) -> list[Tensor]:
        words = self.weights["bert.embeddings.word_embeddings.weight"][ids]
        types = self.weights["bert.embeddings.token_type_embeddings.weight"][segments]
        found = [self.norm(words + types, "bert.embeddings.LayerNorm")]
        for index in range(LAYERS):
            found.append(self.layer(found[-1], f"bert.encoder.layer.{index}"))
        return found

    def layer(self, states: Tensor, name: str) -> Tensor:
        attended = self.linear(self.attention(states, name), f"{name}.attention.output.dense")
        middle = self.norm(states + attended, f"{name}.attention.output.LayerNorm")
        both = middle @ self.weights[f"{name}.mlp.gated_layers.weight"].T
        gate, inner = both[:, : both.shape[1] // 2], both[:, both.shape[1] // 2 :]
        opened = functional.relu(gate) if self.form == "jina reglu" else functional.gelu(gate)
        return self.norm(
            middle + self.linear(opened * inner, f"{name}.mlp.wo"), f"{name}.mlp.layernorm"
        )

    def attention(self, states: Tensor, name: str) -> Tensor:
        of_self = f"{name}.attention.self"
        if self.form == "mosaic":
            query, key, value = self.linear(states, f"{of_self}.Wqkv").chunk(3, dim=1)
        else:
            parts = ("query", "key", "value")
            query, key, value = (self.linear(states, f"{of_self}.{part}") for part in parts)
        width = states.shape[1] // HEADS
        out = torch.zeros_like(states)
        for head, slope in enumerate(slopes(HEADS)):
            at = slice(head * width, (head + 1) * width)
            for i in range(len(states)):
                logits = torch.stack(
                    [
                        query[i, at] @ key[j, at] / math.sqrt(width) - slope * abs(i - j)
                        for j in range(len(states))
                    ]
                )
                out[i, at] = logits.softmax(0) @ value[:, at]
        return out

    def masked_token_logits(self, states: Tensor) -> Tensor:
        head = "cls.predictions"
        dense = functional.gelu(self.linear(states, f"{head}.transform.dense"))
        bias = f"{head}.decoder.bias" if self.form == "mosaic" else f"{head}.bias"
        table = self.weights["bert.embeddings.word_embeddings.weight"]
        return self.norm(dense, f"{head}.transform.LayerNorm") @ table.T + self.weights[bias]

    def labels(self, states: Tensor) -> Tensor:
        return self.linear(self.linear(states[:1], "bert.pooler.dense").tanh(), "classifier")


def largest_difference(by_hand: ByHand, found: Pretrained, given: Sample) -> float:
    """Return the largest difference of states and masked-token logits, sequence by sequence."""
    ours = all_states(found, given)
    assert found.masked_lm is not None
    output = found.masked_lm(given.ids, visible=given.visible, segments=given.segments)
    gaps = []
    for row, visible in enumerate(given.visible):
        states = by_hand.states(given.ids[row][visible], given.segments[row][visible])
        pairs = [(layer[row][visible], state) for layer, state in zip(ours, states, strict=True)]
        pairs.append((output.logits[row][visible], by_hand.masked_token_logits(states[-1])))
        gaps += [gap(one, other) for one, other in pairs]
    return max(gaps)


@torch.no_grad()
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", ["tiny", "base"])
def test_all_states_and_logits_equal_the_formula(
    form: str, size: str, tmp_path: Path, record_property: Record
) -> None:
    weights = folder_of(tmp_path / "theirs", form, size)
    import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    found = from_pretrained(tmp_path / "ours")
    lengths = (1, 7, 24) if size == "tiny" else (7,)
    difference = max(largest_difference(ByHand(weights, form), found, sample(n)) for n in lengths)
    record_property("difference", difference)
    assert difference <= TOLERANCE
    assert (found.report.unused, found.report.new) == ((), ())
    assert found.report.entries
    assert found.encoder.config.max_length() is None


@torch.no_grad()
@pytest.mark.parametrize("form", ["jina", "mosaic"])
def test_labels_of_texts_equal_the_formula(form: str, tmp_path: Path) -> None:
    weights = folder_of(tmp_path / "theirs", form, head="SequenceClassification")
    found = from_pretrained(tmp_path / "theirs")
    ids, visible, segments = sample(7)
    ours = found.tasks("sequence", ids, visible=visible, segments=segments).logits
    by_hand = ByHand(weights, form)
    for row, seen in enumerate(visible):
        states = by_hand.states(ids[row][seen], segments[row][seen])
        assert gap(ours[row], by_hand.labels(states[-1])[0]) <= TOLERANCE


def test_the_family_follows_from_the_class_names_alone(tmp_path: Path) -> None:
    folder_of(tmp_path / "jina", "jina")
    folder_of(tmp_path / "mosaic", "mosaic")
    assert from_pretrained(tmp_path / "jina").report.family == "jina_bert"
    assert from_pretrained(tmp_path / "mosaic").report.family == "mosaic_bert"


@pytest.mark.parametrize(
    ("form", "changes", "message"),
    [
        ("jina", {"auto_map": None}, "position_embedding_type = 'alibi'"),
        ("jina", {"auto_map": {**JINA, "AutoModel": "x--modeling_bert.Other"}}, "auto_map.*Other"),
        ("jina", {"position_embedding_type": "absolute"}, "position_embedding_type = 'absolute'"),
        ("jina", {"feed_forward_type": "original"}, "feed_forward_type = 'original'"),
        ("mosaic", {"auto_map": JINA}, "position_embedding_type"),
        ("mosaic", {"layer_norm_eps": 1e-5}, "layer_norm_eps = 1e-05"),
        ("mosaic", {"auto_map": None}, "mlp.gated_layers"),
    ],
)
def test_another_form_under_these_names_is_refused(
    form: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder_of(tmp_path / "theirs", form)
    rewrite(tmp_path / "theirs", **changes)
    with pytest.raises(CheckpointError, match=message):
        import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_normalised_queries_and_keys_have_no_place(tmp_path: Path) -> None:
    weights = folder_of(tmp_path / "theirs", "jina")
    extra = "bert.encoder.layer.0.attention.self.layer_norm_q.weight"
    tensors = {name: tensor.float() for name, tensor in weights.items()}
    save_file(tensors | {extra: torch.ones(24)}, tmp_path / "theirs" / "model.safetensors")
    with pytest.raises(CheckpointError, match="layer_norm_q"):
        from_pretrained(tmp_path / "theirs")


@torch.no_grad()
def test_a_sentence_encoder_pools_the_states_of_the_formula(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    weights = folder_of(theirs, "jina")
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {
            "idx": 1,
            "name": "1",
            "path": "1_Pooling",
            "type": "sentence_transformers.models.Pooling",
        },
    ]
    (theirs / "modules.json").write_text(json.dumps(modules))
    (theirs / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 24, "pooling_mode_mean_tokens": True}
    (theirs / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    found = from_pretrained(theirs)
    ids, visible, segments = sample(7)
    vectors = found.tasks("sentence", ids, visible=visible, segments=segments).pooled
    for row, seen in enumerate(visible):
        states = ByHand(weights, "jina").states(ids[row][seen], segments[row][seen])[-1]
        assert gap(vectors[row], states.mean(0)) <= TOLERANCE
