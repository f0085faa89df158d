"""Faults that conversions of checkpoints are known for (C-1 to C-10), each as a test."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertForPreTraining

from posattn.checkpoints import from_pretrained, import_checkpoint
from posattn.checkpoints.families import Bert
from posattn.cli.main import run
from posattn.errors import CheckpointError
from posattn.recipe.run import train_recipe
from posattn.recipe.schema import load_recipe
from posattn.training.batches import BatchStream
from posattn.training.text.prepare import prepare

from . import microsoft
from .originals import KINDS, TOLERANCE, gap, made, sample, through_our_hands


def changed(folder: Path, **tensors: torch.Tensor | None) -> None:
    """Replace, add or (None) delete tensors of a saved checkpoint; `__` in a name is a dot."""
    stored = load_file(folder / "model.safetensors")
    for name, tensor in tensors.items():
        dotted = name.replace("__", ".")
        stored.pop(dotted, None)
        if tensor is not None:
            stored[dotted] = tensor
    save_file(stored, folder / "model.safetensors")


def with_config(folder: Path, **options: Any) -> None:
    """Change config.json of a saved checkpoint."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | options))


@torch.no_grad()
def test_c1_the_original_naming_loses_no_head_and_keeps_the_mask_decoder(tmp_path: Path) -> None:
    model, table = microsoft.write(tmp_path / "theirs")
    ids, visible, _ = sample(9)
    outputs = []
    for name in ("first", "second"):
        report = import_checkpoint(tmp_path / "theirs", tmp_path / name)
        assert (report.unused, report.new) == ((), ())
        found = from_pretrained(tmp_path / name)
        assert found.recipe.decoder.name == "emd"
        assert found.masked_lm is not None
        outputs.append(found.masked_lm(ids, visible=visible).logits)
    assert torch.equal(*outputs)
    by_hand = microsoft.logits(model, table, ids, visible.long())
    assert gap(outputs[0], by_hand, visible) <= TOLERANCE


@torch.no_grad()
def test_c1_without_the_mask_decoder_logits_are_those_of_transformers(tmp_path: Path) -> None:
    model, _ = microsoft.write(tmp_path / "theirs")
    with pytest.raises(CheckpointError, match=r"unused: deberta\.embeddings\.position_embeddings"):
        from_pretrained(tmp_path / "theirs", overrides=["decoder=plain"])
    found = from_pretrained(
        tmp_path / "theirs",
        overrides=["decoder=plain"],
        accept_unused=["*position_embeddings*"],
    )
    assert found.masked_lm is not None
    ids, visible, _ = sample(9)
    theirs = model(ids, attention_mask=visible.long()).logits
    assert gap(found.masked_lm(ids, visible=visible).logits, theirs, visible) <= TOLERANCE


def test_c1_a_head_that_is_promised_and_not_stored_is_an_error(tmp_path: Path) -> None:
    made(KINDS["bert"]).save_pretrained(tmp_path / "theirs")
    changed(tmp_path / "theirs", cls__predictions__bias=None)
    with pytest.raises(CheckpointError, match=r"not stored: head\.output\.bias"):
        import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()
    accepted = import_checkpoint(tmp_path / "theirs", tmp_path / "ours", accept_new=["head.*bias"])
    assert accepted.new == ("head.output.bias",)


def test_c2_fused_projections_are_split_per_head(tmp_path: Path) -> None:
    original = made(KINDS["deberta"], hidden_size=8, num_attention_heads=2)
    found = through_our_hands(original, tmp_path)
    fused = original.deberta.encoder.layer[0].attention.self.in_proj.weight
    attention = found.encoder.layers[0].attention
    assert attention.key_proj.bias is None
    rows = {name: getattr(attention, f"{name}_proj").weight for name in ("query", "key", "value")}
    assert torch.equal(rows["query"][:4], fused[:4])  # head 0
    assert torch.equal(rows["query"][4:], fused[12:16])  # head 1
    assert torch.equal(rows["key"][:4], fused[4:8])
    assert torch.equal(rows["value"][4:], fused[20:])


