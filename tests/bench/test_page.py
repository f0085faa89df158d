"""Tables and page: what a number means stands beside it, and what was missed is said."""

from posattn.bench.page import conditions, write_page
from posattn.bench.plan import Cell, Mixed, Target
from posattn.bench.results import BenchResult, Case, Measured
from posattn.bench.tables import case_tables, target_table

from .tiny import plan

CELL = Cell(batch_size=2, length=8)


def measured(name, seconds, **options):
    given = {"library": "posattn", "attention": "sdpa", "precision": "float32", "compiled": False}
    given |= {"same_function": True, "difference": 1e-6, "first_seconds": 0.5}
    return Measured(name=name, seconds=tuple(seconds), **given | options)


def result(**options):
    contestants = (
        measured("posattn (auto)", [0.010, 0.020, 0.030], peak_memory_bytes=3 * 2**20),
        measured("other", [0.030, 0.030, 0.120], library="other", attention="eager"),
        measured("posattn none (auto)", [0.005] * 3, same_function=False, difference=None),
    )
    case = Case(
        subject="rope",
        title="RoFormer",
        cell=CELL,
        contestants=contestants,
        refused={"b": "no GPU"},
    )
    targets = tuple(
        Target(subject="rope", cell=CELL, against=against, at_least=least)
        for against, least in (("other", 2.0), ("other", 3.5), ("b", 1.0))
    )
    found = {"versions": {"torch": "2"}, "libraries": {"other": "1"}, "cpu": "a CPU", "threads": 1}
    given = {"plan": plan(targets=targets), "conditions": found, "cases": (case,)}
    return BenchResult(**given | options)


def test_a_ratio_is_the_median_of_the_ratios_within_a_round():
    ours, other, _ = result().cases[0].contestants
    assert ours.times_as_fast_as(other) == 3.0  # of 3, 1.5 and 4
    assert ours.median() == 0.020
    assert ours.quartiles() == (0.015, 0.025)


def test_the_table_has_times_speed_first_call_and_memory():
    (table,) = case_tables(result().cases)
    assert table.caption == "rope (RoFormer), inference"
    assert table.rows[0] == [
        "(2, 8)", "posattn (auto)", "sdpa", "20.0", "[15.0, 25.0]", "3.00", "500", "3",
    ]  # fmt: skip
    assert table.rows[1][5] == "1.00"
    assert "as fast as other" in table.note
    assert "Another function at the same size: posattn none (auto)." in table.note
    assert "Not measured: b (no GPU)." in table.note


def test_targets_are_met_missed_or_not_measured():
    table = target_table(result())
    assert [row[-1] for row in table.rows] == ["met", "missed", "not measured"]
    assert target_table(result(plan=plan())) is None


def test_an_interrupted_benchmark_says_so():
    assert conditions(result(interrupted=True))["complete"].startswith("no")
    assert conditions(result())["complete"] == "yes"


def test_several_results_make_one_page(tmp_path):
    again = result(plan=plan())  # measured under the same name
    page = write_page([result(), result(plan=plan(name="second")), again], tmp_path).read_text()
    order = ("\n## custom\n", "\n## second\n", "\n## custom-2\n")
    assert sorted(order, key=page.index) == list(order)
    assert page.count("| met |") == 1
    assert {path.name for path in (tmp_path / "performance").iterdir()} == {
        "custom-rope-inference.svg",
        "second-rope-inference.svg",
        "custom-2-rope-inference.svg",
    }


def test_texts_of_mixed_length_have_a_table_and_a_figure_of_their_own(tmp_path):
    (whole,) = result().cases
    cell = CELL.model_copy(update={"mixed": Mixed()})
    names = ("posattn (auto)", "posattn (auto, unpad)", "other")
    times = zip(names, (0.030, 0.010, 0.060), strict=True)
    contestants = tuple(measured(name, [seconds] * 3) for name, seconds in times)
    case = whole.model_copy(update={"cell": cell, "contestants": contestants})
    target = Target(subject="rope", cell=cell, against="posattn (auto)", at_least=1.8)
    both = result(cases=(whole, case), plan=plan(targets=(target,)))
    tables = case_tables(both.cases)
    assert tables[1].caption == "rope (RoFormer), inference, texts of mixed length"
    assert [row[0] for row in tables[1].rows] == ["(2, up to 8)"] * 3
    assert [row[5] for row in tables[1].rows] == ["1.00", "3.00", "0.50"]
    assert target_table(both).rows[0][1:] == [
        "inference (2, up to 8)", "posattn (auto)", "1.80", "3.00", "met",
    ]  # fmt: skip
    write_page([both], tmp_path)
    figures = {path.name for path in (tmp_path / "performance").iterdir()}
    assert figures == {"custom-rope-inference.svg", "custom-rope-inference-mixed.svg"}
