"""The commands for authors: new-mechanism, check-mechanism, gallery."""

import json
from typing import Literal

import pytest

from posattn.mechanisms import Mechanism, MechanismConfig
from posattn.mechanisms import registry as mechanisms
from posattn.testing import mechanism_checks


class LiarConfig(MechanismConfig):
    name: Literal["liar"] = "liar"


class Liar(Mechanism[LiarConfig]):
    Config = LiarConfig


@pytest.mark.parametrize("command", ["new-mechanism", "check-mechanism", "gallery"])
def test_every_command_has_help_with_examples(posattn_command, command):
    code, out, _ = posattn_command(command, "--help")
    assert code == 0
    assert f"posattn {command}" in " ".join(out.split())


# torch's own compiler imports a deprecated part of torch when flex is first asked
@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
def test_a_mechanism_that_keeps_its_promises_exits_with_0(posattn_command):
    code, out, err = posattn_command("check-mechanism", "none")
    assert (code, err) == (0, "")
    assert "FAILED" not in out
    assert "what a failure means" in out
    number = len(mechanism_checks("none"))
    assert f"none: {number} of {number} checks passed" in out


def test_a_mechanism_that_breaks_a_promise_exits_with_1(posattn_command, monkeypatch):
    monkeypatch.setitem(mechanisms._entries, "liar", Liar)
    code, out, _ = posattn_command("check-mechanism", "liar", "--json")
    assert code == 1
    result = json.loads(out)
    failed = {row["check"]: row for row in result["checks"] if not row["passed"]}
    assert result["passed"] is False
    row = failed["position_reaches_the_output"]
    assert row["problem"]
    assert "does nothing that the output can see" in row["failure_means"]
    code, out, _ = posattn_command("check-mechanism", "liar")
    assert code == 1
    assert "FAILED" in out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["ropes"], "did you mean 'rope'?"),
        (["rope", "--set", "bas=3"], "did you mean 'base'?"),
        (["rope", "--set", "base=many"], "base"),
        (["rope", "--num-heads", "3"], "num_heads 3 does not divide hidden_size 32"),
    ],
)
def test_a_bad_name_or_option_exits_with_2(posattn_command, arguments, text):
    code, _, err = posattn_command("check-mechanism", *arguments)
    assert code == 2
    assert text in err


def test_every_check_says_what_its_failure_means():
    for name in ("none", "alibi", "learned"):
        for check in mechanism_checks(name):
            assert "This does not hold" not in check.failure_means, check.name


def test_a_new_mechanism_is_written_where_told(posattn_command, tmp_path):
    code, out, _ = posattn_command("new-mechanism", "lean", "--out", tmp_path / "lean")
    assert code == 0
    assert str(tmp_path / "lean/posattn_lean/lean.py") in out
    code, _, err = posattn_command("new-mechanism", "rope", "--out", tmp_path / "rope")
    assert code == 2
    assert "exists already" in err


def test_the_gallery_wants_to_know_where_it_goes(posattn_command):
    code, _, err = posattn_command("gallery")
    assert code == 2
    assert "--out DIR" in err
