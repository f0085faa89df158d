"""Positions on a grid as in transformers' vision models: rotations, sinusoids, tables and networks."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.models.beit.modeling_beit import BeitConfig, BeitRelativePositionBias
from transformers.models.dinov3_vit import modeling_dinov3_vit as dinov3
from transformers.models.layoutlmv3.modeling_layoutlmv3 import LayoutLMv3Config, LayoutLMv3Encoder
from transformers.models.pixtral import modeling_pixtral as pixtral
from transformers.models.sam2_video import modeling_sam2_video as sam2
from transformers.models.swinv2.modeling_swinv2 import Swinv2Config, Swinv2SelfAttention
from transformers.models.vit_mae.modeling_vit_mae import build_2d_sinusoidal_position_embedding

from posattn.mechanisms import EncoderDims, Geometry, Heads, MLPBias, RotaryPositions, T5Bias
from posattn.mechanisms import registry as mechanisms
from posattn.relations import GridRelation

from .originals import TOLERANCE

Record = Callable[[str, object], None]
HEADS, WIDTH = 2, 16


def mechanism_of(name: str, grid: GridRelation, **options: Any) -> Any:
    entry = mechanisms.get(name)
    config, dims = entry.Config(**options), EncoderDims(HEADS * WIDTH, HEADS, relation=grid)
    assert not config.problems(dims)
    return entry(config, dims)


def places(count: int) -> Geometry:
    return Geometry(torch.arange(count)[None], torch.arange(count)[None])


def states(count: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, HEADS, count, WIDTH, generator=generator, dtype=torch.float64)


def turned(rope: RotaryPositions, count: int) -> tuple[Tensor, Tensor]:
    query, key = states(count, 0), states(count, 1)
    heads = rope.rotate(Heads(query, key, query), rope.prepare(places(count)))
    return heads.query, heads.key


def axes(rows: int, columns: int) -> Tensor:
    """Return the row and the column of every cell, as the originals take them."""
    return torch.stack(
        [torch.arange(rows).repeat_interleave(columns), torch.arange(columns).repeat(rows)]
    )[None]


def settle(found: Tensor, expected: Tensor, record: Record) -> None:
    gap = float((found - expected).abs().max())
    record("difference", gap)
    assert gap <= TOLERANCE


def test_alternating_axes_turn_as_pixtrals(record_property: Record) -> None:
    config = pixtral.PixtralVisionConfig(hidden_size=HEADS * WIDTH, num_attention_heads=HEADS)
    original = pixtral.PixtralVisionRotaryEmbedding(config)
    cosine, sine = original(states(15, 0), axes(3, 5))
    expected = pixtral.apply_rotary_pos_emb(states(15, 0), states(15, 1), cosine, sine)
    rope = mechanism_of("rope", GridRelation(rows=3, columns=5), axes="alternating")
    settle(torch.cat(turned(rope, 15)), torch.cat(expected), record_property)


def test_split_axes_turn_as_sam2s(record_property: Record) -> None:
    config = sam2.Sam2VideoConfig(
        memory_attention_hidden_size=WIDTH,
        memory_attention_downsample_rate=1,
        memory_attention_num_attention_heads=1,
    )
    original = sam2.Sam2VideoVisionRotaryEmbedding(config)
    cosine, sine = original(states(15, 0), axes(5, 3))
    expected = sam2.apply_rotary_pos_emb_2d(
        states(15, 0).float(), states(15, 1).float(), cosine, sine
    )
    rope = mechanism_of("rope", GridRelation(rows=5, columns=3), layout="interleaved")
    settle(torch.cat(turned(rope, 15)), torch.cat(expected).double(), record_property)


def test_logits_between_cells_are_dinov3s(record_property: Record) -> None:
    side = 16  # cells are 2 / side apart there, and an angle is 2 pi times that
    config = dinov3.DINOv3ViTConfig(
        hidden_size=HEADS * WIDTH, num_attention_heads=HEADS, image_size=side, patch_size=1
    )
    original = dinov3.DINOv3ViTRopePositionEmbedding(config).eval()
    cosine, sine = original(torch.zeros(1, 3, side, side))
    query, key = dinov3.apply_rotary_pos_emb(
        states(side**2, 0), states(side**2, 1), cosine.double(), sine.double()
    )
    rope = mechanism_of(
        "rope",
        GridRelation(rows=side, columns=side),
        base=config.rope_theta,
        scaling={"kind": "linear", "factor": side / (4 * torch.pi)},
    )
    ours = turned(rope, side**2)
    settle(ours[0] @ ours[1].mT / WIDTH, query @ key.mT / WIDTH, record_property)


def test_sinusoids_are_maes_with_zeros_for_cls(record_property: Record) -> None:
    expected = build_2d_sinusoidal_position_embedding(
        4, 6, HEADS * WIDTH, cls_token=True, dtype=torch.float64
    )
    grid = GridRelation(rows=4, columns=6, outside=1)
    ours = mechanism_of("sinusoidal", grid, order="concatenated")
    found = ours.embed(
        torch.zeros(1, 25, HEADS * WIDTH, dtype=torch.float64), torch.arange(25)[None]
    )
    settle(found[0], expected, record_property)


@torch.no_grad()
@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (3, 5)])
def test_a_joint_table_is_beits(rows: int, columns: int, record_property: Record) -> None:
    config = BeitConfig(image_size=(rows, columns), patch_size=1, num_attention_heads=HEADS)
    original = BeitRelativePositionBias(config)
    nn.init.normal_(original.relative_position_bias_table)
    index = original.generate_relative_position_index((rows, columns))
    expected = original.relative_position_bias_table[index].permute(2, 0, 1)
    grid = GridRelation(rows=rows, columns=columns, outside=1, offsets="joint")
    exact = max(rows, columns)  # one bucket for each offset
    ours = mechanism_of("t5", grid, num_buckets=4 * exact, max_distance=exact + 1)
    assert isinstance(ours, T5Bias)
    # T5 has columns to the left first, then those to the right; BEiT counts from the far right on
    row = [2 * exact + size if size else 0 for size in range(exact)][:0:-1] + list(range(exact))
    middle = exact - 1
    for down in range(1 - rows, rows):
        for right in range(1 - columns, columns):
            place = (down + rows - 1) * (2 * columns - 1) + right + columns - 1
            ours.table.weight[row[middle + down] * 4 * exact + row[middle + right]] = (
                original.relative_position_bias_table[place]
            )
    ours.table.weight[-3:] = original.relative_position_bias_table[-3:]
    bias = ours.prepare(places(1 + rows * columns))
    assert bias is not None
    settle(bias.materialize()[0], expected, record_property)


@torch.no_grad()
def test_factorised_buckets_at_given_coordinates_are_layoutlmv3s(record_property: Record) -> None:
    config = LayoutLMv3Config(
        hidden_size=HEADS * WIDTH,
        num_attention_heads=HEADS,
        num_hidden_layers=1,
        rel_2d_pos_bins=16,
    )
    original = LayoutLMv3Encoder(config)
    generator = torch.Generator().manual_seed(2)
    corners = torch.randint(0, 1000, (2, 9, 2), generator=generator)  # bottom edge, left edge
    corners[:, 1:4] = corners[:, :1] + torch.tensor([[0, 3], [1, 0], [12, 40]])
    boxes = torch.zeros(2, 9, 4, dtype=torch.long)
    boxes[..., 3], boxes[..., 0] = corners.unbind(-1)
    expected = original._cal_2d_pos_emb(boxes)
    grid = GridRelation(rows=1100, columns=1100)
    far = config.max_rel_2d_pos
    ours = mechanism_of("t5", grid, num_buckets=16, max_distance=far)
    linears = (original.rel_pos_y_bias, original.rel_pos_x_bias)
    ours.table.weight.copy_(torch.cat([linear.weight.T for linear in linears]))
    positions = grid.positions(corners, (2, 9))
    bias = ours.prepare(Geometry(positions, positions))
    settle(bias.materialize(), expected, record_property)


@torch.no_grad()
def test_the_network_of_offsets_is_swins(record_property: Record) -> None:
    window = 4
    config = Swinv2Config()
    original = Swinv2SelfAttention(config, HEADS * WIDTH, HEADS, window)
    raw = original.continuous_position_bias_mlp(original.relative_coords_table).view(-1, HEADS)
    expected = 16 * raw[original.relative_position_index].sigmoid().permute(2, 0, 1)
    ours = mechanism_of(
        "mlp",
        GridRelation(rows=window, columns=window),
        coordinate="swin",
        max_distance=window - 1,
        width=512,
        depth=1,
        activation="relu",
        output_bias=False,
        bound=16.0,
    )
    assert isinstance(ours, MLPBias)
    theirs = original.continuous_position_bias_mlp
    ours.network.inner[0].load_state_dict(theirs[0].state_dict())
    ours.network.output.load_state_dict(theirs[2].state_dict())
    prepared = ours.prepare(places(window**2))
    assert prepared.scores is not None
    settle(prepared.scores[:, prepared.bucket.pairs[0]], expected, record_property)
