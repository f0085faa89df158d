"""Counted operations equal those that torch's counter sees."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from posattn.mechanisms.base import mechanisms
from posattn.recipe.build import build
from posattn.recipe.flops import TRAINING_FACTOR, count_flops
from posattn.recipe.schema import load_recipe

BATCH, LENGTH, DECODED = 2, 16, 4


def counted(recipe, *, backward=False) -> int:
    """Return what torch counts in one forward with the same number of decoded places in each row.

    With `backward` it is a training step, without the optimizer.
    """
    model = build(recipe).train()  # in eval, projections of tables are remembered
    ids = torch.randint(0, 50, (BATCH, LENGTH))
    selected = torch.zeros(BATCH, LENGTH, dtype=torch.bool)
    selected[:, : DECODED - 1] = True
    selected[:, -1] = True  # with the first, so that every distance occurs
    with FlopCounterMode(display=False) as counter:
        output = model(ids, selected=selected, segments=torch.zeros_like(ids))
        if backward:
            output.logits.sum().backward()
    return counter.get_total_flops()


@pytest.mark.parametrize(
    "mechanism",
    [
        "none",
        "learned",
        "sinusoidal",
        "rope",
        "alibi",
        "transformer_xl",
        "{name: transformer_xl, clamp_distance: 3}",
        "{name: transformer_xl, segment_term: true}",
        "{name: disentangled, projections: own, buckets: {name: clipped, max_distance: 64}}",
        "{name: disentangled, projections: shared, buckets: {name: clipped, max_distance: 64}}",
        "{name: disentangled, buckets: {name: clipped, max_distance: 4}}",
        "{name: disentangled, p2c: false}",
        "{name: disentangled, c2p: false, p2p: true}",
        "t5",
        "shaw",
        "{name: shaw, max_distance: 3, adds_to: keys}",
        "{name: shaw, max_distance: 4, adds_to: values}",
        "kerple",
        "sandwich",
        "fire",
        "{name: fire, shared: true, hidden_layers: 1, form: sign_input}",
        "[{name: rope}, {name: fire, shared: true, layers: [0]}]",
        "{name: tupe, max_positions: 20}",
        "{name: tupe, max_positions: 20, untie_cls: false, relative: {}}",
        "mlp",
        "{name: mlp, share: layer, width: 6, depth: 3, layers: [1]}",
        "relative_logits",
        "pope",
        "{name: dape, mechanism: alibi, width: 5}",
        "{name: dape, mechanism: {name: disentangled, c2p: false}}",
        "cope",
        "{name: cope, causal: true, max_position: 5}",
        "{name: relative_logits, extent: 4, rank: 3}",
        "{name: relative_logits, extent: 4, causal: true}",
        "[{name: rope, layers: [0]}, {name: disentangled, layers: [1]}]",
    ],
)
@pytest.mark.parametrize(
    "shape",
    [
        [],
        ["decoder={name: plain, decode: all}"],
        ["decoder={name: emd}"],
        ["decoder={name: emd, decode: all, layers: 1}"],
        ["encoder.activation=geglu", "encoder.intermediate_size=48"],
    ],
    ids=["plain", "all", "emd", "emd_all", "gated"],
)
def test_the_count_is_that_of_torch(tiny, mechanism, shape):
    recipe = load_recipe(tiny, [f"encoder.mechanism={mechanism}", "encoder.backend=eager", *shape])
    count = count_flops(recipe, batch_size=BATCH, decoded=DECODED)
    assert count.total * BATCH * LENGTH == pytest.approx(counted(recipe), rel=1e-9)


@pytest.mark.parametrize(
    "shape",
    [
        ["encoder.token_rows=77"],
        ["encoder.embedding_size=12"],
        [
            "encoder.embedding_size=12",
            "encoder.embedding_projection=sum",
            "encoder.activation=reglu",
        ],
        ["head.transform=false"],
        ["encoder.convolution={kernel_size: 5, groups: 2}", "encoder.num_layers=2"],
    ],
)
def test_what_stands_around_the_layers_is_counted(tiny, shape):
    recipe = load_recipe(tiny, ["encoder.backend=eager", *shape])
    found = count_flops(recipe, length=LENGTH, batch_size=BATCH, decoded=DECODED)
    assert found.total * BATCH * LENGTH == pytest.approx(counted(recipe))


GRID = "{name: grid, rows: 3, columns: 5, outside: 1}"
JOINT = "{name: grid, rows: 4, columns: 4, offsets: joint}"


@pytest.mark.parametrize(
    ("mechanism", "relation"),
    [
        ("{name: disentangled, p2p: true, buckets: {name: clipped, max_distance: 64}}", GRID),
        ("{name: disentangled, projections: own, buckets: {name: log, num_buckets: 4}}", JOINT),
        ("{name: shaw, max_distance: 3}", GRID),
        ("{name: shaw, max_distance: 3, share_heads: false, adds_to: keys}", JOINT),
        ("mlp", GRID),
    ],
)
def test_the_count_on_a_grid_is_that_of_torch(tiny, mechanism, relation):
    overrides = [f"encoder.mechanism={mechanism}", f"encoder.relation={relation}"]
    recipe = load_recipe(tiny, [*overrides, "encoder.backend=eager"])
    count = count_flops(recipe, batch_size=BATCH, decoded=DECODED)
    assert count.total * BATCH * LENGTH == pytest.approx(counted(recipe), rel=1e-9)


def test_memory_lengthens_the_keys(tiny):
    overrides = ["encoder.mechanism={name: transformer_xl, memory_length: 8}", "data.order=streams"]
    recipe = load_recipe(tiny, [*overrides, "encoder.backend=eager"])
    count = count_flops(recipe, batch_size=BATCH, decoded=DECODED)
    assert count.total * BATCH * LENGTH == pytest.approx(counted(recipe), rel=1e-9)


def test_defaults_come_from_the_recipe(tiny):
    recipe = load_recipe(tiny, ["objective.probability=0.25"])
    assert recipe.objective.targets_in(64) == 16.0
    explicit = count_flops(recipe, length=16, batch_size=4, vocab_size=50, decoded=4)
    assert count_flops(recipe) == explicit
    assert explicit.total == sum(
        (
            explicit.projections,
            explicit.attention,
            explicit.feed_forward,
            explicit.mechanism,
            explicit.head,
        )
    )


SPELLED = {
    "randomized": "{name: randomized, mechanism: rope}",
    "dape": "{name: dape, mechanism: alibi}",
    "xpos": "{name: xpos, causal: true}",
}
READ_CONSTANTS = {"transformer_xl", "mlp"}
"""Mechanisms that multiply matrices with constants, which need no gradient."""


@pytest.mark.parametrize("mechanism", mechanisms.names())
def test_a_training_step_takes_three_forwards_or_less_by_the_gradient_of_constants(tiny, mechanism):
    spelled = SPELLED.get(mechanism, mechanism)
    recipe = load_recipe(tiny, [f"encoder.mechanism={spelled}", "encoder.backend=eager"])
    forward = count_flops(recipe, batch_size=BATCH, decoded=DECODED)
    wanted = TRAINING_FACTOR * forward.total * BATCH * LENGTH
    found = counted(recipe, backward=True)
    if mechanism in READ_CONSTANTS:
        assert wanted - forward.mechanism * BATCH * LENGTH <= found < wanted
    else:
        assert found == pytest.approx(wanted, rel=1e-9)
