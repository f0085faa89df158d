"""CAPE: the sinusoids of the authors' code, and the augmentation's formula and ranges."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from posattn.encoder.config import EncoderConfig
from posattn.mechanisms import CAPE, CAPEConfig, EncoderDims, Places
from posattn.testing.mechanism_case import MechanismCase
from posattn.training.determinism import seed_noise

GOLDEN = json.loads((Path(__file__).parent / "golden_cape.json").read_text())


def mechanism(hidden_size: int = 6, **options: Any) -> CAPE:
    return CAPE(CAPEConfig.model_validate(options), EncoderDims(hidden_size, 1))


def placed(positions: torch.Tensor, seed: int, rows: int = 1, **options: Any) -> torch.Tensor:
    torch.manual_seed(seed)
    return mechanism(**options).place(Places(positions, None, True, rows))


@pytest.mark.parametrize("case", GOLDEN, ids=["text", "centred and scaled"])
def test_evaluation_equals_the_code_of_the_authors(case: dict[str, Any]) -> None:
    cape = mechanism(
        case["d_model"],
        centred=case["normalize"],
        position_scale=case["delta"],
        frequency_scale=case["freq_scale"],
    )
    positions = torch.arange(case["tokens"])[None]
    hidden = torch.zeros(1, case["tokens"], case["d_model"], dtype=torch.float64)
    found = cape.embed(hidden, cape.place(Places(positions)))[0]
    expected = torch.tensor(case["added"], dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("order", ["interleaved", "concatenated"])
def test_real_positions_have_the_sinusoids_of_the_formula(order: str) -> None:
    cape = mechanism(6, order=order, base=50.0, frequency_scale=1.5)
    found = cape.embed(torch.zeros(1, 2, 6, dtype=torch.float64), torch.tensor([[-0.25, 7.125]]))
    for index, position in enumerate((-0.25, 7.125)):
        for t in range(3):
            angle = position * 1.5 * 50.0 ** (-2 * t / 6)
            sine, cosine = (2 * t, 2 * t + 1) if order == "interleaved" else (t, 3 + t)
            assert float(found[0, index, sine]) == pytest.approx(math.sin(angle), abs=1e-12)
            assert float(found[0, index, cosine]) == pytest.approx(math.cos(angle), abs=1e-12)


def test_each_part_of_the_augmentation_moves_what_it_says_within_its_range() -> None:
    positions, rows = torch.arange(6)[None], 40
    nothing = {"global_shift": 0.0, "local_shift": 0.0, "max_scale": 1.0}
    shift = placed(positions, 0, rows, **{**nothing, "global_shift": 3.0}) - positions
    assert shift.shape == (rows, 6)
    torch.testing.assert_close(shift, shift[:, :1].expand(-1, 6))
    assert 2.0 < float(shift.abs().max()) <= 3.0
    assert float(shift.min()) < 0 < float(shift.max())
    local = placed(positions, 0, rows, **{**nothing, "local_shift": 0.5}) - positions
    assert 0.4 < float(local.abs().max()) <= 0.5
    assert float((local[:, 0] - local[:, 1]).abs().max()) > 0.1
    scale = placed(positions, 0, rows, **{**nothing, "max_scale": 1.5})[:, 1:] / positions[:, 1:]
    torch.testing.assert_close(scale, scale[:, :1].expand(-1, 5))
    assert 1.4 < float(scale.max()) <= 1.5
    assert 1 / 1.5 <= float(scale.min()) < 1 / 1.4


def test_shifts_come_before_the_scale() -> None:
    """The origin moves by the shift, and then everything is scaled around zero."""
    options = {"global_shift": 4.0, "local_shift": 0.0, "max_scale": 2.0}
    found = placed(torch.arange(5)[None], 3, 8, **options)
    scale = found[:, 1:2] - found[:, :1]
    shift = found[:, :1] / scale
    torch.testing.assert_close(found, (torch.arange(5) + shift) * scale)
    assert bool((shift.abs() <= 4.0).all())
    assert bool((scale.log().abs() <= math.log(2.0)).all())


def test_the_default_local_shift_keeps_the_order() -> None:
    for seed in range(20):
        found = placed(torch.arange(30)[None], seed, 4)
        assert bool((found.diff(dim=1) > 0).all())


def test_texts_of_a_packed_row_are_centred_and_shifted_each_by_itself() -> None:
    positions, documents = torch.tensor([[0, 1, 2, 0, 1]]), torch.tensor([[5, 5, 5, 9, 9]])
    cape = mechanism(centred=True, local_shift=0.0, max_scale=1.0)
    assert cape.place(Places(positions, documents)).tolist() == [[-1.0, 0.0, 1.0, -0.5, 0.5]]
    torch.manual_seed(0)
    moved = cape.place(Places(positions, documents, True)) - cape.place(
        Places(positions, documents)
    )
    torch.testing.assert_close(moved[0, :3], moved[0, :1].expand(3))
    assert float((moved[0, 3] - moved[0, 0]).abs()) > 1e-3
    padded = torch.tensor([[0, 1, 2, -1, -1]])
    assert cape.place(Places(padded))[0, :3].tolist() == [-1.0, 0.0, 1.0]


def test_training_noise_alone_decides_and_evaluation_is_plain() -> None:
    case = MechanismCase("cape")
    model, ids = case.model().train(), case.ids(2, 6)
    seen = []
    for step in (7, 7, 8):
        torch.rand(step)
        seed_noise(0, step, 0)
        seen.append(model.encoder.begin(ids).placed["cape"])
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[0], seen[2])
    assert not torch.equal(seen[0][0], seen[0][1])  # every text has its own
    plain = MechanismCase("sinusoidal").model()
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(model.eval().encoder(ids), plain.encoder(ids))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"global_shift": 0.0, "local_shift": 0.0, "max_scale": 1.0}, "use sinusoidal"),
        ({"max_scale": 0.9}, "greater than or equal to 1"),
        ({"local_shift": -1.0}, "greater than or equal to 0"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, float], text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        EncoderConfig(mechanism={"name": "cape", **options})


def test_the_card_tells_the_ranges() -> None:
    card = CAPEConfig().card(EncoderDims(8, 1))
    assert card["in training"] == (
        "texts shifted by up to 5 and scaled by up to 1.03, tokens shifted by up to 0.5"
    )
