"""Randomized positions: which values are drawn, from what, and that the wrapped mechanism is whole."""

import itertools
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import MaskDecoderConfig
from posattn.errors import IncompatibleParts
from posattn.mechanisms import EncoderDims, Places, Randomized, RandomizedConfig
from posattn.testing.mechanism_case import MechanismCase
from posattn.training.determinism import seed_noise

DIMS = EncoderDims(16, 2)


def mechanism(limit: int, **options: Any) -> Randomized:
    return Randomized(RandomizedConfig.model_validate({"max_position": limit, **options}), DIMS)


def drawn(places: Places, limit: int = 30) -> torch.Tensor:
    torch.manual_seed(places.positions.shape[1])
    return mechanism(limit).place(places)


def test_each_text_has_the_first_values_of_one_permutation_sorted() -> None:
    positions = torch.tensor([[0, 1, 2, 3, 4], [0, 1, 2, -1, -1], [-1, 0, 1, 2, 3]])
    torch.manual_seed(3)
    found = mechanism(30).place(Places(positions, None, True))
    torch.manual_seed(3)
    seed = Places(positions).seed
    rank = torch.randperm(30, generator=torch.Generator().manual_seed(seed)).tolist()
    order = sorted(range(30), key=rank.__getitem__)
    for row, count in zip(range(3), (5, 3, 4), strict=True):
        values = sorted(order[:count])
        for token in range(5):
            position = int(positions[row, token])
            assert int(found[row, token]) == (values[position] if position >= 0 else -1)


def test_no_text_depends_on_the_others_or_on_how_rows_are_packed() -> None:
    alone = drawn(Places(torch.arange(6)[None], None, True))
    padded = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, -1, -1, -1]])
    together = drawn(Places(padded, None, True))
    assert torch.equal(together[:1], alone)
    packed = torch.tensor([[0, 1, 2, 0, 1, 2]])
    documents = torch.tensor([[0, 0, 0, 1, 1, 1]])
    in_one_row = drawn(Places(packed, documents, True))
    assert in_one_row[0].tolist() == together[1, :3].tolist() * 2


def test_every_subset_is_equally_likely() -> None:
    places, counts = (
        Places(torch.arange(2)[None], None, True),
        dict.fromkeys(itertools.combinations(range(4), 2), 0),
    )
    wrapper = mechanism(4)
    for seed in range(600):
        torch.manual_seed(seed)
        counts[tuple(wrapper.place(Places(places.positions, None, True))[0].tolist())] += 1
    assert min(counts.values()) > 70  # 100 expected, standard deviation 9
    assert max(counts.values()) < 130


def test_training_noise_alone_decides() -> None:
    case = MechanismCase("randomized", {"max_position": 40})
    model = case.model().train()
    seen = []
    for step, ids in ((7, case.ids(2, 6)), (7, case.ids(2, 6)), (8, case.ids(2, 6))):
        torch.rand(step)  # whatever was drawn before
        seed_noise(0, step, 0)
        context = model.encoder.begin(ids)
        seen.append(context.placed["randomized"])
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[0], seen[2])
    assert model.eval().encoder.begin(case.ids(2, 6)).placed == {}


@pytest.mark.parametrize("name", ["learned", "sinusoidal", "rope", "alibi", "disentangled"])
def test_evaluation_is_the_wrapped_mechanism(name: str) -> None:
    plain = MechanismCase(name, {"max_positions": 40} if name == "learned" else {})
    wrapped = MechanismCase("randomized", {"mechanism": plain.config, "max_position": 40})
    bare, model = plain.model(), wrapped.model()
    state = {
        key.replace(f".mechanisms.{name}.", ".mechanisms.randomized.wrapped.").replace(
            f".parts.{name}.", ".parts.randomized."
        ): value
        for key, value in bare.state_dict().items()
    }
    model.load_state_dict(state, strict=True)
    ids = plain.ids(2, 7)
    assert torch.equal(model.encoder(ids), bare.encoder(ids))
    torch.manual_seed(0)
    model.train()
    context = model.encoder.begin(ids)
    trained = model.encoder.last(
        model.encoder.run(model.encoder.embed(ids, None, context), context)[-1], context
    )
    expected = bare.encoder(ids, positions=context.placed["randomized"])
    torch.testing.assert_close(trained, expected)


def test_selected_places_of_the_decoder_have_the_same_draw() -> None:
    case = MechanismCase("randomized", {"max_position": 40})
    model, ids = case.model().train(), case.ids(2, 6)
    selected = torch.zeros_like(ids, dtype=torch.bool)
    selected[0, 2], selected[1, 4] = True, True
    torch.manual_seed(4)
    everywhere = model(ids).logits[selected]
    torch.manual_seed(4)
    torch.testing.assert_close(model(ids, selected=selected).logits, everywhere)


def test_an_injected_signal_shares_the_draw_of_the_encoder() -> None:
    inject = {
        "name": "randomized",
        "mechanism": {"name": "learned", "max_positions": 40},
        "max_position": 40,
    }
    decoder = MaskDecoderConfig.model_validate({"name": "emd", "inject": inject})
    case = MechanismCase("randomized", {"max_position": 40})
    model, ids = case.model(decoder=decoder).train(), case.ids(2, 6)
    context = model.encoder.begin(ids)
    assert torch.equal(model.decoder.inject.place(context.places), context.placed["randomized"])
    torch.manual_seed(1)
    first = model(ids).logits
    torch.manual_seed(1)
    assert torch.equal(model(ids).logits, first)


def test_spread_evaluation_covers_the_range_in_order() -> None:
    wrapper = mechanism(20, evaluation="spread")
    positions = torch.tensor([[0, 1, 2, 3], [0, 1, -1, -1]])
    assert wrapper.place(Places(positions)).tolist() == [[2, 7, 12, 17], [5, 15, -1, -1]]
    full = torch.arange(20)[None]
    assert torch.equal(wrapper.place(Places(full)), full)


def test_a_text_longer_than_the_range_is_an_error_with_both_numbers() -> None:
    with pytest.raises(IncompatibleParts, match=r"position 9.*below 8"):
        mechanism(8).place(Places(torch.arange(10)[None], None, True))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mechanism": "none"}, "change nothing in 'none'"),
        ({"mechanism": {"name": "randomized"}}, "cannot stand here"),
        ({"mechanism": "cope"}, "counts keys in order"),
        ({"mechanism": "cape"}, "chooses positions itself"),
        ({"mechanism": {"name": "learned", "max_positions": 512}}, "more than the 512 positions"),
        ({"mechanism": {"name": "transformer_xl", "memory_length": 4}}, "have no memory"),
        ({"mechanism": {"name": "rope", "layers": [1]}}, "layers belong to 'randomized'"),
        ({"mechanism": {"name": "xpos"}}, "set causal: true"),
        ({"mechanism": {"name": "rope", "bass": 3.0}}, "bass"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        EncoderConfig(mechanism={"name": "randomized", **options})


def test_memory_of_another_mechanism_is_refused() -> None:
    others = [{"name": "randomized"}, {"name": "transformer_xl", "memory_length": 4}]
    with pytest.raises(ValidationError, match="chooses positions anew"):
        EncoderConfig(mechanism=others)


def test_the_card_has_the_lines_of_the_wrapped_mechanism() -> None:
    card = RandomizedConfig(max_position=99).card(DIMS)
    assert card["wrapped"] == "rope"
    assert "rotation" in card["positions"]
    assert "0 to 98" in card["positions in training"]
