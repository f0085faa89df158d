"""Checks of what position meets in a logit: the query's content, the key's, or neither; and of tables."""

import torch
from torch import Tensor, nn

from posattn.encoder.model import position_parameters
from posattn.testing.expect import ensure, ensure_close, ensure_differs
from posattn.testing.mechanism_case import MechanismCase, full_logits

EXACT = 1e-9
SHORT, LONG = 5, 40


def check_position_meets_the_query(case: MechanismCase) -> None:
    """What moving the tokens does to a logit changes with the content of the query.

    If not: traits() must say reads_query=False.
    """
    plain, changed = _effect(case, "hidden"), _effect(case, "other query")
    ensure_differs(changed, plain, "the query's content does not matter: declare reads_query=False")


def check_position_ignores_the_query(case: MechanismCase) -> None:
    """What moving the tokens does to a logit is the same for every content of the query.

    If not: a content-to-position term is there; traits() must say reads_query=True.
    """
    plain, changed = _effect(case, "hidden"), _effect(case, "other query")
    ensure_close(changed, plain, "effect of position with another query (reads_query=True?)", EXACT)


def check_position_meets_the_key(case: MechanismCase) -> None:
    """What moving the tokens does to a logit changes with the content of the key.

    If not: traits() must say reads_key=False.
    """
    plain, changed = _effect(case, "hidden"), _effect(case, "other key")
    ensure_differs(changed, plain, "the key's content does not matter: declare reads_key=False")


def check_position_ignores_the_key(case: MechanismCase) -> None:
    """What moving the tokens does to a logit is the same for every content of the key.

    If not: a position-to-content term is there; traits() must say reads_key=True.
    """
    plain, changed = _effect(case, "hidden"), _effect(case, "other key")
    ensure_close(changed, plain, "effect of position with another key (reads_key=True?)", EXACT)


def check_fresh_rows_are_declared(case: MechanismCase) -> None:
    """A long text learns in rows of a table that a short one never reads, exactly if so declared.

    If not: fresh_rows_beyond() says that training at a short length leaves rows untouched, or that it
    does not, and gradients say otherwise.
    """
    short, long = case.length(SHORT), case.length(LONG)
    if long < 2 * short or case.config.memory() or case.traits.places:
        return
    found = _rows_in_use(case, long), _rows_in_use(case, short)
    fresh = [name for name, rows in found[0].items() if bool((rows & ~found[1][name]).any())]
    declared = case.config.fresh_rows_beyond(short)
    ensure(
        declared == bool(fresh),
        f"fresh_rows_beyond({short}) is {declared}, but rows that {long} tokens read and {short} do "
        f"not are in: {', '.join(fresh) or 'no table'}",
    )


def _effect(case: MechanismCase, what: str) -> Tensor:
    """Return the logits less those with all tokens elsewhere."""
    attention, length = case.attention(), case.length(6)
    hidden, other = case.hidden(1, length), case.hidden(2, length)[1:]
    query = other if what == "other query" else hidden
    key = other if what == "other key" else hidden
    counted = torch.arange(length)[None]
    here = full_logits(attention.call(query, key, attention.prepared(counted, counted)))
    moved = counted.roll(1, dims=1)
    there = full_logits(attention.call(query, key, attention.prepared(moved, moved)))
    return here - there


def _rows_in_use(case: MechanismCase, length: int) -> dict[str, Tensor]:
    """Return which rows of each table of the mechanism get a gradient; weights of networks are none."""
    model, ids = case.model(), case.ids(2, length)
    model.zero_grad()
    model.encoder(ids).square().sum().backward()
    networks = {
        f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.Linear)
    }
    ours = position_parameters(model) - networks
    return {
        name: parameter.grad.flatten(1).ne(0).any(1)
        for name, parameter in model.named_parameters()
        if name in ours and parameter.grad is not None and parameter.ndim > 1
    }