def test_c4_derived_buffers_come_and_go_and_anything_else_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    made(KINDS["bert"]).save_pretrained(folder)
    without = from_pretrained(folder)
    assert not any("position_ids" in note for note in without.report.notes)
    changed(folder, bert__embeddings__position_ids=torch.arange(512)[None])
    with_buffer = from_pretrained(folder)
    assert any("embeddings.position_ids" in note for note in with_buffer.report.notes)
    changed(folder, bert__encoder__layer__9__extra=torch.zeros(3))
    with pytest.raises(CheckpointError, match=r"unused: bert\.encoder\.layer\.9\.extra"):
        from_pretrained(folder)
    accepted = from_pretrained(folder, accept_unused=["*.extra"])
    assert accepted.report.unused == ("bert.encoder.layer.9.extra",)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_c5_tied_weights_are_one_copy_on_disk_and_one_storage_in_memory(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    original = made(KINDS["bert"], vocab_size=3000)
    found = through_our_hands(original.to(dtype), tmp_path)
    model = found.masked_lm
    assert model is not None
    tokens = model.encoder.tokens.weight
    assert model.head.output.weight.data_ptr() == tokens.data_ptr()
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == sum(parameter.numel() for parameter in original.parameters())
    size = (tmp_path / "ours" / "model.safetensors").stat().st_size
    assert size < 1.1 * 4 * count
    before = tokens.detach().clone()
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
    ids = torch.ones(1, 4, dtype=torch.long)
    model(ids, segments=torch.zeros_like(ids)).logits.sum().backward()
    optimizer.step()
    assert not torch.equal(tokens, before)


def test_c5_output_weights_that_are_not_tied_are_refused(tmp_path: Path) -> None:
    original = made(KINDS["bert"])
    original.save_pretrained(tmp_path / "theirs")
    decoder = torch.zeros_like(original.bert.embeddings.word_embeddings.weight)
    changed(tmp_path / "theirs", cls__predictions__decoder__weight=decoder)
    with pytest.raises(CheckpointError, match=r"decoder\.weight.* untied weights cannot"):
        from_pretrained(tmp_path / "theirs")


def test_c6_custom_code_is_refused_and_never_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "theirs"
    made(KINDS["bert"]).save_pretrained(folder)
    changed(folder, bert__embeddings__position_embeddings__weight=None)
    (folder / "modeling_trap.py").write_text("raise SystemExit('executed')\n")
    with_config(folder, auto_map={"AutoModel": "someone/repo--modeling_trap.TrapModel"})
    with pytest.raises(SystemExit) as end:
        run(["import", str(folder), "--out", str(tmp_path / "ours")])
    said = capsys.readouterr().err
    assert end.value.code == 4
    assert "auto_map" in said
    assert "modeling_trap.TrapModel" in said
    assert not (tmp_path / "ours").exists()
    assert "modeling_trap" not in sys.modules


@pytest.mark.parametrize("claimed", [True, False], ids=["claimed", "one class more"])
def test_c6_a_family_may_claim_exactly_the_custom_classes_it_computes(
    claimed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(KINDS["bert"]).save_pretrained(tmp_path / "theirs")
    names = {"AutoConfig": "c.TheirConfig", "AutoModel": "them/repo--m.TheirModel"}
    more = {} if claimed else {"AutoModelForMaskedLM": "m.Another"}
    with_config(tmp_path / "theirs", auto_map={**names, **more})
    monkeypatch.setattr(Bert, "custom_classes", frozenset({"c.TheirConfig", "m.TheirModel"}))
    if claimed:
        assert from_pretrained(tmp_path / "theirs").report.family == "bert"
    else:
        with pytest.raises(CheckpointError, match=r"auto_map.*m\.Another"):
            from_pretrained(tmp_path / "theirs")


@torch.no_grad()
def test_the_old_names_of_norms_and_heads_beside_the_promised_one_come_along(
    tmp_path: Path,
) -> None:
    original = made(KINDS["bert"], model=BertForPreTraining)
    original.save_pretrained(tmp_path / "theirs")
    path = tmp_path / "theirs" / "model.safetensors"
    norms = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    renamed = {}
    for name, tensor in load_file(path).items():
        for new, old in norms.items():
            name = name.replace(new, old)
        renamed[name] = tensor
    assert any(name.endswith("gamma") for name in renamed)
    save_file(renamed, path)
    with_config(tmp_path / "theirs", architectures=["BertForMaskedLM"])
    found = from_pretrained(tmp_path / "theirs")
    assert list(found.tasks.tasks) == ["next_sentence"]
    ids, visible, segments = sample(7)
    assert found.masked_lm is not None
    ours = found.masked_lm(ids, visible=visible, segments=segments).logits
    theirs = original(ids, attention_mask=visible.long(), token_type_ids=segments)
    assert gap(ours, theirs.prediction_logits, visible) <= TOLERANCE


def padded_vocabulary(folder: Path) -> None:
    """Write a tokenizer of 33 ids, without a limit of its own, for a table of 40 rows."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(28))]
    tokens = {word: index for index, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(tokens, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(words[:5])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"model_max_length": 1e30, "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def test_c7_rows_are_kept_random_tokens_are_real_and_a_sentinel_is_no_length(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "theirs"
    made(KINDS["deberta v3"], vocab_size=40).save_pretrained(folder)
    padded_vocabulary(folder)
    report = import_checkpoint(folder, tmp_path / "ours")
    assert report.tokenizer.max_length is None
    (tmp_path / "text.txt").write_text(" ".join(f"w{n % 28}" for n in range(5000)))
    corpus = {"name": "files", "paths": [str(tmp_path / "text.txt")]}
    recipe = load_recipe(
        tmp_path / "ours" / "recipe.yaml",
        {"data.corpus": corpus, "data.max_length": 64, "train.steps": 2, "train.batch_size": 2}
        | {"objective.random": 1.0, "objective.mask": 0.0, "objective.keep": 0.0}
        | {"objective.probability": 1.0, "data.validation_fraction": 0.2},
    )
    prepared = prepare(recipe.data)
    stream = BatchStream(prepared.train, recipe.objective, batch_size=8, seed=0, workers=0)
    seen = [next(stream.from_position(epoch, 0)) for epoch in range(210)]
    replaced = torch.cat([batch.ids[batch.selected] for batch in seen])
    assert len(replaced) >= 1e5
    assert int(replaced.max()) == 32
    assert max(batch.ids.shape[1] for batch in seen) == 64
    result = train_recipe(recipe, tmp_path / "run")
    again = from_pretrained(result.folder / "final")
    assert again.encoder.tokens.num_embeddings == 40


def test_c7_a_tokenizer_that_knows_more_than_the_table_has_is_refused(tmp_path: Path) -> None:
    made(KINDS["bert"]).save_pretrained(tmp_path / "theirs")  # 31 rows
    padded_vocabulary(tmp_path / "theirs")
    with pytest.raises(CheckpointError, match="ids up to 32, but the token table has 31 rows"):
        import_checkpoint(tmp_path / "theirs", tmp_path / "ours")


@torch.no_grad()
def test_c8_pairs_use_the_segment_table_and_its_absence_is_accepted(tmp_path: Path) -> None:
    found = through_our_hands(made(KINDS["bert"]), tmp_path / "two")
    ids, visible, segments = sample(7)
    model = found.encoder
    before = model(ids, visible=visible, segments=segments)
    model.segments.weight.copy_(model.segments.weight.flip(0))
    assert gap(before, model(ids, visible=visible, segments=segments), visible) > 1e-2
    without = through_our_hands(made(KINDS["deberta v3"]), tmp_path / "none").encoder
    assert torch.equal(
        without(ids, visible=visible), without(ids, visible=visible, segments=segments)
    )


@torch.no_grad()
@pytest.mark.parametrize("stored", [True, False], ids=["stored shared", "stored own"])
@pytest.mark.parametrize("flag", [True, False], ids=["flag shared", "flag own"])
def test_c9_flag_and_tensors_of_position_projections_must_agree(
    flag: bool, stored: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "theirs"
    made(KINDS["deberta v3"], share_att_key=stored).save_pretrained(folder)
    with_config(folder, share_att_key=flag)
    if flag == stored:
        found = from_pretrained(folder)
        assert found.encoder.position.mechanisms["disentangled"].table_norm is not None
        return
    named = "position_key_proj" if stored else r"attention\.self\.pos_key_proj"
    with pytest.raises(CheckpointError, match=named):
        from_pretrained(folder)


@torch.no_grad()
def test_c9_shared_projections_serve_content_and_position(tmp_path: Path) -> None:
    model = through_our_hands(made(KINDS["deberta v3"]), tmp_path).masked_lm
    assert model is not None
    ids = sample(7).ids[:1]
    before = model.score_terms(ids)[0]
    model.encoder.layers[0].attention.query_proj.weight.add_(0.1)
    after = model.score_terms(ids)[0]
    assert all(gap(before[term], after[term]) > 1e-3 for term in ("c2c", "c2p", "p2c"))


def test_c10_no_weight_depends_on_the_length_of_the_text(tmp_path: Path) -> None:
    names = []
    for length in (16, 40):
        options = {"max_position_embeddings": length, "max_relative_positions": 40}
        folder = tmp_path / str(length)
        found = through_our_hands(made(KINDS["deberta v3"], **options), folder)
        names.append({name: tuple(tensor.shape) for name, tensor in found.tensors().items()})
    assert names[0] == names[1]
