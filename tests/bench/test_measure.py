"""The whole benchmark at a tiny size: what is kept, what is refused, what Ctrl-C leaves behind."""

import json

import pytest
import torch
from pydantic import ValidationError

from posattn.bench import load_result, presets, run_bench
from posattn.bench.entrant import Ours
from posattn.bench.measure import Bench, OwnFault
from posattn.bench.memory import MemoryTask, peak_memory
from posattn.bench.plan import BenchPlan, Cell, Mixed, Target
from posattn.bench.subjects import Subject, subject
from posattn.bench.tables import target_table
from posattn.errors import IncompatibleParts, PosattnError, UnknownName

from .tiny import SIZE, made, plan


def quiet(text):
    """Say nothing."""


def with_rivals(monkeypatch, *rivals):
    """Let the subject `rope` have these rivals."""
    given = Subject("tiny", subject("rope").options, rivals)
    monkeypatch.setattr("posattn.bench.measure.subject", lambda name: given)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A benchmark of two architectures in two stages, backends and precisions."""
    cells = (Cell(batch_size=2, length=8), Cell(batch_size=1, length=5, stage="training"))
    wanted = plan(
        subjects=("rope", "kerple"),
        cells=cells,
        backends=("sdpa", "eager"),
        precisions=("float32", "bf16"),
    )
    folder = tmp_path_factory.mktemp("bench")
    return run_bench(wanted, folder, quiet), folder


def test_every_architecture_is_measured_in_every_cell(result):
    found = [(case.subject, str(case.cell)) for case in result[0].cases]
    cells = ("inference (2, 8)", "training (1, 5)")
    assert found == [(name, cell) for name in ("rope", "kerple") for cell in cells]
    assert not result[0].interrupted


def test_all_contestants_have_the_same_rounds_and_equal_states(result):
    for case in result[0].cases:
        assert {len(one.seconds) for one in case.contestants} == {2}
        assert all(one.difference <= 0.3 for one in case.contestants)
        names = [one.name for one in case.contestants]
        assert names[:4] == [
            "posattn (sdpa)", "posattn (sdpa), bf16", "posattn (eager)", "posattn (eager), bf16",
        ]  # fmt: skip
    assert result[0].cases[0].get("transformers RoFormer").attention == "eager"


def test_the_file_is_strict_json_and_gives_the_result_back(result):
    measured, folder = result
    assert load_result(folder) == measured
    json.loads((folder / "bench.json").read_text(), parse_constant=pytest.fail)
    with pytest.raises(PosattnError, match="no benchmark can be read"):
        load_result(folder / "nothing.json")
    (folder / "other.json").write_text('{"format": 2}')
    with pytest.raises(PosattnError, match="not a benchmark of this version"):
        load_result(folder / "other.json")


def test_conditions_say_machine_versions_and_method(result):
    found = result[0].conditions
    assert {"cpu", "threads", "libraries", "load_before", "order", "memory_method"} <= found.keys()
    assert found["libraries"]["transformers"]


def test_a_rival_that_returns_something_else_is_not_timed(monkeypatch, tmp_path):
    wrong = made("wrong", lambda states: states + 1.0, same_function=True)
    monkeypatch.setattr("posattn.bench.measure.share_weights", lambda *_: None)
    with_rivals(monkeypatch, wrong)
    case = run_bench(plan(subjects=("rope",)), tmp_path, quiet).cases[0]
    assert "differ by" in case.refused["wrong"]
    assert [one.name for one in case.contestants] == ["posattn (auto)"]


def test_a_rival_that_fails_leaves_the_others_alone(monkeypatch, tmp_path):
    def fail(states):
        raise RuntimeError("no kernel")

    with_rivals(monkeypatch, made("failing", fail), made("working", lambda states: states))
    case = run_bench(plan(subjects=("rope",)), tmp_path, quiet).cases[0]
    assert case.refused == {"failing": "RuntimeError: no kernel"}
    assert [one.name for one in case.contestants] == ["posattn (auto)", "working"]


def failing_ours(monkeypatch, error):
    def fail(entrant, model, ids, visible=None):
        raise error

    monkeypatch.setattr(Ours, "states", fail)
    with_rivals(monkeypatch, made("working", lambda states: states))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (PosattnError("not on this machine"), "not on this machine"),
        (torch.OutOfMemoryError("too small"), "OutOfMemoryError: too small"),
    ],
    ids=["refusal", "memory"],
)
def test_a_refusal_of_ours_is_noted(monkeypatch, tmp_path, error, text):
    failing_ours(monkeypatch, error)
    case = run_bench(plan(subjects=("rope",)), tmp_path, quiet).cases[0]
    assert case.refused == {"posattn (auto)": text}


def test_a_fault_of_ours_is_raised(monkeypatch, tmp_path):
    failing_ours(monkeypatch, RuntimeError("a mistake"))
    with pytest.raises(RuntimeError, match="a mistake"):
        run_bench(plan(subjects=("rope",)), tmp_path, quiet)


def test_ours_is_compiled_where_it_can_be_and_the_reason_is_noted_where_not(monkeypatch):
    bench = Bench(plan(subjects=("rope",), compiled=True), quiet)
    plain, unpad = Ours(subject("rope").options, "auto"), Ours(dict, "auto", unpad=True)
    refused = {}
    monkeypatch.setattr("posattn.bench.entrant.missing_compiler", lambda device: "")
    assert bench._forms(plain, refused) == (False, True)
    assert refused == {}
    assert bench._forms(unpad, refused) == (False,)
    assert "values of each batch" in refused.pop("posattn (auto, unpad), compiled")
    monkeypatch.setattr("posattn.bench.entrant.missing_compiler", lambda device: "no compiler")
    assert bench._forms(plain, refused) == (False,)
    assert refused == {"posattn (auto), compiled": "no compiler"}


def test_ours_on_two_backends_that_are_not_one_function_are_a_fault(monkeypatch, tmp_path):
    states = Ours.states

    def other(entrant, model, ids, visible=None):
        return states(entrant, model, ids, visible) + (entrant.backend == "eager")

    monkeypatch.setattr(Ours, "states", other)
    wanted = plan(subjects=("rope",), backends=("sdpa", "eager"), rivals=False)
    with pytest.raises(OwnFault, match=r"posattn \(eager\): its states differ by"):
        run_bench(wanted, tmp_path, quiet)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Texts of mixed length beside whole rows, with rivals that take padding and one that does not."""
    texts = {"batch_size": 8, "length": 30, "mixed": Mixed(median=6)}
    cells = (Cell(batch_size=2, length=8), Cell(**texts), Cell(**texts, stage="training"))
    wanted = plan(subjects=("rope", "disentangled"), cells=cells)
    return run_bench(wanted, tmp_path_factory.mktemp("bench"), quiet)


