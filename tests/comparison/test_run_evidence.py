"""The records of a run as control reads them."""

import pytest

from posattn.comparison.run_evidence import read_evidence
from posattn.comparison.study_files import read_curve
from posattn.errors import DataError


def test_an_empty_folder_is_a_run_that_recorded_nothing(tmp_path):
    found = read_evidence(tmp_path, "rope", 0, {})
    assert (found.recipe, found.batches, found.finished) == (None, {}, False)


@pytest.mark.parametrize(
    "name",
    ["status.json", "data.json", "parameters.json", "environment.json", "evaluations.json"],
)
@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff\xfe", b""])
def test_a_damaged_record_is_refused_with_the_remedy(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    again = tmp_path / name if name == "evaluations.json" else tmp_path
    with pytest.raises(DataError, match=f"{name} is damaged .*delete {again} and run"):
        read_evidence(tmp_path, "rope", 0, {})


@pytest.mark.parametrize(
    "content", [b"garbage\n", b"\xff\xfe\n", b'{"kind": "train", "batches": 1}\n']
)
def test_a_damaged_metrics_file_is_refused_with_the_remedy(tmp_path, content):
    (tmp_path / "metrics.jsonl").write_bytes(content)
    with pytest.raises(DataError, match=f"metrics.jsonl is damaged .*delete {tmp_path} and run"):
        read_evidence(tmp_path, "rope", 0, {})


def test_a_curve_of_invalid_bytes_is_refused_in_words(tmp_path):
    (tmp_path / "metrics.jsonl").write_bytes(b"\xff\xfe\n")
    with pytest.raises(DataError, match="cannot be read"):
        read_curve(tmp_path / "metrics.jsonl")
