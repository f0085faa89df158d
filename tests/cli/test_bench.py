"""`posattn bench`: options over presets, files, the page, and what is refused."""

import json

import pytest

from posattn.bench import load_result
from posattn.bench.plan import Cell

SMALL = (
    *("--width", "64", "--layers", "1", "--rounds", "2", "--seconds", "0", "--memory", "none"),
    *("--length", "8", "--batch", "1", "--stage", "inference"),
)


def test_help_has_examples(posattn_command):
    code, out, _ = posattn_command("bench", "--help")
    assert code == 0
    assert "posattn bench --preset cpu-targets" in " ".join(out.split())


def test_a_benchmark_prints_a_table_and_leaves_json_and_figures(posattn_command, tmp_path):
    code, out, err = posattn_command(
        "bench", *SMALL, "--mechanism", "rope", "--no-rivals", "--out", tmp_path
    )
    assert code == 0, err
    assert "rope (RoFormer), inference" in out
    assert "posattn (auto)" in out
    result = load_result(tmp_path)
    assert [one.name for one in result.cases[0].contestants] == ["posattn (auto)"]
    assert result.plan.cells == (Cell(batch_size=1, length=8),)
    assert result.plan.command.startswith("posattn bench --preset quick --mechanism rope")
    assert (tmp_path / "quick-custom-rope-inference.svg").read_text().startswith("<svg")


def test_the_page_is_made_of_files_alone(posattn_command, tmp_path, monkeypatch):
    posattn_command("bench", *SMALL, "--mechanism", "none", "--no-rivals", "--out", tmp_path / "a")
    monkeypatch.setattr("posattn.bench.run_bench", pytest.fail)
    code, out, err = posattn_command(
        "bench", "--from", tmp_path / "a", "--docs", tmp_path / "docs", "--json"
    )
    assert code == 0, err
    assert json.loads(out)["cases"][0]["subject"] == "none"
    page = (tmp_path / "docs" / "performance.md").read_text()
    assert "# Performance" in page
    assert "`posattn bench --preset quick --mechanism none" in page
    assert " --no-rivals " in page
    assert "Not measured on a GPU" in page
    figure = "performance/quick-custom-none-inference.svg"
    assert figure in page
    assert (tmp_path / "docs" / figure).is_file()
    assert str(tmp_path) not in page


def test_options_multiply_and_leave_the_rest_of_the_preset_alone(
    monkeypatch, posattn_command, tmp_path
):
    plans = []

    def note(plan, out, say):
        plans.append(plan)
        raise KeyboardInterrupt

    monkeypatch.setattr("posattn.bench.run_bench", note)
    given = ("--length", "4", "--length", "9", "--compile", "--backend", "eager", "--threads", "1")
    posattn_command("bench", "--preset", "cpu-targets", *given, "--out", tmp_path)
    cells = {(cell.batch_size, cell.length, cell.stage) for cell in plans[0].cells}
    assert cells == {
        (rows, length, stage)
        for rows in (1, 8, 2)
        for length in (4, 9)
        for stage in ("inference", "training")
    }
    assert (plans[0].size.hidden_size, plans[0].compiled, plans[0].backends) == (
        768,
        True,
        ("eager",),
    )
    assert "--compile" in plans[0].command


@pytest.mark.parametrize(
    ("options", "mixed", "name"),
    [
        (("--preset", "quick", "--length", "16", "--mixed"), True, "quick-custom"),
        (("--preset", "unpad", "--batch", "4"), True, "unpad-custom"),
        (("--preset", "unpad", "--full"), False, "unpad-custom"),
        (("--preset", "unpad", "--threads", "2", "--mixed"), True, "unpad"),
    ],
)
def test_texts_of_mixed_length_are_a_switch(
    monkeypatch, posattn_command, tmp_path, options, mixed, name
):
    plans = []

    def note(plan, out, say):
        plans.append(plan)
        raise KeyboardInterrupt

    monkeypatch.setattr("posattn.bench.run_bench", note)
    posattn_command("bench", *options, "--out", tmp_path)
    assert {cell.mixed is not None for cell in plans[0].cells} == {mixed}
    assert plans[0].name == name
    assert plans[0].command == " ".join(["posattn bench", *options])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--preset", "cpu"), "unknown bench preset 'cpu'"),
        (("--mechanism", "roep"), "nothing to measure is called 'roep'"),
        (("--rounds", "0"), "rounds"),
        (("--stage", "walking"), "'walking'"),
        (("--from", "nowhere"), "no benchmark can be read at nowhere"),
    ],
)
def test_what_cannot_be_measured_is_one_message(posattn_command, tmp_path, options, text):
    code, out, err = posattn_command("bench", *options, "--out", tmp_path)
    assert (code, out) == ((1 if options[0] == "--from" else 2), "")
    assert text in err
    assert "Traceback" not in err


def test_ctrl_c_exits_with_130_and_says_where_the_rest_is(posattn_command, monkeypatch, tmp_path):
    from posattn.bench import measure

    monkeypatch.setattr(measure.Bench, "run", lambda bench: _interrupted())
    code, _, err = posattn_command("bench", *SMALL, "--mechanism", "rope", "--out", tmp_path)
    assert code == 130
    assert f"what was measured until then is in {tmp_path}" in err
    assert load_result(tmp_path).interrupted


def _interrupted():
    yield
    raise KeyboardInterrupt
