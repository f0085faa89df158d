import json
from pathlib import Path

import numpy as np
import pytest

from posattn.training.text.store import PartWriter, open_part, seal, store_problem, token_dtype


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    dtype = token_dtype(300)
    with PartWriter(folder, "train", dtype, separator=3) as train:
        train.add([5, 6])
        train.add([299])
        train.end_document()
        train.end_document()
        train.add([])
        train.end_document()
        train.add([7])
        train.end_document()
    with PartWriter(folder, "validation", dtype, separator=3):
        pass
    seal(folder, dtype)
    assert (train.tokens, train.documents) == (4, 2)
    return folder


def test_documents_follow_each_other_with_a_separator_after_each(store: Path) -> None:
    tokens, offsets = open_part(store, "train")
    assert tokens.tolist() == [5, 6, 299, 3, 7, 3]
    assert offsets.tolist() == [0, 4, 6]
    assert isinstance(tokens, np.memmap)
    assert not tokens.flags.writeable


def test_a_part_may_be_empty(store: Path) -> None:
    tokens, offsets = open_part(store, "validation")
    assert len(tokens) == 0
    assert offsets.tolist() == [0]


def test_ids_are_as_small_as_they_can_be() -> None:
    assert token_dtype(1 << 16) == np.uint16
    assert token_dtype((1 << 16) + 1) == np.uint32


def test_a_whole_store_has_no_problem(store: Path) -> None:
    assert store_problem(store) is None


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("train.tokens", b"", "has 0 bytes, expected 12"),
        ("train.tokens", bytes(12), "the checksum of train.tokens does not fit"),
        ("train.offsets", None, "FileNotFoundError"),
        ("store.json", None, "FileNotFoundError"),
        ("store.json", b"{", "JSONDecodeError"),
        ("store.json", b"[]", "TypeError"),
        ("store.json", b'{"files": 3}', "AttributeError"),
    ],
)
def test_damage_is_named(store: Path, name: str, content: bytes | None, problem: str) -> None:
    if content is None:
        (store / name).unlink()
    else:
        (store / name).write_bytes(content)
    assert problem in str(store_problem(store))


def test_the_manifest_is_plain_json(store: Path) -> None:
    manifest = json.loads((store / "store.json").read_text())
    assert set(manifest["files"]) == {
        "train.tokens",
        "train.offsets",
        "validation.tokens",
        "validation.offsets",
    }
