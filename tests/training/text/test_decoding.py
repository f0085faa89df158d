import codecs
from pathlib import Path

import pytest

from posattn.errors import DataError
from posattn.training.text import decoding
from posattn.training.text.decoding import clean_text, text_blocks, text_lines


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    return path


def whole(path: Path, policy: decoding.Policy = "fail") -> str:
    return "".join(block.text for block in text_blocks(path, policy))


@pytest.fixture(params=[1, 2, 3, 5, 1 << 20])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Read in blocks that cut through characters, line ends and marks."""
    size: int = request.param
    monkeypatch.setattr(decoding, "_BLOCK", max(size, 4) if size < 4 else size)
    return size


def test_one_leading_mark_is_removed_and_others_are_kept(tmp_path: Path, block: int) -> None:
    path = written(tmp_path, codecs.BOM_UTF8 * 2 + "aé\ufeffz😀".encode())
    assert whole(path) == "\ufeffaé\ufeffz😀"


def test_crlf_is_lf_wherever_a_block_ends(tmp_path: Path, block: int) -> None:
    path = written(tmp_path, b"ab\r\ncd\r\n\r\ne\rf\r")
    assert whole(path) == "ab\ncd\n\ne\rf\r"


def test_a_bad_byte_stops_with_its_offset(tmp_path: Path, block: int) -> None:
    path = written(tmp_path, b"ab\n\xc9x\r\ncd")
    with pytest.raises(DataError, match=r"text\.txt: byte 3: 0xc9 is not valid UTF-8.*replace"):
        whole(path)


def test_the_offset_counts_the_mark_and_wide_characters(tmp_path: Path, block: int) -> None:
    path = written(tmp_path, codecs.BOM_UTF8 + "é😀".encode() + b"\xff")
    with pytest.raises(DataError, match=r"byte 9: 0xff"):
        whole(path)


def test_a_character_cut_off_by_the_end_of_the_file_is_found(tmp_path: Path, block: int) -> None:
    path = written(tmp_path, b"abcdef\xf0\x9f")
    with pytest.raises(DataError, match=r"byte 6: 0xf0"):
        whole(path)
    assert whole(path, "replace") == "abcdef\ufffd"


def test_replacement_keeps_lines_and_counts(tmp_path: Path, block: int) -> None:
    path = written(tmp_path, b"ab\n\xc9x\r\nc\0d\xef\xbf\xbd")
    blocks = list(text_blocks(path, "replace"))
    assert "".join(block.text for block in blocks) == "ab\n\ufffdx\nc\ufffdd\ufffd"
    assert sum(block.replaced for block in blocks) == 2


def test_a_nul_stops_with_its_offset(tmp_path: Path, block: int) -> None:
    path = written(tmp_path, b"abc\0def")
    with pytest.raises(DataError, match=r"byte 3: a NUL"):
        whole(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-16-le", "utf-32"])
def test_utf16_and_utf32_are_named_or_told_from_their_nuls(tmp_path: Path, encoding: str) -> None:
    path = written(tmp_path, "plain text".encode(encoding))
    marked = encoding in ("utf-16", "utf-32")
    with pytest.raises(DataError, match=encoding.upper() if marked else r"byte \d+: a NUL"):
        whole(path)
    if marked:
        with pytest.raises(DataError, match="iconv"):
            whole(path, "replace")


def test_lines_end_at_newlines_only(tmp_path: Path) -> None:
    path = written(tmp_path, codecs.BOM_UTF8 + "a\u2028b\x0bc\r\n\nlast".encode())
    lines = [(number, line.text) for number, line in text_lines(path, "fail")]
    assert lines == [(1, "a\u2028b\x0bc"), (2, ""), (3, "last")]


def test_a_bad_byte_in_a_line_is_counted_from_the_start_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, codecs.BOM_UTF8 + b"one\ntw\xff\n")
    with pytest.raises(DataError, match="byte 9: 0xff"):
        list(text_lines(path, "fail"))


def test_parsed_text_may_hold_no_nul_and_no_lone_surrogate() -> None:
    assert clean_text("a\r\nb", "row 1", "fail").text == "a\nb"
    with pytest.raises(DataError, match=r"row 7: the text holds 2 NUL"):
        clean_text("a\0\ud800", "row 7", "fail")
    clean = clean_text("a\0\ud800", "row 7", "replace")
    assert (clean.text, clean.replaced) == ("a\ufffd\ufffd", 2)
