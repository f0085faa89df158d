"""What tests of studies share: a text cache of their own, and one smoke study that has run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from posattn.comparison.progress import StudyProgress
from posattn.comparison.run import StudyResult, run_study


@pytest.fixture(scope="session")
def text_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep the texts of all studies of this session in one folder, which child processes inherit."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POSATTN_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def smoke(
    text_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[StudyResult, list[StudyProgress]]:
    """Run the smoke study once, straight through; tests only read it."""
    shown: list[StudyProgress] = []
    out = tmp_path_factory.mktemp("studies") / "smoke"
    return run_study("smoke", out, jobs=2, progress=shown.append), shown
