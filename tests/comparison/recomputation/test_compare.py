"""Two files that say the same, up to rounding, and every place where they do not."""

import json

import pytest

from posattn.comparison.recomputation.compare import compare_json, compare_text


@pytest.fixture
def files(tmp_path):
    def write(one, other):
        for name, content in (("one", one), ("other", other)):
            text = content if isinstance(content, str) else json.dumps(content)
            (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / "one", tmp_path / "other"

    return write


def test_numbers_are_equal_up_to_the_order_of_a_sum(files):
    assert list(compare_json(*files({"a": [0.1 + 0.2]}, {"a": [0.3]}))) == []
    assert list(compare_text(*files("x,0.30000000000000004\n", "x,0.3\n"))) == []


def test_every_path_that_differs_is_named_with_both_values(files):
    stored = {"a": {"b": [1.0, 2.0]}, "c": "x", "v": "1"}
    made = {"a": {"b": [1.0, 2.5]}, "d": True, "v": "2"}
    assert list(compare_json(*files(stored, made), ignored=("v",))) == [
        "a.b.1: the folder has 2.0, recomputed is 2.5",
        'c: the folder has "x", recomputed is nothing',
        "d: the folder has nothing, recomputed is true",
    ]


def test_true_is_not_one_and_null_is_no_number(files):
    assert len(list(compare_json(*files({"a": True, "b": None}, {"a": 1, "b": 0})))) == 2


def test_lines_are_named_by_number(files):
    stored, made = (
        "arm,n,mean\nrope,3,1.25\nalibi-2,3,2\n",
        "arm,n,mean\nrope,3,1.26\nalibi-3,3,2\n",
    )
    found = list(compare_text(*files(stored, made)))
    assert [text.split(":")[0] for text in found] == ["line 2", "line 3"]
    assert found[0] == 'line 2: the folder has "rope,3,1.25", recomputed is "rope,3,1.26"'


def test_a_missing_line_is_a_difference(files):
    (text,) = compare_text(*files("a\n", "a\nb\n"))
    assert text == 'line 2: the folder has nothing, recomputed is "b"'


def test_a_long_value_is_shown_where_it_differs(files):
    long = "word " * 40
    (text,) = compare_json(*files({"a": f"{long}one"}, {"a": f"{long}two"}))
    assert 'the folder has "...word word word one", recomputed is "...word word word two"' in text
