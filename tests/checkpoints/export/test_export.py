"""Exports: folders that transformers loads alone, or with posattn, and the way back."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertForMultipleChoice,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertModel,
    DebertaV2Config,
    DebertaV2ForTokenClassification,
    ModernBertConfig,
    ModernBertForMaskedLM,
    ModernBertForSequenceClassification,
    RoFormerConfig,
    RoFormerForMaskedLM,
)
from typer.testing import CliRunner

import posattn
import posattn.cli.main  # adds the commands
from posattn.checkpoints import import_checkpoint
from posattn.checkpoints.export import Exported, export_run
from posattn.cli.app import app
from posattn.errors import CheckpointError, RecipeError
from posattn.recipe.run import train_recipe
from posattn.recipe.schema import load_recipe
from tests.checkpoints.originals import KINDS, SIZES, V3, made, sample
from tests.checkpoints.test_sentence import sentence_encoder

TINY = SIZES["tiny"]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "the", "of", "is"]
LENGTH = "data.max_length=24"
HEADS: dict[str, Any] = {
    "pretraining": BertForPreTraining(BertConfig(**TINY)),
    "sequence": BertForSequenceClassification(BertConfig(**TINY, num_labels=3)),
    "choice": BertForMultipleChoice(BertConfig(**TINY)),
    "token": DebertaV2ForTokenClassification(
        DebertaV2Config(**TINY, **V3, id2label={0: "no", 1: "yes"})
    ),
    "span": BertForQuestionAnswering(BertConfig(**TINY)),
    "pooled": BertModel(BertConfig(**TINY)),
    "roformer": RoFormerForMaskedLM(RoFormerConfig(**TINY, embedding_size=16)),
    "modernbert": ModernBertForMaskedLM(
        ModernBertConfig(**TINY, local_attention=8, pad_token_id=0, tie_word_embeddings=True)
    ),
    "modernbert labels": ModernBertForSequenceClassification(
        ModernBertConfig(**TINY, local_attention=8, pad_token_id=0, num_labels=3)
    ),
}
SMALL = {
    "encoder.hidden_size": 16,
    "encoder.num_layers": 2,
    "encoder.num_heads": 2,
    "train.steps": 2,
    "train.batch_size": 4,
    "train.evaluation_tokens": 500,
    "data.max_length": 16,
}


def round_trip(model: Any, tmp_path: Path) -> Exported:
    """Import, export, import again; the weights and what decides the outputs must be as before."""
    model.eval().save_pretrained(tmp_path / "theirs")
    import_checkpoint(tmp_path / "theirs", tmp_path / "ours", overrides=[LENGTH])
    done = export_run(tmp_path / "ours", tmp_path / "out")
    first = posattn.from_pretrained(tmp_path / "ours")
    again = posattn.from_pretrained(tmp_path / "out", overrides=[LENGTH])
    assert again.recipe.encoder == first.recipe.encoder
    assert again.report.labels == first.report.labels or not first.report.tasks
    tensors = again.tensors()
    assert tensors.keys() == first.tensors().keys()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in first.tensors().items())
    return done


@pytest.mark.parametrize(
    "kind",
    [kind for kind in KINDS if kind not in ("xlm-roberta", "deberta v2, narrow table, clipped")],
)
def test_masked_language_models_of_every_family_go_out_as_they_came_in(
    kind: str, tmp_path: Path
) -> None:
    model = made(KINDS[kind])
    done = round_trip(model, tmp_path)
    assert not done.needs_posattn
    assert done.architecture == type(model).__name__
    assert max(done.differences.values()) < 1e-5
    loaded = AutoModelForMaskedLM.from_pretrained(tmp_path / "out").eval()
    given = sample(7)
    with torch.no_grad():
        one, other = (m(given.ids, given.visible.long()).logits for m in (model, loaded))
    assert torch.equal(one[given.visible], other[given.visible])


@pytest.mark.parametrize("head", HEADS)
def test_heads_go_out_as_they_came_in(head: str, tmp_path: Path) -> None:
    done = round_trip(HEADS[head], tmp_path)
    assert (done.architecture, done.needs_posattn) == (type(HEADS[head]).__name__, False)


def test_a_sentence_encoder_keeps_its_pooling(tmp_path: Path) -> None:
    sentence_encoder(tmp_path / "theirs", {"pooling_mode": "mean"})
    import_checkpoint(tmp_path / "theirs", tmp_path / "ours", overrides=[LENGTH])
    assert export_run(tmp_path / "ours", tmp_path / "out").architecture == "BertModel"
    first, again = (posattn.from_pretrained(tmp_path / name) for name in ("theirs", "out"))
    assert again.heads() == first.heads()
    assert torch.equal(again.embed(["a b", "the"]), first.embed(["a b", "the"]))


def run(tmp_path: Path, recipe: str, **options: Any) -> Path:
    """Two steps of training."""
    train_recipe(load_recipe(recipe, {**SMALL, **options}), tmp_path / "run")
    return tmp_path / "run"


POST: dict[str, Any] = {"encoder.norm.placement": "post"}


@pytest.mark.parametrize(
    ("recipe", "options", "architecture"),
    [
        ("quick/learned", POST, "BertForMaskedLM"),
        ("quick/disentangled", POST, "DebertaV2ForMaskedLM"),
        ("quick/rope", {**POST, "encoder.mechanism.layout": "interleaved"}, "RoFormerForMaskedLM"),
    ],
)
def test_a_run_whose_form_transformers_has_needs_no_posattn(
    recipe: str, options: dict[str, Any], architecture: str, tmp_path: Path
) -> None:
    folder = run(tmp_path, recipe, **options)
    shown = CliRunner().invoke(
        app, ["export", str(folder), "--hf", str(tmp_path / "out"), "--json"]
    )
    record = json.loads(shown.stdout)
    assert (record["architecture"], record["needs_posattn"]) == (architecture, False)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["architectures"] == [architecture]
    assert "posattn" not in (tmp_path / "out" / "config.json").read_text()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    ids = tokenizer("To be", return_tensors="pt")["input_ids"]
    assert ids[0, 0] == tokenizer.cls_token_id == config["cls_token_id"]
    assert ids[0, -1] == tokenizer.sep_token_id
    assert tokenizer.decode(ids[0, 1:-1]).replace(" ", "") == "Tobe"
    ours = posattn.from_pretrained(folder / "final")
    assert ours.masked_lm is not None
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "out").eval()
    with torch.no_grad():
        found, expected = model(ids).logits, ours.masked_lm(ids).logits
    assert torch.allclose(found, expected, atol=1e-5)


def test_the_model_card_tells_architecture_text_seed_scores_and_limits(tmp_path: Path) -> None:
    folder = run(tmp_path, "quick/learned", **POST, **{"train.seed": 3})
    study = tmp_path / "study" / "runs" / "learned"
    study.mkdir(parents=True)
    folder = folder.rename(study / "seed-3")
    validation = {"loss": 2.5, "accuracy": 0.25, "targets": 1234, "tokens": 9000}
    (folder / "evaluations.json").write_text(json.dumps({"validation": validation}))
    contrast = {"metric": "validation_loss", "first": "learned", "second": "rope"}
    results = {
        "study": {"primary": "validation_loss"},
        "arms": [
            {
                "name": "learned",
                "scores": {"validation_loss": {"summary": {"n": 3, "mean": 2.4, "sd": 0.1}}},
            }
        ],
        "contrasts": [
            {**contrast, "difference": {"n": 3, "mean": 0.5, "sd": 0.1, "low": 0.4, "high": 0.6}},
            {**contrast, "metric": "accuracy", "difference": {"n": 3, "mean": 9.0}},
        ],
        "limits": ["Three seeds cannot go far."],
    }
    (tmp_path / "study" / "results.json").write_text(json.dumps(results))
    export_run(folder, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    for text in (
        "AutoModelForMaskedLM.from_pretrained",
        "| mechanism | name | learned |",
        "Licence: ",
        "tokens for training and",
        "Seed 3; state: finished",
        "loss 2.5000, accuracy 0.2500, 1,234 masked tokens",
        "validation loss, this arm over seeds: 2.4000, standard deviation 0.1000, 3 seeds",
        "learned minus rope, over paired seeds: 0.5000, 95 % interval [0.4000, 0.6000], 3 seeds",
        "Three seeds cannot go far.",
    ):
        assert text in card
    assert "9.0000" not in card


@pytest.mark.parametrize("recipe", ["quick/alibi", "quick/disentangled_emd"])
def test_a_form_that_transformers_lacks_loads_with_posattn_by_both_ways(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = run(tmp_path, recipe), tmp_path / "out"
    done = export_run(folder, out)
    assert done.needs_posattn
    assert any("encoder.norm.placement is pre, and there post" in text for text in done.reasons)
    first, again = posattn.from_pretrained(folder / "final"), posattn.from_pretrained(out)
    assert again.recipe.encoder == first.recipe.encoder
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: str(out))
    assert posattn.from_pretrained("someone/model").recipe.encoder == first.recipe.encoder
    ids = torch.randint(5, 20, (2, 9))
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    assert first.masked_lm is not None
    expected = first.masked_lm(ids, visible=mask.bool()).logits
    model = AutoModelForMaskedLM.from_pretrained(out, trust_remote_code=True)
    assert torch.equal(model(ids, attention_mask=mask).logits, expected)
    labels = ids.masked_fill(mask == 0, -100)
    model(ids, attention_mask=mask, labels=labels).loss.backward()
    bare = AutoModel.from_pretrained(out, trust_remote_code=True)
    states = bare(ids, attention_mask=mask).last_hidden_state
    assert torch.equal(states, first.encoder(ids, visible=mask.bool()))
    model.save_pretrained(tmp_path / "saved")
    assert type(model).from_pretrained(tmp_path / "saved").dtype == torch.float32
    assert AutoTokenizer.from_pretrained(out).mask_token == "[MASK]"
    assert "The package `posattn` must be installed" in (out / "README.md").read_text()


def test_the_encoder_alone_has_a_home_where_its_decoder_has_none(tmp_path: Path) -> None:
    folder, out = run(tmp_path, "quick/disentangled_emd", **POST), tmp_path / "out"
    words = ["export", str(folder), "--hf", str(out), "--encoder-only"]
    shown = CliRunner().invoke(app, words)
    assert "DebertaV2Model of transformers; largest difference" in shown.stdout
    ids = torch.randint(5, 20, (2, 9))
    model = AutoModel.from_pretrained(out).eval()
    expected = posattn.from_pretrained(folder / "final").encoder(ids)
    assert torch.allclose(model(ids).last_hidden_state, expected, atol=1e-5)


def test_nothing_is_written_where_outputs_differ(tmp_path: Path) -> None:
    made(KINDS["deberta v3"]).save_pretrained(tmp_path / "theirs")
    import_checkpoint(tmp_path / "theirs", tmp_path / "ours", overrides=["data.max_length=64"])
    with pytest.raises(CheckpointError, match=r"gives other outputs .*beyond: growing"):
        export_run(tmp_path / "ours", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    option = ["encoder.mechanism.buckets.beyond=growing", "data.max_length=64"]
    import_checkpoint(tmp_path / "theirs", tmp_path / "as theirs", overrides=option)
    done = export_run(tmp_path / "as theirs", tmp_path / "out")
    assert max(done.differences.values()) < 1e-5
    assert any("beyond is growing, and there held" in note for note in done.notes)


def test_what_cannot_be_exported_is_named_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with pytest.raises(RecipeError, match="is not empty"):
        export_run(tmp_path, tmp_path / "full")
    with pytest.raises(CheckpointError, match="is no folder"):
        export_run(tmp_path / "nowhere", tmp_path / "out")
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "status.json").write_text("{}")
    with pytest.raises(CheckpointError, match="did not finish"):
        export_run(tmp_path / "begun", tmp_path / "out")
    assert not (tmp_path / "out").exists()