def test_texts_of_mixed_length_are_measured_padded_and_without_padding(mixed):
    padded, unpad = "posattn (auto)", "posattn (auto, unpad)"
    for case in mixed.cases:
        names = [one.name for one in case.contestants]
        if case.cell.mixed is None:
            assert unpad not in names
            continue
        assert names[0] == padded
        assert unpad in names
        assert case.reference().name == padded
        assert "posattn none (auto)" not in names
        assert max(one.difference for one in case.contestants) <= 1e-4
    assert mixed.cases[1].get("transformers RoFormer") is not None
    reason = mixed.cases[-1].refused.get("disentangled-flash", "assume_unpadded")
    assert "assume_unpadded" in reason or "not installed" in reason


def test_the_lengths_that_were_drawn_are_among_the_conditions(mixed):
    whole, texts = mixed.conditions["input"].split("; ")
    assert whole == "random tokens without padding"
    assert texts.startswith("8 texts of 4 to ")
    assert "log-normal, median 6, sigma 0.7, 4 to 30" in texts


def test_ctrl_c_keeps_the_whole_rounds_that_there_are(monkeypatch, tmp_path):
    calls = []

    def stop(states):
        calls.append(1)
        if len(calls) == 6:  # first call, warm-up, and three rounds and a half
            raise KeyboardInterrupt
        return states

    with_rivals(monkeypatch, made("stopping", stop))
    wanted = plan(subjects=("rope",), rounds=50, cells=(Cell(batch_size=1, length=4),) * 2)
    found = run_bench(wanted, tmp_path, quiet)
    assert found.interrupted
    assert [len(one.seconds) for case in found.cases for one in case.contestants] == [3, 3]
    assert load_result(tmp_path) == found


