"""What FlexAttention refuses, and that its block masks are made once and never used for other tokens.

Compiled kernels are tested in tests/compile; here the same computation runs uncompiled.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch._inductor import cpp_builder, exc
from torch.testing import assert_close

from posattn.backends import AttentionCall, AutoBackend, EagerBackend, FlexBackend
from posattn.bias import (
    BucketScores,
    Causal,
    DenseBias,
    Padding,
    RelativeValues,
    Visibility,
    Window,
)
from posattn.errors import BackendRefusal
from posattn.positions import Distances, GivenPairs

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


@pytest.fixture(autouse=True)
def uncompiled() -> Iterator[None]:
    with torch.compiler.set_stance("force_eager"):
        yield


def call(length: int = 4, batch: int = 2, keys: torch.Tensor | None = None) -> AttentionCall:
    generator = torch.Generator().manual_seed(length)
    states = torch.randn(3, batch, 2, length, 8, generator=generator)
    distance = Distances(torch.arange(length)[None], torch.arange(length)[None])
    bias = BucketScores("b", torch.randn(2, 5, generator=generator), distance.mapped(_bucket))
    keys = torch.ones(batch, length, dtype=torch.bool) if keys is None else keys
    visibility = Visibility((Padding(keys), Window(distance, 64)))
    return AttentionCall(*states, 0.3, bias, visibility)


def _bucket(distance: torch.Tensor) -> torch.Tensor:
    return distance.clamp(-2, 2) + 2


def test_training_on_the_cpu_is_refused_by_name_of_backend_and_device_with_another_to_take():
    learning = replace(call(), query=call().query.requires_grad_())
    with pytest.raises(BackendRefusal, match=r"'flex'.*device cpu.*inference only.*sdpa"):
        FlexBackend().attend(learning)
    with torch.no_grad():
        assert FlexBackend().refusals(learning) == []


def test_a_bias_that_learns_is_training_too():
    table = torch.zeros(1, 2, 4, 4, requires_grad=True)
    assert "no backward" in FlexBackend().refusals(replace(call(), bias=DenseBias("b", table)))[0]


def test_dropout_and_relative_values_and_float64_are_each_refused():
    zeros = GivenPairs(torch.zeros(1, 4, 4, dtype=torch.long))
    values = RelativeValues(torch.ones(1, 8), (zeros,))
    asked = replace(call(), dropout=0.25, relative_values=values, query=call().query.double())
    reasons = "; ".join(FlexBackend().refusals(asked))
    assert "0.25" in reasons
    assert "relative values" in reasons
    assert "not in float64" in reasons
    meta = replace(call(), query=call().query.to("meta"))
    assert FlexBackend().refusals(meta) == ["it runs on cpu and cuda, not on meta"]


def test_without_a_cpp_compiler_it_says_that_it_needs_one(monkeypatch):
    def nothing_found() -> str:
        raise exc.InvalidCxxCompiler

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", nothing_found)
    assert "no C++ compiler was found" in FlexBackend().refusals(call())[0]


def test_lengths_one_after_the_other_are_each_computed_with_their_own_mask():
    backend = FlexBackend()
    for length in (5, 127, 128, 129, 5, 1):
        keys = torch.arange(length)[None] < torch.tensor([[length], [max(1, length - 3)]])
        asked = call(length, keys=keys)
        assert_close(backend.attend(asked), EagerBackend().attend(asked))


def test_layers_of_one_forward_share_a_mask_and_other_tokens_never_do(monkeypatch):
    from torch.nn.attention import flex_attention

    made: list[int] = []
    make = flex_attention.create_block_mask

    def counted(*arguments, **options):
        made.append(1)
        return make(*arguments, **options)

    monkeypatch.setattr(flex_attention, "create_block_mask", counted)
    backend, asked = FlexBackend(), call()
    distance = Distances(torch.arange(4)[None], torch.arange(4)[None])
    for _ in range(2):  # two layers, whose mechanism states its rule anew in each
        ruled = replace(asked, visibility=asked.visibility.with_rules(Causal(distance)))
        assert_close(backend.attend(ruled), EagerBackend().attend(ruled))
    assert len(made) == 1
    keys = torch.ones(2, 4, dtype=torch.bool)
    before = backend.attend(call(keys=keys))
    keys[:, 0] = False  # in place: the next forward hands the same tensor to a new rule
    after = call(keys=keys)
    assert_close(backend.attend(after), EagerBackend().attend(after))
    assert not torch.equal(before, backend.attend(after))


def test_auto_passes_it_over_on_the_cpu():
    auto = AutoBackend()
    auto.attend(call())
    assert "flex" not in auto.chosen
    assert any(candidate.name == "flex" for candidate in auto.candidates)
