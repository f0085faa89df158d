"""YAML out: what is written is read back as the same data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posattn.recipe.reader import read_text
from posattn.recipe.scalars import SourceFloat, plain
from posattn.recipe.writer import write_yaml

KEYS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=8
).filter(lambda key: key != "<<")
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False)
    | st.text(max_size=12)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
def test_anything_written_reads_back_as_the_same(data):
    again = plain(read_text(write_yaml(data), "t.yaml").data)
    assert again == data


@pytest.mark.parametrize(
    "text",
    [
        *("off", "no", "1e-4", "010", "0x1", "null", "~", "true", "", " x ", "a: b", "#c", "-"),
        *("a\nb", "<<", "*a", "&a", "!t", "@x", "'q'", '"d"', "\u2028", "\ufeff", "ünï", "C:\\x"),
        *("{a}", "[a]"),
    ],
)
def test_text_stays_text(text):
    assert read_text(write_yaml({"a": text, "b": [text]}), "t").data == {"a": text, "b": [text]}


def test_the_layout_is_for_people():
    data = {
        "name": "x",
        "list": [1, 2.5],
        "parts": [{"name": "rope", "layers": {"every": 1}}, "alibi", {}],
        "rate": SourceFloat(1e-6, "0.000001"),
        "nothing": {},
    }
    assert write_yaml(data) == (
        "name: x\nlist: [1, 2.5]\nparts:\n  - name: rope\n    layers:\n      every: 1\n"
        "  - alibi\n  - {}\nrate: 1e-06\nnothing: {}\n"
    )


def test_what_is_no_plain_data_is_refused():
    with pytest.raises(TypeError, match="cannot hold a set"):
        write_yaml({"a": {1, 2}})
