"""What all tests share: caches in temporary folders, no network, and small corpora."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

_HUGGING_FACE = tempfile.TemporaryDirectory(prefix="posattn-tests-hf-")
os.environ["HF_HOME"] = _HUGGING_FACE.name
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"


@pytest.fixture(autouse=True)
def posattn_cache(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> Path:
    """Point the cache of posattn to a folder of the test's own; compiled operators alone are shared."""
    folder = tmp_path_factory.mktemp("posattn-cache")
    compiled = pytestconfig.rootpath / ".pytest_cache" / "native"
    compiled.mkdir(parents=True, exist_ok=True)
    (folder / "native").symlink_to(compiled, target_is_directory=True)
    monkeypatch.setenv("POSATTN_CACHE", str(folder))
    return folder


@pytest.fixture
def make_corpus(tmp_path: Path) -> Callable[..., Any]:
    """Return a function that prepares some documents: `make_corpus(texts, **data)`, one per line."""
    from posattn.training.text.config import DataConfig
    from posattn.training.text.prepare import prepare

    def make(texts: Sequence[str], **data: Any) -> Any:
        path = tmp_path / "documents.txt"
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
        corpus = {"name": "files", "paths": [str(path)], "document_per": "line"}
        given = {"corpus": corpus, "tokenizer": {"name": "characters"}, "max_length": 16}
        return prepare(DataConfig.model_validate(given | data))

    return make


@pytest.fixture
def sentences() -> list[str]:
    """Return 120 short documents of different lengths, all made of small letters and spaces."""
    words = [
        "the",
        "quick",
        "brown",
        "fox",
        "jumps",
        "over",
        "a",
        "lazy",
        "dog",
        "while",
        "it",
        "naps",
    ]
    return [
        " ".join(words[(start * 7 + step * 5) % len(words)] for step in range(3 + start % 11))
        for start in range(120)
    ]
