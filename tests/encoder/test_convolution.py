"""The convolution beside the first layer, a narrow token table, more rows than ids, norms without bias."""

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor
from torch.nn import functional

from posattn.encoder.init import initialize
from posattn.encoder.model import MaskedLanguageModel
from posattn.errors import IncompatibleParts

from .small_models import HIDDEN, VOCAB, config, decoder, ids, largest, model

CONVOLUTION = {"kernel_size": 3, "groups": 2, "activation": "gelu"}


@torch.no_grad()
def test_the_branch_is_a_convolution_of_the_embeddings_by_loops() -> None:
    made = model("rope", convolution=CONVOLUTION).double()
    encoder, tokens = made.encoder, ids(1, 5)
    context = encoder.begin(tokens)
    embedded = encoder.embed(tokens, None, context)
    first = encoder.layers[0](embedded, embedded, context.prepared)
    branch = encoder.convolution
    mixed = branch.conv.bias.expand(5, -1).clone()
    half = HIDDEN // 2
    for place in range(5):
        for tap in range(3):
            if 0 <= (source := place + tap - 1) < 5:
                for group in (slice(0, half), slice(half, HIDDEN)):
                    weight: Tensor = branch.conv.weight[group, :, tap]
                    mixed[place, group] += weight @ embedded[0, source, group]
    expected = branch.norm(first + functional.gelu(mixed))
    found = encoder.run(embedded, context)[1]
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@torch.no_grad()
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_gives_the_convolution_nothing(side: str) -> None:
    made = model("rope", convolution=CONVOLUTION)
    alone = made(ids(1, 4)).logits
    padding = torch.full((1, 3), 5)
    visible = torch.arange(7)[None] < 4
    tokens = torch.cat([ids(1, 4), padding], 1)
    if side == "left":
        tokens, visible = torch.cat([padding, ids(1, 4)], 1), visible.flip(1)
    assert largest(made(tokens, visible=visible).logits[visible], alone[0]) < 1e-5


def test_texts_that_must_not_see_each_other_are_refused() -> None:
    made = model("rope", convolution=CONVOLUTION)
    with pytest.raises(IncompatibleParts, match=r"neighbours.*data\.layout: padded"):
        made(ids(1, 4), documents=torch.tensor([[0, 0, 1, 1]]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"convolution": {"kernel_size": 4}}, "kernel_size 4 is even.*use 3 or 5"),
        ({"convolution": {"groups": 3}}, "groups 3 does not divide hidden_size 16"),
        ({"convolution": {}, "num_layers": 1}, "num_layers is 1"),
        ({"embedding_size": HIDDEN}, "embedding_size 16 is hidden_size"),
        ({"norm": {"kind": "rms_norm", "bias": False}}, "rms_norm has no bias"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        config("none", **options)


def test_a_convolution_starts_from_seed_and_name() -> None:
    first, second = (
        MaskedLanguageModel(config("none", convolution=CONVOLUTION), decoder(), VOCAB)
        for _ in range(2)
    )
    for made in (first, second):
        initialize(made, 3)
    weights = [made.encoder.convolution.conv.weight for made in (first, second)]
    assert torch.equal(*weights)
    assert 0.015 < float(weights[0].detach().std()) < 0.025
    assert not first.encoder.convolution.conv.bias.any()


@torch.no_grad()
def test_a_narrow_table_is_projected_in_and_the_head_reads_it_narrow() -> None:
    made = model("none", embedding_size=6, embedding_norm=False)
    encoder, tokens = made.encoder, ids(2, 3)
    assert encoder.tokens.weight.shape == (VOCAB, 6)
    context = encoder.begin(tokens)
    expected = encoder.tokens.weight[tokens] @ encoder.embedding_proj.weight.T
    torch.testing.assert_close(encoder.embed(tokens, None, context), expected)
    assert made.head.proj.weight.shape == (6, HIDDEN)
    assert made.head.output.weight is encoder.tokens.weight
    assert made(tokens).logits.shape == (2, 3, VOCAB)


def test_a_table_may_have_more_rows_than_ids_and_not_fewer() -> None:
    made = MaskedLanguageModel(config("none", token_rows=20), decoder(), VOCAB)
    assert made.encoder.tokens.num_embeddings == 20
    with pytest.raises(IncompatibleParts, match=r"token_rows is 12, but the tokenizer has 13 ids"):
        MaskedLanguageModel(config("none", token_rows=12), decoder(), VOCAB)


def test_norms_without_bias_have_none() -> None:
    names = {name for name, _ in model("none", norm={"bias": False}).named_parameters()}
    assert "encoder.layers.0.attention_norm.weight" in names
    assert not any("norm" in name and name.endswith("bias") for name in names)


@torch.no_grad()
def test_a_segment_table_of_one_row_needs_no_ids() -> None:
    made = model("none", segments=1)
    tokens = ids(1, 4)
    with_ids = made(tokens, segments=torch.zeros_like(tokens)).logits
    assert torch.equal(made(tokens).logits, with_ids)
