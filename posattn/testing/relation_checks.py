"""Checks of a mechanism under relations other than distance on a line: those that it says it reads."""

from typing import Any

import torch
from torch import Tensor

from posattn.encoder.model import MaskedLanguageModel
from posattn.testing.expect import ensure, ensure_close, ensure_differs
from posattn.testing.mechanism_case import MechanismCase

EXACT = 1e-9
LENGTH = 7
RELATIONS: dict[str, dict[str, Any]] = {
    "grid": {"name": "grid", "rows": 3, "columns": 4, "outside": 1},
    "distances": {"name": "distances"},
    "categories": {"name": "categories", "num_values": 5},
}


def check_the_declared_relations_reach_the_output(case: MechanismCase) -> None:
    """Every relation that the traits name is accepted, and another value of it gives another output.

    If not: a user's grid or graph is ignored; leave it out of `relations`, or read
    `geometry.relation` and `dims.relation`.
    """
    for name, model in _models(case).items():
        ids, argument = case.ids(2, LENGTH), _argument(name)
        plain, other = (_states(model, name, ids, _example(name, seed)) for seed in (0, 1))
        what = f"relation '{name}': another {argument} changes nothing"
        if case.traits.knows_position:
            ensure_differs(other, plain, what)
        else:
            ensure_close(other, plain, f"relation '{name}'", EXACT)


def check_numbering_tokens_anew_permutes_the_output(case: MechanismCase) -> None:
    """Tokens in another order, with what relates them in the same order, give outputs in that order.

    If not: the order of tokens in the batch matters, beside the relation; use `geometry.relation`.
    """
    order = torch.randperm(LENGTH, generator=torch.Generator().manual_seed(3))
    for name, model in _models(case).items():
        ids, relation = case.ids(2, LENGTH), _example(name, 0)
        ensure(ids.shape[1] == LENGTH, f"relation '{name}': no room for {LENGTH} tokens")
        moved = relation[:, order] if name == "grid" else relation[:, order][:, :, order]
        plain = _states(model, name, ids, relation)[:, order]
        found = _states(model, name, ids[:, order], moved)
        ensure_close(found, plain, f"relation '{name}': tokens numbered anew", EXACT)


def check_relations_of_selected_places_equal_those_of_all(case: MechanismCase) -> None:
    """Decoding selected places only gives the logits of decoding all, whatever relates the tokens.

    If not: training, which decodes masked places only, and inference disagree.
    """
    selected = torch.zeros(2, LENGTH, dtype=torch.bool)
    selected[0, [1, 5]] = selected[1, 4] = True
    for name, model in _models(case).items():
        ids, inputs = case.ids(2, LENGTH), {_argument(name): _example(name, 0)}
        whole = model(ids, **inputs).logits[selected]
        few = model(ids, selected=selected, **inputs).logits
        ensure_close(few, whole, f"relation '{name}': selected places", EXACT)


def _models(case: MechanismCase) -> dict[str, MaskedLanguageModel]:
    declared = [name for name in RELATIONS if name in case.traits.relations]
    return {name: case.model(relation=RELATIONS[name]) for name in declared}


def _states(model: MaskedLanguageModel, name: str, ids: Tensor, relation: Tensor) -> Tensor:
    found: Tensor = model.encoder(ids, **{_argument(name): relation})
    return found


def _argument(name: str) -> str:
    return "coordinates" if name == "grid" else "relation"


def _example(name: str, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    if name == "grid":  # one token in front, the others in cells of their own
        cells = torch.randperm(12, generator=generator)[: LENGTH - 1]
        inside = torch.stack([cells // 4, cells % 4], dim=-1)
        return torch.cat([torch.full((1, 2), -1), inside])[None]
    drawn = torch.randint(-1, 5, (2, LENGTH, LENGTH), generator=generator)
    return drawn if name == "categories" else drawn + 1