def test_rounds_go_on_until_the_time_is_up_or_there_are_enough(tmp_path):
    long = run_bench(plan(subjects=("none",), seconds=60.0, most_rounds=7), tmp_path, quiet)
    assert len(long.cases[0].contestants[0].seconds) == 7


def test_peak_memory_grows_with_the_length_and_comes_from_a_process_of_its_own():
    def task(length):
        cell = Cell(batch_size=4, length=length)
        return MemoryTask("rope", "posattn (eager)", ("eager",), SIZE, cell, "cpu", 1, "float32")

    short, long = peak_memory(task(8)), peak_memory(task(1024))
    assert long - short > 4 * 2 * 1024 * 1024 * 4  # at least one tensor of all pairs


def test_a_target_is_judged_by_the_fastest_of_ours(monkeypatch, tmp_path):
    with_rivals(monkeypatch, made("other", lambda states: states))
    cell = Cell(batch_size=2, length=8)
    target = Target(subject="rope", cell=cell, against="other", at_least=1.0)
    elsewhere = target.model_copy(update={"against": "nobody"})
    found = run_bench(plan(subjects=("rope",), targets=(target, elsewhere)), tmp_path, quiet)
    case = found.cases[0]
    assert found.reached(target) == case.best_of_ours().times_as_fast_as(case.get("other"))
    assert found.reached(elsewhere) is None


def test_a_target_may_be_about_ours_in_bf16(tmp_path):
    cell = Cell(batch_size=2, length=8)
    target = Target(
        subject="rope", cell=cell, against="posattn (auto)", at_least=1.0, precision="bf16"
    )
    wanted = plan(subjects=("rope",), precisions=("float32", "bf16"), targets=(target,))
    found = run_bench(wanted, tmp_path, quiet)
    ours, beside = (found.cases[0].get(f"posattn (auto){more}") for more in (", bf16", ""))
    assert found.reached(target) == ours.times_as_fast_as(beside)
    assert target_table(found).rows[0][0] == "rope, bf16"


@pytest.mark.parametrize("name", presets)
def test_a_preset_can_be_measured_here(name):
    wanted = presets.get(name)()
    assert Bench(wanted, quiet).names
    assert wanted.command == f"posattn bench --preset {name}"
    if name == "unpad":
        assert {target.at_least for target in wanted.targets} == {1.8}
        assert all(cell.mixed is not None for cell in wanted.cells)
    cells = [cell for cell in wanted.cells if wanted.measures_memory_of(cell)]
    assert {cell.length for cell in cells} == {max(cell.length for cell in wanted.cells)}


def test_a_plan_that_cannot_be_measured_is_refused_at_once(tmp_path):
    with pytest.raises(UnknownName, match="cpu-target'"):
        presets.get("cpu-target")
    with pytest.raises(UnknownName, match="ropee"):
        run_bench(plan(subjects=("ropee",)), tmp_path, quiet)
    with pytest.raises(IncompatibleParts, match="no CUDA device"):
        run_bench(plan(device="cuda"), tmp_path, quiet)
    with pytest.raises(ValidationError, match="no multiple of num_heads"):
        BenchPlan(size={"hidden_size": 10, "num_heads": 3})
    with pytest.raises(ValidationError, match="at least 4 tokens, and length 3 is the most"):
        Cell(batch_size=1, length=3, mixed=Mixed())
    with pytest.raises(ValidationError, match="unknown backend 'sdap'"):
        run_bench(plan(subjects=("rope",), backends=("sdap",)), tmp_path, quiet)
