import codecs
import json
import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from posattn.errors import DataError
from posattn.training.text.config import DataConfig
from posattn.training.text.corpora import corpora
from posattn.training.text.prepare import TokenisedCorpus, prepare, store_key

MODULE = "posattn.training.text.prepare"
LINES = [f"line number {i} has some words, {'more ' * (i % 5)}and an end" for i in range(60)]


def config_of(*paths: Path, **data: Any) -> DataConfig:
    options = data.pop("options", {"document_per": "line"})
    corpus = {"name": "files", "paths": [str(path) for path in paths], **options}
    given = {"corpus": corpus, "tokenizer": "characters", "max_length": 16}
    return DataConfig.model_validate(given | data)


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def ids(corpus: TokenisedCorpus) -> tuple[list[int], list[int]]:
    return corpus.train.tokens.tolist(), corpus.validation.tokens.tolist()


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write(tmp_path / "text.txt", "\n".join(LINES) + "\n")


def test_the_tokens_are_the_text_each_document_followed_by_a_separator(text: Path) -> None:
    corpus = prepare(config_of(text))
    found = []
    for split in (corpus.train, corpus.validation):
        for start, end in zip(split.offsets[:-1], split.offsets[1:], strict=True):
            document = split.tokens[start:end].tolist()
            assert document[-1] == corpus.tokenizer.sep
            found.append(corpus.tokenizer.decode(document[:-1]))
    assert sorted(found) == sorted(LINES)


def test_the_counts_equal_an_independent_count(text: Path) -> None:
    info = prepare(config_of(text)).info
    assert (info.documents, info.empty_documents) == (60, 0)
    assert info.characters == info.train.tokens + info.validation.tokens
    assert info.characters == sum(map(len, LINES))
    assert info.train.documents + info.validation.documents == 60
    payload = 15
    for split in (info.train, info.validation):
        stream = split.tokens + split.documents
        assert (split.samples, split.leftover_tokens) == divmod(stream, payload)
    assert info.files[0].bytes == text.stat().st_size
    assert json.loads(info.model_dump_json())["name"] == "files"


def test_the_tokenizer_has_seen_the_training_part_only(tmp_path: Path) -> None:
    lines = [chr(0x4E00 + number) * 30 for number in range(40)]
    corpus = prepare(config_of(write(tmp_path / "t.txt", "\n".join(lines))))
    info = corpus.info
    assert corpus.tokenizer.vocab_size == 5 + info.train.documents
    assert info.train.unknown_tokens == 0
    assert info.validation.unknown_tokens == info.validation.tokens > 0
    assert info.files[0].unknown_tokens == info.validation.unknown_tokens


