"""`posattn doctor` and `posattn list backends`: the matrix with its reasons, as a table and as JSON."""

import json


def test_the_table_has_a_number_at_each_no_and_its_reason_below(posattn_command):
    code, out, err = posattn_command(
        "doctor", "--mechanism", "shaw", "--backend", "sdpa", "--device", "cpu"
    )
    assert (code, err) == (0, "")
    assert "torch: " in out
    assert "no: 1" in out
    assert "1: sdpa: it never forms the probabilities" in out
    assert "cuda" not in out


def test_json_has_every_answer_and_says_which_devices_are_not_there(posattn_command):
    code, out, _ = posattn_command("doctor", "--mechanism", "none", "--backend", "flex", "--json")
    found = json.loads(out)
    assert code == 0
    answers = [answer for answer in found["answers"] if answer["device"] == "cpu"]
    assert len(answers) == 4 * 3 * 2
    assert all(answer["able"] == (not answer["reasons"]) for answer in answers)
    assert {answer["device"] for answer in found["answers"]} | set(found["absent"]) == {
        "cpu",
        "cuda",
    }


def test_a_condition_that_a_reason_depends_on_is_named(posattn_command):
    _, out, _ = posattn_command(
        "doctor", "--mechanism", "none", "--backend", "flex", "--device", "cpu"
    )
    assert "yes, but 1, 2, 3" in out
    assert "flex (training)" in out
    assert "flex (float64)" in out


def test_unknown_names_are_refused_with_the_known_ones(posattn_command):
    code, _, err = posattn_command("doctor", "--device", "tpu")
    assert code == 2
    assert "cpu, cuda" in err
    code, _, err = posattn_command("doctor", "--backend", "sdap")
    assert code == 2
    assert "did you mean 'sdpa'" in err


def test_the_list_of_backends_shows_what_each_refuses(posattn_command):
    code, out, _ = posattn_command("list", "backends", "--json")
    assert code == 0
    rows = {row["name"]: row for row in json.loads(out)}
    assert rows["eager"]["refuses"] == {}
    assert list(rows["sdpa"]["refuses"]) == ["shaw"]
