"""Checks of what a mechanism states: its hooks, its bias, its terms, its visibility."""

import torch

from posattn.backends import AttentionCall
from posattn.bias import AttentionBias, Padding
from posattn.mechanisms import Geometry, Heads, Mechanism
from posattn.mechanisms import registry as mechanisms
from posattn.shapes import Logits
from posattn.testing.expect import ensure, ensure_close, ensure_differs
from posattn.testing.mechanism_case import MechanismCase, PositionedAttention, full_logits

ATTENTION_SIZES = ((5, 5), (3, 5), (5, 3), (1, 6), (1, 1))


def check_active_hooks_are_the_declared_ones(case: MechanismCase) -> None:
    """The traits say which hooks act, and those act and no others.

    If not: reports and refusals rest on traits() that are wrong; declare what acts, and no more.
    """
    attention, length = case.attention(), case.length(6)
    mechanism = attention.stack.mechanisms[case.name]
    assert isinstance(mechanism, Mechanism)
    positions = torch.arange(length)[None]
    hidden = case.hidden(2, length)
    call = attention.call(hidden, hidden, attention.prepared(positions, positions))
    heads = Heads(call.query, call.key, call.value)
    prepared = mechanism.prepare(Geometry(positions, positions, length - 1))
    turned = mechanism.rotate(heads, prepared)
    acts = {
        "adds_to_input": not torch.equal(mechanism.embed(hidden, positions), hidden),
        "rotates": any(not torch.equal(a, b) for a, b in zip(turned, heads, strict=True)),
        "adds_bias": call.bias is not None,
        "adds_values": call.relative_values is not None,
    }
    for trait, does in acts.items():
        declared = getattr(case.traits, trait)
        ensure(does == declared, f"traits() says {trait}={declared}, but the hook says {does}")


def check_score_mod_equals_materialize(case: MechanismCase) -> None:
    """The bias one logit at a time is the bias as a whole.

    If not: a fused kernel would compute another function than the definition.
    """
    for num_queries, num_keys in ATTENTION_SIZES:
        call = _call(case, num_queries, num_keys)
        assert call.bias is not None
        shape = (2, case.num_heads, case.length(num_queries), case.length(num_keys))
        whole = call.bias.materialize().expand(shape)
        what = f"score_mod against materialize, {num_queries} queries and {num_keys} keys"
        ensure_close(by_score_mod(call.bias, shape), whole, what, 1e-6)


def check_terms_sum_to_the_bias(case: MechanismCase) -> None:
    """The named terms add up to the bias, and none of them is nothing.

    If not: what a study of single terms shows is not what is added.
    """
    call = _call(case, 5, 6)
    assert call.bias is not None
    terms = call.bias.terms()
    total = sum(terms.values(), torch.zeros(()))
    ensure_close(total.expand_as(call.bias.materialize()), call.bias.materialize(), "terms", 1e-10)
    for name, value in terms.items():
        ensure_differs(value, torch.zeros(()), f"term '{name}' is zero everywhere", 0.0)


def check_rows_do_not_depend_on_other_rows(case: MechanismCase) -> None:
    """Fewer queries or keys than positions give the same logits and outputs as all of them.

    If not: decoders and memory, with fewer queries than keys, give wrong scores; do not assume as many
    of both.
    """
    attention, length = case.attention(), case.length(5)
    positions = torch.arange(length)[None].expand(2, -1)
    hidden = case.hidden(2, length)
    whole = attention.prepared(positions, positions)
    whole_call = attention.call(hidden, hidden, whole)
    for start in range(1, length):
        few, few_hidden = positions[:, start:], hidden[:, start:]
        queries = attention.prepared(few, positions)
        call = attention.call(few_hidden, hidden, queries)
        what = f"the last {length - start} of {length}"
        ensure_close(
            full_logits(call),
            full_logits(whole_call)[:, :, start:],
            f"logits of queries, {what}",
            1e-10,
        )
        ensure_close(
            attention(few_hidden, hidden, queries),
            attention(hidden, hidden, whole)[:, start:],
            f"output of queries, {what}",
            1e-10,
        )
        call = attention.call(hidden, few_hidden, attention.prepared(positions, few))
        ensure_close(
            full_logits(call),
            full_logits(whole_call)[..., start:],
            f"logits of keys, {what}",
            1e-10,
        )


