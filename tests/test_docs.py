"""README.md and docs/: every block of YAML, shell and Python is what it says it is."""

import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from ruamel.yaml import YAML

from posattn.bench import BenchResult
from posattn.cli.main import run
from posattn.comparison.plan import make_plan
from posattn.comparison.study import load_study
from posattn.recipe.check import check_recipe
from posattn.recipe.schema import load_recipe
from posattn.recipe.shipped import is_study

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


def blocks(*languages):
    """Return the blocks of some languages as parameters named by page and number."""
    return [
        pytest.param(text, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, (language, text) in enumerate(FENCE.findall(page.read_text(encoding="utf-8")))
        if language in languages
    ]


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """An empty current folder with the README's `my.yaml` and `study.yaml`."""
    monkeypatch.chdir(tmp_path)
    for block in blocks("yaml"):
        name = re.match(r"# (\w+\.yaml)\n", block.values[0])
        if block.id.startswith("README") and name:
            (tmp_path / name[1]).write_text(block.values[0], encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("text", blocks("yaml"))
def test_a_yaml_block_is_a_recipe_or_a_study_that_can_run(text, tmp_path):
    content = YAML(typ="safe", pure=True).load(text)
    path = tmp_path / "block.yaml"
    if is_study(content):
        path.write_text(text, encoding="utf-8")
        study = load_study(path)
        for part in study.task_studies().values() or [study]:
            for arm in make_plan(part).arms:
                check_recipe(arm.recipe)
        return
    path.write_text(text if "extends" in content else f"extends: quick/base\n{text}", "utf-8")
    check_recipe(load_recipe(path))


@pytest.fixture
def nothing_long(monkeypatch, tmp_path):
    """Training, studies, reports, benchmarks that end at once; their commands are parsed and checked."""
    report = SimpleNamespace(html=tmp_path / "report.html")
    done = SimpleNamespace(state="finished", step=1, folder=tmp_path, notes=(), report=report)
    monkeypatch.setattr("posattn.recipe.run.train_recipe", lambda *_, **__: done)
    checked = SimpleNamespace(parameters=0, backend="sdpa")
    monkeypatch.setattr(
        "posattn.recipe.check.check_recipe", lambda *_, **__: checked
    )  # no GPU here
    monkeypatch.setattr("posattn.comparison.run.run_study", lambda *_, **__: done)
    monkeypatch.setattr("posattn.comparison.suite.run_suite", lambda *_, **__: done)
    monkeypatch.setattr("posattn.comparison.several.write_comparison", lambda *_: report)
    imported = SimpleNamespace(rows=list, notes=(), summary=str, source="", family="", tasks={})
    imported.has_masked_token_head, imported.record = True, dict
    monkeypatch.setattr("posattn.checkpoints.loading.import_checkpoint", lambda *_, **__: imported)
    exported = SimpleNamespace(reasons=(), notes=(), needs_posattn=True, architecture="")
    monkeypatch.setattr("posattn.checkpoints.export.export_run", lambda *_, **__: exported)
    swapped = SimpleNamespace(dropped=(), new=(), started=(), how="", summary=str)
    monkeypatch.setattr("posattn.checkpoints.swap.swap_checkpoint", lambda *_, **__: swapped)
    monkeypatch.setattr("posattn.comparison.report.write_report", lambda *_: report)
    monkeypatch.setattr("posattn.export.save_graph", lambda *_: 0.0)
    monkeypatch.setattr(
        "posattn.bench.run_bench",
        lambda plan, *_: BenchResult(plan=plan, conditions={}, cases=()),
    )


@pytest.mark.parametrize("text", blocks("sh", "bash"))
def test_a_shell_block_holds_commands_that_work(text, desk, nothing_long, capsys):
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["make"]:
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), line
            continue
        if words[0] == "python":  # tests/test_gpu_check.py runs it
            assert (ROOT / words[1]).is_file(), line
            continue
        if words[0] == "pip" or words[1:3] == ["check-mechanism", "lean"]:
            continue  # tests/kit/test_package.py installs the package and runs its checks
        assert words[0] == "posattn", line
        words = ["rope" if word == "RECIPE" else word for word in words[1:]]
        with pytest.raises(SystemExit) as end:
            run(words)
        expected = 1 if words[0] == "diff" else 0  # as diff(1): the recipes differ
        assert (end.value.code or 0) == expected, f"{line}\n{capsys.readouterr().err}"


def python_block(page, part):
    """Return the Python block of a page that contains `part`."""
    texts = [language_text[1] for language_text in FENCE.findall(page.read_text(encoding="utf-8"))]
    return next(text for text in texts if part in text)


@pytest.mark.parametrize("text", blocks("python"))
def test_a_python_block_compiles(text):
    compile(text, "block", "exec")


def test_the_readme_block_runs(monkeypatch):
    checked = []
    monkeypatch.setattr("posattn.testing.check_mechanism", checked.append)
    names = {}
    exec(python_block(ROOT / "README.md", "load_recipe"), names)
    assert names["logits"].shape == (1, 16, 2000)
    assert names["terms"]
    assert checked == ["rope"]


def test_the_worked_examples_beyond_a_sequence_hold():
    page = ROOT / "docs" / "beyond_a_sequence.md"
    texts = [
        text for language, text in FENCE.findall(page.read_text("utf-8")) if language == "python"
    ]
    assert len(texts) == 3
    names = {}
    for text in texts:
        assert "assert " in text
        exec(text, names)


def test_the_api_block_runs(capsys):
    exec(python_block(ROOT / "docs" / "api.md", "load_recipe"), {})
    assert "rope" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_leads_to_a_page(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).is_file(), target


def test_every_page_is_in_the_navigation():
    nav = YAML(typ="safe", pure=True).load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    listed = {name for entry in nav for name in entry.values()}
    assert listed == {page.name for page in (ROOT / "docs").glob("*.md")}