def test_tokenising_happens_once_and_layouts_share_it(
    text: Path, posattn_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare(config_of(text))
    monkeypatch.setattr(f"{MODULE}._build", lambda *_: pytest.fail("built again"))
    again = prepare(config_of(text, max_length=32, layout="padded", cls=False))
    assert ids(again) == ids(first)
    assert again.info.train.samples != first.info.train.samples
    assert len(list(posattn_cache.glob("tokens/*/store.json"))) == 1


def test_the_tokens_are_mapped_not_read(text: Path) -> None:
    corpus = prepare(config_of(text))
    assert isinstance(corpus.train.tokens, np.memmap)
    assert corpus.train.tokens.dtype == np.uint16


def test_a_damaged_store_is_rebuilt_with_a_notice(text: Path, posattn_cache: Path) -> None:
    before = ids(prepare(config_of(text)))
    tokens = next(posattn_cache.glob("tokens/*/train.tokens"))
    tokens.write_bytes(tokens.read_bytes()[:-2])
    with pytest.warns(UserWarning, match=r"rebuilt: train\.tokens has"):
        assert ids(prepare(config_of(text))) == before


CHANGES: list[dict[str, Any]] = [
    {"validation_fraction": 0.1},
    {"split_seed": 1},
    {"tokenizer": {"name": "characters", "vocab_size": 20}},
    {"tokenizer": {"name": "characters", "normalization": "nfc"}},
    {"tokenizer": {"name": "bpe"}},
    {"tokenizer": {"name": "bpe", "min_frequency": 3}},
    {"tokenizer": {"name": "wordpiece"}},
    {"tokenizer": {"name": "wordpiece", "lowercase": True}},
    {"options": {"document_per": "file"}},
    {"options": {"document_per": "line", "encoding_errors": "replace"}},
    {"options": {"document_per": "line", "text_field": "body"}},
    {"options": {"document_per": "line", "licence": "CC0"}},
]


def key(config: DataConfig) -> str:
    corpus = corpora.get(config.corpus.name)(config.corpus)
    return store_key(config, corpus.source(lambda _: None))


def test_everything_that_decides_the_tokens_changes_the_key(
    text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [key(config_of(text)), *(key(config_of(text, **change)) for change in CHANGES)]
    assert len(set(keys)) == len(keys)
    assert key(config_of(text)) == keys[0]
    monkeypatch.setattr(f"{MODULE}.VERSION", -1)
    assert key(config_of(text)) != keys[0]
    monkeypatch.undo()
    monkeypatch.setattr(f"{MODULE}.version", lambda name: "0.0.0")
    assert key(config_of(text)) != keys[0]


def test_the_text_itself_and_the_tokenizer_file_change_the_key(tmp_path: Path, text: Path) -> None:
    before = key(config_of(text))
    write(text, text.read_bytes() + b"x")
    assert key(config_of(text)) != before
    file = tmp_path / "tokenizer.json"
    prepare(config_of(text)).tokenizer.save(file)
    config = config_of(text, tokenizer={"name": "file", "path": str(file)})
    before = key(config)
    file.write_text(file.read_text() + "\n")
    assert key(config) != before


def test_what_only_lays_out_rows_does_not_change_the_key(text: Path) -> None:
    layouts: list[dict[str, Any]] = [
        {"max_length": 99},
        {"cls": False},
        {"across_documents": False},
        {"order": "streams"},
        {"layout": "padded", "padding_side": "left"},
    ]
    assert {key(config_of(text, **layout)) for layout in layouts} == {key(config_of(text))}


def prepare_in_process(path: str) -> None:
    assert len(prepare(config_of(Path(path))).train) > 10


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_at_once_share_one_store(text: Path, posattn_cache: Path, method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    runs = [context.Process(target=prepare_in_process, args=(str(text),)) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(120)
    assert [run.exitcode for run in runs] == [0, 0]
    assert len(list(posattn_cache.glob("tokens/*/store.json"))) == 1
    assert not list(posattn_cache.glob("tokens/.building*"))


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".jsonl"])
def test_a_byte_order_mark_changes_no_token(tmp_path: Path, suffix: str) -> None:
    rows = {
        ".txt": "\n".join(LINES),
        ".csv": "text\n" + "\n".join(f'"{line}"' for line in LINES),
        ".jsonl": "\n".join(json.dumps({"text": line}) for line in LINES),
    }[suffix].encode()
    first = write(tmp_path / f"first{suffix}", rows)
    second = write(tmp_path / f"second{suffix}", rows)
    plain = ids(prepare(config_of(first, second)))
    write(second, codecs.BOM_UTF8 + rows)
    assert ids(prepare(config_of(first, second))) == plain
    write(first, codecs.BOM_UTF8 + rows)
    assert ids(prepare(config_of(first, second))) == plain


def test_crlf_files_have_the_tokens_of_lf_files(tmp_path: Path) -> None:
    content = "\n".join(LINES).encode()
    for options in ({"document_per": "line"}, {"document_per": "file"}):
        unix = prepare(config_of(write(tmp_path / "a.txt", content), options=options))
        windows = content.replace(b"\n", b"\r\n")
        other = prepare(config_of(write(tmp_path / "b.txt", windows), options=options))
        assert ids(other) == ids(unix)


def test_broken_bytes_stop_with_file_and_offset_or_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "broken.txt", b"ab\n\xc9x\r\ncd" + b" and more text" * 20)
    with pytest.raises(DataError, match=r"broken\.txt: byte 3: "):
        prepare(config_of(path))
    replace = {"document_per": "line", "encoding_errors": "replace"}
    info = prepare(config_of(path, options=replace)).info
    assert (info.documents, info.replaced_bytes) == (3, 1)


def test_a_utf16_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "wide.txt", "some text".encode("utf-16"))
    with pytest.raises(DataError, match=r"wide\.txt: byte 0: the file is UTF-16"):
        prepare(config_of(path))


@pytest.mark.parametrize("content", ["", "\n\n\n", " \n\t\n"])
def test_a_corpus_without_text_is_an_error_with_the_count(tmp_path: Path, content: str) -> None:
    path = write(tmp_path / "empty.txt", content)
    with pytest.raises(
        DataError, match=r"no usable text: every document that was read is empty \(documents: \d\)"
    ):
        prepare(config_of(path))


