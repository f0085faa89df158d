import json
from hashlib import sha256
from pathlib import Path

import pytest
from pydantic import ValidationError

from posattn.cache import silent
from posattn.errors import DataError
from posattn.training.text.corpora.files import FilesConfig, FilesCorpus


def corpus_of(*paths: Path | str, **options: object) -> FilesCorpus:
    given = {"name": "files", "paths": [str(path) for path in paths], **options}
    return FilesCorpus(FilesConfig.model_validate(given))


def names(corpus: FilesCorpus) -> list[str]:
    return [Path(file.name).name for file in corpus.source(silent).files]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """b.txt, a.jsonl, sub/c.txt, a hidden file, and a kind that is not text."""
    root = tmp_path / "mit Leerzeichen und ü"
    (root / "sub").mkdir(parents=True)
    (root / "b.txt").write_text("text of b")
    (root / "a.jsonl").write_text(json.dumps({"text": "text of a"}) + "\n")
    (root / "sub" / "c.TXT").write_text("text of c")
    (root / ".hidden.txt").write_text("no")
    (root / "image.png").write_bytes(b"\x89PNG")
    return root


def test_a_folder_is_read_by_name_with_all_below_it(folder: Path) -> None:
    corpus = corpus_of(folder)
    assert names(corpus) == ["a.jsonl", "b.txt", "c.TXT"]
    assert [piece.text for piece in corpus.pieces()] == ["text of a", "text of b", "text of c"]
    assert [piece.source for piece in corpus.pieces()] == [0, 1, 2]


def test_files_globs_and_folders_are_read_in_the_order_given_and_once(folder: Path) -> None:
    assert names(corpus_of(folder / "b.txt", folder)) == ["b.txt", "a.jsonl", "c.TXT"]
    assert names(corpus_of(folder / "**" / "*.TXT", folder / "*.jsonl")) == ["c.TXT", "a.jsonl"]
    link = folder.parent / "link.txt"
    link.symlink_to(folder / "b.txt")
    assert names(corpus_of(link, folder / "b.txt")) == ["link.txt"]


def test_the_checksums_are_those_of_the_bytes_wherever_the_files_lie(folder: Path) -> None:
    first = corpus_of(folder / "b.txt").source(silent).files[0]
    assert (first.sha256, first.bytes) == (sha256(b"text of b").hexdigest(), 9)
    elsewhere = folder.parent / "other"
    elsewhere.symlink_to(folder)
    assert corpus_of(elsewhere / "b.txt").source(silent).files[0].sha256 == first.sha256


def test_the_current_folder_plays_no_part_in_absolute_paths(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = corpus_of(folder)
    before = corpus.source(silent)
    for place in (folder, folder / "sub", Path("/")):
        monkeypatch.chdir(place)
        assert corpus_of(folder).source(silent) == before


def test_a_missing_path_is_named_with_what_is_there(folder: Path) -> None:
    with pytest.raises(DataError, match=r"no such file.*missing\.txt.*holds: .*a\.jsonl, b\.txt"):
        names(corpus_of(folder / "missing.txt"))
    with pytest.raises(DataError, match=r"no such file, folder or glob: .*\*\.csv"):
        names(corpus_of(folder / "*.csv"))


def test_other_kinds_and_empty_folders_are_named(folder: Path) -> None:
    with pytest.raises(
        DataError, match=r"image\.png: cannot read a '\.png' file; known kinds: \.txt"
    ):
        names(corpus_of(folder / "image.png"))
    (folder / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty holds no text file"):
        names(corpus_of(folder / "empty"))


def test_no_paths_at_all_is_refused_by_the_recipe() -> None:
    with pytest.raises(ValidationError, match="at least 1"):
        FilesConfig.model_validate({"name": "files", "paths": []})


def test_licence_and_attribution_are_passed_on(folder: Path) -> None:
    source = corpus_of(folder, licence="CC0", attribution="me").source(silent)
    assert (source.licence, source.attribution) == ("CC0", "me")
