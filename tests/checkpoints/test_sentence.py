"""Sentence encoders and tokenizers: texts in, vectors out, as the files beside the weights say."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional
from transformers import BertModel, BertTokenizerFast, RobertaTokenizerFast

from posattn.checkpoints import from_pretrained, import_checkpoint
from posattn.checkpoints.source import open_source
from posattn.checkpoints.tokenizer import find_tokenizer
from posattn.errors import CheckpointError, DataError, IncompatibleParts, UnknownName

from .originals import KINDS, TOLERANCE, gap, made

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##d", "cat", "sat", "."]
TEXTS = ["A cat sat.", "b", "cat cat cat cat cat cat cat cat cat cat", "cd zebra"]
MODULES = ("Transformer", "Pooling", "Normalize")


def sentence_encoder(
    folder: Path, pooling: dict[str, Any], modules: tuple[str, ...] = MODULES, limit: int = 8
) -> Any:
    """Write a sentence encoder as sentence-transformers does; return its BERT."""
    model = made(KINDS["bert"], model=BertModel)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    listed = [
        {
            "idx": n,
            "path": f"{n}_{kind}" if n else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for n, kind in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": limit}))
    return model


@torch.no_grad()
@pytest.mark.parametrize(
    ("pooling", "normalize"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, True),
        ({"pooling_mode_cls_token": True}, False),
        ({"pooling_mode": "max"}, True),
    ],
)
def test_embeddings_equal_those_of_transformers_with_the_pooling_of_the_files(
    pooling: dict[str, Any], normalize: bool, tmp_path: Path
) -> None:
    modules = MODULES if normalize else MODULES[:2]
    model = sentence_encoder(tmp_path / "theirs", pooling, modules)
    import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    tokenizer = BertTokenizerFast(str(tmp_path / "theirs" / "vocab.txt"))
    given = tokenizer(TEXTS, padding=True, truncation=True, max_length=8, return_tensors="pt")
    states = model(**given).last_hidden_state
    mask = given["attention_mask"][:, :, None].bool()
    if pooling.get("pooling_mode_cls_token"):
        expected = states[:, 0]
    elif pooling.get("pooling_mode") == "max":
        expected = states.masked_fill(~mask, -torch.inf).amax(1)
    else:
        expected = (states * mask).sum(1) / mask.sum(1)
    if normalize:
        expected = functional.normalize(expected, dim=-1)
    for folder in ("theirs", "ours"):
        found = from_pretrained(tmp_path / folder)
        assert torch.equal(found.encode(TEXTS).ids, given["input_ids"])
        assert gap(found.embed(TEXTS, batch_size=3), expected) <= TOLERANCE
    assert found.embed([]).shape == (0, 24)
    found.tasks.train()
    assert gap(found.embed(TEXTS), expected) <= TOLERANCE  # without dropout,
    assert found.tasks.training  # and afterwards as before


@pytest.mark.parametrize(
    ("pooling", "modules", "problem"),
    [
        ({"pooling_mode_mean_sqrt_len_tokens": True}, MODULES, "pools by pooling_mode_mean_sqrt"),
        (
            {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True},
            MODULES,
            "pooling_mode_mean_tokens, pooling_mode_max_tokens",
        ),
        ({"pooling_mode_mean_tokens": True}, (*MODULES[:2], "Dense"), "it has Dense"),
        ({}, MODULES[:1], "it has no Pooling"),
    ],
)
def test_pooling_that_is_not_computed_here_is_said_and_gives_no_embeddings(
    pooling: dict[str, Any], modules: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    sentence_encoder(tmp_path / "theirs", pooling, modules)
    found = from_pretrained(tmp_path / "theirs")
    assert any(problem in note for note in found.report.notes)
    with pytest.raises(UnknownName, match=r"no head 'sentence' \(it has: pooled\)"):
        found.embed(["a"])
    assert found.embed(["a"], task="pooled").shape == (1, 24)


def test_pairs_get_segments_and_texts_are_cut_to_what_the_model_takes(tmp_path: Path) -> None:
    sentence_encoder(tmp_path / "theirs", {"pooling_mode": "mean"}, limit=100)
    found = from_pretrained(tmp_path / "theirs")
    batch = found.encode(["a b", "a"], ["c", "c c c"])
    assert batch.segments is not None
    assert batch.segments.tolist() == [[0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1, 1]]
    assert batch.visible.sum(1).tolist() == [6, 7]
    assert found.encode(["a " * 99]).ids.shape == (1, 24)  # the position table's length


def test_a_head_without_a_vector_cannot_embed(tmp_path: Path) -> None:
    from transformers import BertForTokenClassification

    made(KINDS["bert"], model=BertForTokenClassification).save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    found = from_pretrained(tmp_path / "theirs")
    with pytest.raises(IncompatibleParts, match="'token' gives no vector per text"):
        found.embed(["a"], task="token")


def test_without_a_tokenizer_weights_load_and_texts_are_an_error(tmp_path: Path) -> None:
    made(KINDS["bert"]).save_pretrained(tmp_path / "theirs")
    report = import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    assert any("no tokenizer file" in note for note in report.notes)
    with pytest.raises(DataError, match="came without a tokenizer"):
        from_pretrained(tmp_path / "ours").embed(["a"])


def test_a_tokenizer_of_two_files_is_robertas(tmp_path: Path) -> None:
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    letters = [*specials, "a", "b", "c", "Ġ", "ab", "Ġc"]
    folder = tmp_path / "roberta"
    made(KINDS["roberta"]).save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps({token: n for n, token in enumerate(letters)}))
    (folder / "merges.txt").write_text("#version: 0.2\na b\nĠ c\n")
    theirs = RobertaTokenizerFast.from_pretrained(folder)
    found = from_pretrained(folder)
    assert found.report.tokenizer.file == "vocab.json, merges.txt"
    for text in ("ab c", "cab<mask>"):
        assert found.encode([text]).ids[0].tolist() == theirs(text)["input_ids"]
    assert found.encode(["ab"], ["c"]).ids[0].tolist() == theirs("ab", "c")["input_ids"]


def test_tokenizer_files_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    made(KINDS["bert"]).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(CheckpointError, match=r"has no '\[SEP\]'"):
        find_tokenizer(open_source(tmp_path))
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"is not a tokenizer\.json"):
        find_tokenizer(open_source(tmp_path))