def check_positions_may_be_any_integers(case: MechanismCase) -> None:
    """Positions with gaps and in any order give what each pair gives by itself.

    If not: padding, packing and memory, whose positions have gaps, give wrong scores; use positions,
    not indices.
    """
    attention, length = case.attention(), case.length(9)
    order = torch.tensor([[position for position in (7, 0, 3, 8, 2) if position < length]])
    hidden = case.hidden(1, length)
    every = torch.arange(length)[None]
    whole = full_logits(attention.call(hidden, hidden, attention.prepared(every, every)))
    chosen = hidden[:, order[0]]
    some = full_logits(attention.call(chosen, chosen, attention.prepared(order, order)))
    ensure_close(some, whole[:, :, order[0]][..., order[0]], "logits at chosen positions", 1e-10)


def check_queries_that_see_nothing_give_zeros(case: MechanismCase) -> None:
    """A sequence without a visible key attends to nothing and spoils no gradient.

    If not: a row of nothing but padding turns gradients into NaN.
    """
    length = case.length(4)
    for backend in case.able_backends():
        attention = case.attention(backend=backend)
        positions = torch.arange(length)[None].expand(2, -1)
        keys = torch.tensor([[True] * length, [False] * length])
        hidden = case.hidden(2, length).requires_grad_()
        prepared = attention.prepared(positions, positions, Padding(keys))
        call = attention.call(hidden, hidden, prepared)
        attended = attention.attention.backend.attend(call)
        ensure_close(attended[1], torch.zeros_like(attended[1]), f"{backend}: blind queries", 0.0)
        alone = attention.prepared(positions[:1], positions[:1])
        alone_call = attention.call(hidden[:1], hidden[:1], alone)
        expected = attention.attention.backend.attend(alone_call)
        ensure_close(attended[:1], expected, f"{backend}: the other sequence", 1e-6)
        torch.autograd.backward([attended[0].square().sum()])
        for name, parameter in [("input", hidden), *attention.named_parameters()]:
            gradient = parameter.grad
            finite = gradient is None or bool(gradient.isfinite().all())
            ensure(finite, f"{backend}: the gradient of {name} is not finite")


def check_the_card_and_the_cost_are_stated(case: MechanismCase) -> None:
    """The card is text, costs are not negative, and longer sequences are not cheaper.

    If not: the architecture card or the FLOP count of a report is empty or wrong.
    """
    dims = case.encoder_config().dims()
    for key, text in case.config.card(dims).items():
        ensure(bool(key.strip()) and bool(text.strip()), f"card line '{key}' is empty: '{text}'")
    short, long = case.config.flops(dims, 8, 8), case.config.flops(dims, 64, 64)
    ensure(0 <= short.per_sequence <= long.per_sequence, f"flops {short} at 8, {long} at 64")
    ensure(0 <= short.per_forward <= long.per_forward, f"flops {short} at 8, {long} at 64")
    ensure(0 <= short.per_encoder <= long.per_encoder, f"flops {short} at 8, {long} at 64")


def check_the_name_is_the_registered_one(case: MechanismCase) -> None:
    """The class registered under a name builds the config that carries that name.

    If not: the saved recipe names another mechanism than the one that ran; keep config and dims as
    given.
    """
    entry = mechanisms.get(case.name)
    config, dims = case.config, case.encoder_config().dims()
    ensure(
        config.name == case.name, f"the config of '{case.name}' says its name is '{config.name}'"
    )
    built = entry(config, dims)
    ensure(built.config is config, f"{entry.__name__} does not keep its config as self.config")
    ensure(built.dims == dims, f"{entry.__name__} does not keep the dimensions as self.dims")


def by_score_mod(bias: AttentionBias, shape: tuple[int, int, int, int]) -> Logits:
    """Return the bias made of single logits, called as FlexAttention calls it."""
    batch, head, query, key = (
        grid.flatten() for grid in torch.meshgrid(*map(torch.arange, shape), indexing="ij")
    )
    score = torch.zeros(batch.shape, dtype=bias.materialize().dtype)
    biased = torch.vmap(bias.score_mod())(score, batch, head, query, key)
    assert isinstance(biased, torch.Tensor)
    return biased.view(shape)


def _call(case: MechanismCase, num_queries: int, num_keys: int) -> AttentionCall:
    """Return a call whose queries, or keys, are the last of the longer side's positions."""
    attention: PositionedAttention = case.attention()
    num_queries, num_keys = case.length(num_queries), case.length(num_keys)
    positions = torch.arange(max(num_queries, num_keys))[None].expand(2, -1)
    prepared = attention.prepared(positions[:, -num_queries:], positions[:, -num_keys:])
    return attention.call(case.hidden(2, num_queries), case.hidden(2, num_keys), prepared)