def test_empty_documents_are_counted_and_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "text.txt", "\n\n".join(LINES))
    info = prepare(config_of(path)).info
    assert (info.documents, info.empty_documents) == (60, 59)
    assert (info.files[0].documents, info.files[0].empty_documents) == (60, 59)


def test_a_corpus_shorter_than_a_row_is_an_error_with_the_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "short.txt", "abc")
    with pytest.raises(DataError) as raised:
        prepare(config_of(path, max_length=128))
    for part in ("train part", "3 tokens", "one row takes 128", "data.max_length"):
        assert part in str(raised.value)


def test_a_validation_part_shorter_than_a_row_is_an_error_with_the_counts(text: Path) -> None:
    with pytest.raises(DataError, match=r"validation part .*raise data\.validation_fraction"):
        prepare(config_of(text, max_length=512))


@pytest.mark.parametrize("cls", [False, True])
def test_a_document_that_just_fits_is_one_padded_row(tmp_path: Path, cls: bool) -> None:
    size = 16 - 2 * cls
    path = write(tmp_path / "text.txt", "\n".join("x" * size for _ in range(40)))
    corpus = prepare(config_of(path, layout="padded", cls=cls))
    assert len(corpus.train) + len(corpus.validation) == 40


MEASURED = """
import json, sys, threading, time
import psutil
from posattn.training.text.config import DataConfig
from posattn.training.text.corpora import corpora
from posattn.training.text.division import take_census
from posattn.training.text.prepare import prepare

process = psutil.Process()
highest = [0]

def watch():
    while True:
        highest[0] = max(highest[0], process.memory_info().rss)
        time.sleep(0.002)

config = DataConfig.model_validate(json.loads(sys.argv[1]))
corpus = corpora.get(config.corpus.name)(config.corpus)
before = process.memory_info().rss
threading.Thread(target=watch, daemon=True).start()
if sys.argv[2] == "read":
    counts = {"characters": int(take_census(corpus.pieces()).characters.sum())}
else:
    info = prepare(config).info
    counts = {"characters": info.characters, "tokens": info.train.tokens + info.validation.tokens}
print(json.dumps({"peak": highest[0] - before, **counts}))
"""


@pytest.mark.parametrize(("suffix", "what"), [(".txt", "prepare"), (".jsonl", "read")])
def test_a_line_of_50_megabytes_needs_less_than_ten_times_that(
    tmp_path: Path, suffix: str, what: str
) -> None:
    text = "some words, and some more; the same line again and again. " * 860_000
    path = tmp_path / f"huge{suffix}"
    path.write_text(json.dumps({"text": text}) if suffix == ".jsonl" else text)
    size = path.stat().st_size
    assert size > 49e6
    command = [sys.executable, "-c", MEASURED, config_of(path).model_dump_json(), what]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert 1e6 < found["peak"] < 10 * size
    assert found["characters"] == found.get("tokens", len(text)) == len(text)


def test_reading_the_same_text_from_elsewhere_gives_the_same_checksum(
    tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = prepare(config_of(text)).info
    link = tmp_path / "with spaces and ü"
    link.symlink_to(tmp_path)
    monkeypatch.chdir(link)
    after = prepare(config_of(link / "text.txt")).info
    assert after.files[0].sha256 == before.files[0].sha256
    assert after.tokenizer_digest == before.tokenizer_digest


def test_progress_is_told_in_sentences(text: Path) -> None:
    told: list[str] = []
    note: Callable[[str], None] = told.append
    prepare(config_of(text), progress=note)
    assert any("tokenising" in stage for stage in told)
    told.clear()
    prepare(config_of(text), progress=note)
    assert told == ["reading the checksums of the text files"]


def test_decomposed_and_composed_text_have_equal_tokens_when_normalised(tmp_path: Path) -> None:
    nfc = {"name": "characters", "normalization": "nfc"}
    composed = "\n".join(f"\u1ea6 caf\u00e9 {line}" for line in LINES)
    decomposed = composed.replace("\u1ea6", "A\u0302\u0300").replace("\u00e9", "e\u0301")
    one = prepare(config_of(write(tmp_path / "a.txt", composed), tokenizer=nfc, split_seed=3))
    two = prepare(config_of(write(tmp_path / "b.txt", decomposed), tokenizer=nfc, split_seed=3))
    assert one.info.normalization == "NFC()"
    assert sorted(ids(one)[0] + ids(one)[1]) == sorted(ids(two)[0] + ids(two)[1])
