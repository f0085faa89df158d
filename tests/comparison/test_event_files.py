"""Event files: every logged number once, at its step; a rewind and a further export replace."""

import json

import pytest

from posattn.comparison.event_files import SUFFIX, EventExport, open_event_file
from posattn.errors import PosattnError
from tests.comparison.study_folders import EIGHT_ARMS, write_study


class FakeWriter:
    """Remembers what TensorBoard's writer would be told."""

    def __init__(self, folder, purge_step):
        self.folder, self.purge_step = folder, purge_step
        self.scalars, self.texts, self.closed = [], [], False
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"events.out.tfevents.{id(self)}{SUFFIX}").touch()

    def add_scalar(self, tag, scalar_value, global_step, walltime):
        self.scalars.append((tag, scalar_value, global_step, walltime))

    def add_text(self, tag, text_string, global_step, walltime):
        self.texts.append((tag, text_string, global_step))

    def flush(self):
        pass

    def close(self):
        self.closed = True


class Writers(list):
    def __call__(self, folder, purge_step):
        self.append(FakeWriter(folder, purge_step))
        return self[-1]


@pytest.fixture
def study(tmp_path):
    return write_study(tmp_path / "study", EIGHT_ARMS[:2], (0, 2), speed=False)


def numbers(path):
    return [
        (f"{record['kind']}/{key}", value, record["step"])
        for record in map(json.loads, path.read_text().splitlines())
        for key, value in record.items()
        if key != "step" and isinstance(value, int | float)
    ]


def test_every_number_of_every_run_is_written_once_at_its_step(study, tmp_path):
    writers = Writers()
    export = EventExport(study, tmp_path / "logs", writers)
    written = export.export()
    export.close()
    places = [writer.folder.relative_to(tmp_path / "logs").as_posix() for writer in writers]
    assert places == ["learned/seed-0", "learned/seed-2", "none/seed-0", "none/seed-2"]
    for writer, place in zip(writers, places, strict=True):
        expected = numbers(study / "runs" / place / "metrics.jsonl")
        assert [scalar[:3] for scalar in writer.scalars] == expected
        assert writer.closed
    assert written == sum(len(writer.scalars) for writer in writers)
    assert export.export() == 0


def test_a_loss_that_is_not_finite_has_no_value_and_its_reason(study, tmp_path):
    writers = Writers()
    EventExport(study, tmp_path / "logs", writers).export()
    diverged = writers[-1]
    assert ("evaluation/reason", "not finite", 300) in diverged.texts
    assert not [s for s in diverged.scalars if s[0] == "train/loss" and s[2] == 300]
    assert diverged.texts[0][0] == "recipe"
    assert "learning_rate" in diverged.texts[0][1]


def test_new_lines_are_added_and_a_rewound_run_is_written_anew(study, tmp_path):
    writers = Writers()
    export = EventExport(study, tmp_path / "logs", writers)
    export.export()
    path = study / "runs/learned/seed-0/metrics.jsonl"
    old = path.read_text()
    with path.open("a") as file:
        file.write('{"kind": "train", "step": 700, "loss": 1.5}\n')
    assert export.export() == 1
    assert writers[0].scalars[-1][:3] == ("train/loss", 1.5, 700)
    path.write_text("".join(old.splitlines(keepends=True)[:2]))
    export.export()
    assert writers[0].closed
    assert writers[-1].purge_step == 0
    assert {scalar[2] for scalar in writers[-1].scalars} == {100}


def test_a_further_export_replaces_its_own_files_and_no_others(study, tmp_path):
    other = tmp_path / "logs/learned/seed-0/events.out.tfevents.1.other"
    other.parent.mkdir(parents=True)
    other.touch()
    for _ in range(2):
        EventExport(study, tmp_path / "logs", Writers()).export()
    own = list(other.parent.glob(f"*{SUFFIX}"))
    assert len(own) == 1
    assert other.exists()


def test_without_the_package_the_error_says_what_to_install(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(PosattnError, match=r"pip install 'posattn\[tensorboard\]'"):
        open_event_file(tmp_path, None)
