"""Position in the values (Shaw et al. 2018), through a mechanism that only these tests know."""

from typing import Any, Literal

import pytest
import torch
from pydantic import NonNegativeInt
from torch import nn
from typing_extensions import override

from posattn.backends import AutoBackend, probabilities
from posattn.bias import QueryScores, RelativeValues
from posattn.errors import BackendRefusal, IncompatibleParts
from posattn.mechanisms import (
    EncoderDims,
    Geometry,
    Mechanism,
    MechanismConfig,
    Site,
    Traits,
    registry,
)
from posattn.positions import clipped
from posattn.testing import check_mechanism
from posattn.testing.mechanism_case import MechanismCase

NAME = "relative_values_for_tests"


class ShawConfig(MechanismConfig):
    name: Literal["relative_values_for_tests"] = "relative_values_for_tests"
    reach: NonNegativeInt = 4

    @override
    def traits(self) -> Traits:
        return Traits(adds_bias=True, adds_values=True, reads_query=True)


class Shaw(Mechanism[ShawConfig]):
    """Query scores of clipped distances, and a row of a table for each attended value."""

    Config = ShawConfig

    def __init__(self, config: ShawConfig, dims: EncoderDims) -> None:
        super().__init__(config, dims)
        rows = 2 * config.reach + 1
        self.key_table = nn.Embedding(rows, dims.head_dim)
        self.value_table = nn.Embedding(rows, dims.head_dim)

    @override
    def prepare(self, geometry: Geometry) -> Any:
        reach = self.config.reach
        return geometry.distance.mapped(lambda apart: reach - clipped(apart, reach))

    @override
    def bias(self, site: Site) -> QueryScores:
        scores = (site.heads.query * site.scale) @ self.key_table.weight.T
        return QueryScores("key", scores, site.prepared)

    @override
    def relative_values(self, site: Site) -> RelativeValues:
        return RelativeValues(self.value_table.weight, (site.prepared,))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._entries, NAME, Shaw)


def test_the_mechanism_passes_every_check() -> None:
    names = {result.name for result in check_mechanism(NAME)}
    assert "backends_equal_eager" in names
    assert len(names) > 25


@pytest.mark.parametrize("reach", [4, 0])
def test_values_are_the_formula_written_as_loops(reach: int) -> None:
    """11 tokens, K = 4: far keys share the last row of 2 K + 1; with K = 0 there is one row."""
    case = MechanismCase(NAME, {"reach": reach}, hidden_size=8, num_heads=2)
    attention, hidden, positions = case.attention(), case.hidden(1, 11), torch.arange(11)[None]
    call = attention.call(hidden, hidden, attention.prepared(positions, positions))
    attended = attention.attention.backend.attend(call)
    probs, table = probabilities(call), attention.stack.mechanisms[NAME].value_table.weight
    for h in range(2):
        for i in range(11):
            rows = [reach + max(-reach, min(reach, j - i)) for j in range(11)]
            expected = sum(
                (probs[0, h, i, j] * (call.value[0, h, j] + table[rows[j]]) for j in range(11)),
                torch.zeros(4, dtype=torch.float64),
            )
            torch.testing.assert_close(attended[0, h, i], expected)


def test_sdpa_by_name_raises_and_auto_takes_eager() -> None:
    case = MechanismCase(NAME)
    ids = case.ids(2, 5)
    with pytest.raises(BackendRefusal, match=r"'sdpa' cannot run.*relative values"):
        case.model(backend="sdpa")(ids)
    automatic = case.model(backend="auto")
    assert torch.equal(automatic(ids).hidden, case.model(backend="eager")(ids).hidden)
    backend = automatic.encoder.backend
    assert isinstance(backend, AutoBackend)
    assert backend.chosen == {"eager"}


def test_two_mechanisms_that_add_values_in_one_layer_are_refused() -> None:
    case = MechanismCase("none")
    model = case.model(mechanism=[{"name": NAME}, {"name": NAME, "reach": 2}])
    with pytest.raises(IncompatibleParts, match="only one mechanism of a layer may add values"):
        model(case.ids(1, 4))
