"""A third-party package, installed with pip, is used through the command line like what ships."""

import json
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "plugin"
RECIPE = """\
encoder:
  hidden_size: 16
  num_layers: 2
  num_heads: 2
  mechanism: {name: even_bonus, first_value: 0.5}
data: {corpus: {name: pydoc}, tokenizer: {name: characters}, max_length: 16}
train: {steps: 2, batch_size: 4, evaluation_tokens: 200}
"""
OTHERS = """\
extends: plugin.yaml
encoder: {backend: patient}
decoder: {name: everywhere}
objective: {name: every_nth, every: 4}
data: {corpus: {name: counting}, tokenizer: {name: letters}}
"""
STUDY = """\
name: plugged
description: plug-ins of every kind in one study
base: others.yaml
varies: [encoder.mechanism]
arms:
  none: {encoder.mechanism: {name: none}}
  even: {encoder.mechanism: {name: even_bonus}}
baseline: none
seeds: [0]
primary: validation_loss
evaluations: [{name: validation, tokens: 200}, {name: weight}]
"""
REFUSED = {
    "wrong_hook": "WrongHook.bias(self, query, key) has the wrong signature; it is called as bias(self",
    "takes_layers": "the option 'layers' of TakesLayersConfig shadows posattn's own",
    "function": "a_function is not a class; it must be a class derived from Mechanism",
    "gone": "No module named 'posattn_samples.not_there'",
}


@pytest.fixture
def recipes(tmp_path):
    for name, text in {"plugin": RECIPE, "others": OTHERS, "study": STUDY}.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def test_plug_ins_of_every_kind_work_and_broken_ones_stop_nothing(recipes, install, posattn_beside):
    site = install(SOURCE)

    def call(*arguments, code=0):
        done = posattn_beside(site, *arguments)
        assert done.returncode == code, done.stderr
        return done

    listing = call("list", "mechanisms", "--json")
    rows = {row["name"]: row for row in json.loads(listing.stdout) if "summary" in row}
    broken = {row["name"]: row for row in json.loads(listing.stdout) if "problem" in row}
    assert rows["even_bonus"]["summary"] == "One learned number per head"
    assert rows["even_bonus"]["from"] == "posattn-samples"
    assert rows["rope"]["from"] == "posattn"
    assert set(broken) == {*REFUSED, "rope"}
    assert "the name is already taken" in broken["rope"]["problem"]
    for name, text in REFUSED.items():
        assert text in broken[name]["problem"]
        assert f"'{name}' of the package 'posattn-samples' is left out" in listing.stderr
    refused = call("validate", "rope", "--set", "encoder.mechanism=wrong_hook", code=2)
    assert "comes from the package 'posattn-samples', which cannot be used" in refused.stderr
    refused = call("check-mechanism", "wrong_hook", code=1)
    assert "comes from the package 'posattn-samples', which cannot be used" in refused.stderr

    schema = json.loads(call("schema").stdout)
    choices = schema["$defs"]["EncoderConfig"]["properties"]["mechanism"]
    assert '"title": "even_bonus"' in json.dumps(choices)
    assert '"wrong_hook"' not in json.dumps(choices)

    call("validate", recipes / "study.yaml")
    trained = call("train", recipes / "plugin.yaml", "--out", "run")
    assert "Finished 2 steps" in trained.stdout
    compared = call("compare", recipes / "study.yaml", "--out", "study", "--jobs", "1")
    assert "Report:" in compared.stdout
    assert "even_bonus" in (recipes / "study/report.html").read_text()
