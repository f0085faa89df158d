"""Mapping tables: which name becomes which, and the account of every tensor."""

import pytest
import torch

from posattn.checkpoints.mapping import (
    Derived,
    Fill,
    Table,
    apply_table,
    pattern,
    per_head_thirds,
    row_blocks,
    rule,
    times,
)
from posattn.errors import CheckpointError


def test_a_pattern_takes_layers_both_spellings_of_norms_and_a_missing_prefix():
    line = rule("(bert.)layer.{n}.norm.{p}", "layers.{n}.norm.{p}")
    assert line.targets("bert.layer.11.norm.weight") == ("layers.11.norm.weight",)
    assert line.targets("layer.0.norm.gamma") == ("layers.0.norm.weight",)
    assert line.targets("layer.0.norm.beta") == ("layers.0.norm.bias",)
    assert line.targets("other.layer.0.norm.bias") is None
    assert line.targets("layer.x.norm.bias") is None
    assert pattern("a.b").fullmatch("axb") is None


def test_every_tensor_has_an_account():
    stored = {
        "a": torch.ones(2),
        "copy_of_a": torch.ones(2),
        "fused": torch.arange(12.0).view(6, 2),
        "position_ids": torch.arange(3)[None],
        "x.position_ids": torch.arange(3)[None],
        "left": torch.zeros(1),
    }
    table = Table(
        (
            rule("a", "ours"),
            rule("copy_of_a", "ours", how="tied"),
            rule("fused", "q", "k", "v", convert=per_head_thirds(1)),
            rule("left", "not_in_the_model"),
        ),
        fills=(Fill("layers.{n}.bias", 0.0, "the family has none"),),
    )
    wanted = {
        "ours": (2,),
        "q": (2, 2),
        "k": (2, 2),
        "v": (2, 2),
        "layers.3.bias": (4,),
        "new": (1,),
    }
    mapped = apply_table(table, stored, wanted)
    fates = {entry.old or entry.new[0]: entry.fate for entry in mapped.entries}
    assert fates == {
        "a": "mapped",
        "copy_of_a": "copy",
        "fused": "mapped",
        "position_ids": "derived",
        "x.position_ids": "derived",
        "layers.3.bias": "filled",
    }
    assert (mapped.unused, mapped.new) == (["left"], ["new"])
    assert mapped.tensors["k"].tolist() == [[4, 5], [6, 7]]
    assert mapped.tensors["layers.3.bias"].tolist() == [0, 0, 0, 0]


def test_two_tensors_for_one_of_ours_must_be_equal():
    table = Table((rule("a", "ours"), rule("b", "ours")))
    stored = {"a": torch.ones(2), "b": torch.zeros(2)}
    with pytest.raises(CheckpointError, match="b and a are one parameter here"):
        apply_table(table, stored, {"ours": (2,)})


def test_another_shape_than_the_config_asks_for_is_an_error():
    with pytest.raises(CheckpointError, match=r"a gives ours the shape \(2,\).*asks for \(3,\)"):
        apply_table(Table((rule("a", "ours"),)), {"a": torch.ones(2)}, {"ours": (3,)})


def test_the_first_rule_whose_target_the_model_has_is_taken():
    table = Table((rule("a", "one"), rule("a", "two")))
    assert list(apply_table(table, {"a": torch.ones(1)}, {"two": (1,)}).tensors) == ["two"]


def test_a_table_times_a_projection_adds_behind_it_what_it_added_before():
    projection, table, tokens = torch.randn(3, 2), torch.randn(5, 2), torch.randn(5, 2)
    (behind,) = times("x.proj")(table, {"x.proj": projection})
    assert torch.allclose((tokens + table) @ projection.T, tokens @ projection.T + behind)
    with pytest.raises(CheckpointError, match=r"has no x\.proj"):
        times("x.proj")(table, {})


def test_thirds_are_the_rows_of_each_head():
    fused = torch.arange(24)[:, None].expand(-1, 8)  # 2 heads of 4 channels, width 8
    query, key, value = per_head_thirds(2)(fused, {})
    assert query[:, 0].tolist() == [0, 1, 2, 3, 12, 13, 14, 15]
    assert key[:, 0].tolist() == [4, 5, 6, 7, 16, 17, 18, 19]
    assert value[:, 0].tolist() == [8, 9, 10, 11, 20, 21, 22, 23]


def test_rows_can_be_split_into_equal_blocks():
    fused = torch.arange(12.0).view(6, 2)
    found = row_blocks(3)(fused, {})
    assert [part.tolist() for part in found] == [
        fused[:2].tolist(),
        fused[2:4].tolist(),
        fused[4:].tolist(),
    ]


def test_what_is_said_to_be_derived_must_have_the_derived_values():
    counted = Derived(
        "(x.)counts", "counts from 0", expected=lambda stored: torch.arange(len(stored))
    )
    table = Table((), derived=(counted,))
    mapped = apply_table(table, {"x.counts": torch.arange(3), "counts": torch.arange(5)}, {})
    assert [entry.fate for entry in mapped.entries] == ["derived", "derived"]
    with pytest.raises(
        CheckpointError, match=r"x\.counts is computed here.* its values are others"
    ):
        apply_table(table, {"x.counts": torch.tensor([0, 2, 2])}, {})
