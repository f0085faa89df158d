import json
from pathlib import Path

import pytest

from posattn.cache import silent
from posattn.errors import DataError
from posattn.training.text.corpora.hub import HubConfig, HubCorpus

ROWS = [{"body": "first\r\nrow", "n": 1}, {"body": None, "n": 2}, {"body": "third", "n": 3}]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A local folder that `datasets` loads without the network."""
    folder = tmp_path / "dataset"
    folder.mkdir()
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    (folder / "train.jsonl").write_text(lines)
    return folder


def corpus_of(dataset: Path | str, **options: object) -> HubCorpus:
    given = {"name": "hub", "dataset": str(dataset), "text_field": "body", **options}
    return HubCorpus(HubConfig.model_validate(given))


@pytest.mark.parametrize("streaming", [False, True])
def test_the_rows_of_a_dataset_are_read(dataset: Path, streaming: bool) -> None:
    corpus = corpus_of(dataset, streaming=streaming)
    source = corpus.source(silent)
    assert "3 rows" in source.origin
    assert [piece.text for piece in corpus.pieces()] == ["first\nrow", "", "third"]


@pytest.mark.parametrize("streaming", [False, True])
def test_the_number_of_rows_can_be_limited(dataset: Path, streaming: bool) -> None:
    corpus = corpus_of(dataset, streaming=streaming, limit_documents=2)
    corpus.source(silent)
    assert len(list(corpus.pieces())) == 2


def test_streaming_and_downloading_give_the_same_text(dataset: Path, posattn_cache: Path) -> None:
    first = corpus_of(dataset).source(silent)
    assert corpus_of(dataset, streaming=True).source(silent) == first
    assert len(list(posattn_cache.rglob("*.parquet"))) == 1


def test_a_changed_local_dataset_is_read_anew(dataset: Path) -> None:
    corpus = corpus_of(dataset)
    first = corpus.source(silent)
    with (dataset / "train.jsonl").open("a") as file:
        file.write(json.dumps({"body": "fourth", "n": 4}) + "\n")
    second = corpus.source(silent)
    assert second.files[0].sha256 != first.files[0].sha256
    assert [piece.text for piece in corpus.pieces()][-1] == "fourth"


def test_a_copy_that_was_damaged_is_made_again(dataset: Path, posattn_cache: Path) -> None:
    corpus = corpus_of(dataset)
    first = corpus.source(silent)
    next(posattn_cache.rglob("*.parquet")).write_bytes(b"broken")
    with pytest.warns(UserWarning, match="changed since it was copied"):
        assert corpus.source(silent) == first


def test_a_wrong_field_is_named_with_the_fields_there_are(dataset: Path) -> None:
    with pytest.raises(DataError, match=r"no field 'text' \(found: body, n\); set text_field"):
        corpus_of(dataset, text_field="text").source(silent)
    with pytest.raises(DataError, match=r"field 'n' .*row 0, is int, expected text"):
        corpus_of(dataset, text_field="n").source(silent)


def test_a_wrong_split_and_a_missing_dataset_are_named(dataset: Path) -> None:
    with pytest.raises(DataError, match=r"cannot load the dataset .*split 'test'"):
        corpus_of(dataset, split="test").source(silent)
    with pytest.raises(DataError, match=r"cannot load the dataset 'nobody/nothing'.*network"):
        corpus_of("nobody/nothing").source(silent)


def test_a_name_that_is_also_a_folder_is_refused(
    dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(dataset.parent)
    with pytest.raises(DataError, match=r"write \./dataset for the folder"):
        corpus_of("dataset").source(silent)
