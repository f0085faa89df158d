"""A third-party package, installed with pip, is used through the command line like what ships."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

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
varies: [encoder.mechanism, decoder]
arms:
  none: {encoder.mechanism: {name: none}}
  even: {encoder.mechanism: {name: even_bonus}}
  marked: {encoder.mechanism: {name: even_bonus}, decoder: {name: emd, inject: {name: odd_mark}}}
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
    foreign = recipes / "foreign"
    foreign.mkdir()
    (foreign / "config.json").write_text('{"model_type": "only-tokens"}')
    save_file({"table": torch.zeros(5, 4)}, foreign / "model.safetensors")
    wanted = ["import", foreign, "--out", recipes / "imported", "--accept-new", "encoder.*"]
    listing, heads, imported, *rest = posattn_beside(
        install(SOURCE),
        ["list", "mechanisms", "--json"],
        ["list", "tasks"],
        wanted,
        ["validate", "rope", "--set", "encoder.mechanism=wrong_hook"],
        ["check-mechanism", "wrong_hook"],
        ["schema"],
        ["validate", recipes / "study.yaml"],
        ["train", recipes / "plugin.yaml", "--out", "run"],
        ["compare", recipes / "study.yaml", "--out", "study", "--jobs", "1"],
    )
    needs_broken, checks_broken, schema, valid, trained, compared = rest
    _check_listing(*listing)
    assert "loudness" in heads[1]
    assert imported[0] == 0, imported[2]
    assert "1 tensors mapped" in imported[1]
    assert needs_broken[0] == 2
    assert checks_broken[0] == 1
    for _, _, err in (needs_broken, checks_broken):
        assert "comes from the package 'posattn-samples', which cannot be used" in err

    assert schema[0] == 0
    choices = json.loads(schema[1])["$defs"]["EncoderConfig"]["properties"]["mechanism"]
    assert '"title": "even_bonus"' in json.dumps(choices)
    assert '"wrong_hook"' not in json.dumps(choices)

    assert valid[0] == 0, valid[2]
    assert trained[0] == 0, trained[2]
    assert "Finished 2 steps" in trained[1]
    assert compared[0] == 0, compared[2]
    report = (recipes / "study/report.html").read_text()
    assert "even_bonus" in report
    assert "odd_mark" in report


def _check_listing(code, out, err):
    assert code == 0
    rows = {row["name"]: row for row in json.loads(out) if "summary" in row}
    broken = {row["name"]: row for row in json.loads(out) if "problem" in row}
    assert rows["even_bonus"]["summary"] == "One learned number per head"
    assert rows["even_bonus"]["from"] == "posattn-samples"
    assert rows["rope"]["from"] == "posattn"
    assert set(broken) == {*REFUSED, "rope"}
    assert "the name is already taken" in broken["rope"]["problem"]
    for name, text in REFUSED.items():
        assert text in broken[name]["problem"]
        assert f"'{name}' of the package 'posattn-samples' is left out" in err
