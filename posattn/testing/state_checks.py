"""Checks of state: nothing is remembered that the next call could trip over."""

import copy
import io

import torch
from torch import Tensor

from posattn.encoder.decoder import DecoderConfig, PlainDecoderConfig, decoders
from posattn.encoder.init import initialize
from posattn.encoder.model import MaskedLanguageModel
from posattn.mechanisms import Places
from posattn.mechanisms import registry as mechanisms
from posattn.testing.expect import ensure, ensure_close, ensure_differs
from posattn.testing.mechanism_case import MechanismCase


def check_a_long_sequence_does_not_change_a_short_one(case: MechanismCase) -> None:
    """A short sequence gives the same bits before and after a long one.

    If not: something made for one length is used for another; a cache lacks the length in its key.
    """
    model, short, long = case.model(), case.ids(2, 4), case.ids(1, 40)
    with torch.no_grad():
        before = model.encoder(short)
        model.encoder(long)
        ensure(torch.equal(model.encoder(short), before), "a long sequence changed a short one")


def check_positions_are_not_remembered(case: MechanismCase) -> None:
    """Other positions in between, at the same length, change nothing.

    If not: positions of an earlier call are used again; keep nothing of them on the module.
    """
    model, ids = case.model(), case.ids(2, 4)
    limit = case.config.max_length()
    positions = torch.arange(ids.shape[1])[None]
    others = positions * 2 + 3 if limit is None else positions.flip(1)
    with torch.no_grad():
        before = model.encoder(ids, positions=positions)
        after = model.encoder(ids, positions=others)
        again = model.encoder(ids, positions=positions)
        alone = case.model().encoder(ids, positions=others)
    ensure(torch.equal(after, alone), "positions of an earlier call reached a later one")
    ensure(torch.equal(again, before), "positions of a later call changed an earlier one's result")


def check_instances_do_not_share_state(case: MechanismCase) -> None:
    """A second instance, with other weights or options, changes nothing in the first.

    If not: two models in one process disturb each other; look for state on the class or the module
    file.
    """
    first, ids = case.model(), case.ids(2, 5)
    others = [case.model(seed=case.seed + 1), *(other.model() for other in case.alternatives())]
    with torch.no_grad():
        before = first.encoder(ids)
        for other in others:
            limit = other.max_length()
            other.encoder(ids if limit is None else ids[:, :limit])
            ensure(torch.equal(first.encoder(ids), before), "another instance changed this one")
        second = others[0]
        ensure_differs(second.encoder(ids), before, "two instances with other weights are equal")
    owned = {parameter.data_ptr() for parameter in first.parameters()}
    shared = [name for name, other in second.named_parameters() if other.data_ptr() in owned]
    ensure(not shared, f"two instances share the memory of {shared}")


def check_evaluation_sees_changed_weights(case: MechanismCase) -> None:
    """After loading, stepping or editing weights, evaluation computes with the new ones.

    If not: evaluation after a training step uses old weights; a cache is not cleared.
    """
    model, ids = case.model(), case.ids(2, 5)
    other = case.model(seed=case.seed + 1)
    with torch.no_grad():
        model.encoder(ids)
        model.load_state_dict(other.state_dict())
        ensure(torch.equal(model.encoder(ids), other.encoder(ids)), "loaded weights are not used")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(ids).logits.square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        stepped = copy.deepcopy(model).encoder(ids)
        ensure(torch.equal(model.encoder(ids), stepped), "stepped weights are not used")
        for parameter in model.parameters():
            parameter.mul_(1.1)
        edited = copy.deepcopy(model).encoder(ids)
        ensure(torch.equal(model.encoder(ids), edited), "edited weights are not used")


def check_copies_are_whole(case: MechanismCase) -> None:
    """A deep copy, and a model saved and loaded, give the same outputs and live by themselves.

    If not: a copied or reloaded model computes something else; a tensor is not registered.
    """
    model, ids = case.model(), case.ids(2, 5)
    with torch.no_grad():
        before = model.encoder(ids)
        buffer = io.BytesIO()
        torch.save(model, buffer)
        buffer.seek(0)
        copies = [copy.deepcopy(model), torch.load(buffer, weights_only=False)]
        for other in copies:
            ensure(torch.equal(other.encoder(ids), before), "a copy gives another output")
            for parameter in other.parameters():
                parameter.zero_()
            other.encoder(ids)
            ensure(torch.equal(model.encoder(ids), before), "editing a copy changed the original")


def check_state_does_not_depend_on_length(case: MechanismCase) -> None:
    """The state dict has the same keys and shapes whatever lengths were seen, and restores the model.

    If not: a checkpoint cannot be loaded after other lengths were seen.
    """
    model, ids = case.model(), case.ids(1, 5)
    expected = _shapes(model)
    for length in (3, 40, 8):
        model(case.ids(2, length))
        ensure(_shapes(model) == expected, f"length {length} changed the state dict")
    fresh = case.model(seed=case.seed + 1)
    fresh.load_state_dict(model.state_dict(), strict=True)
    ensure(torch.equal(fresh.encoder(ids), model.encoder(ids)), "the state dict is not all of it")


def check_first_values_come_from_seed_and_name(case: MechanismCase) -> None:
    """Initialisation depends on the seed and on parameters' names, never on chance before it.

    If not: arms of a study do not start alike; draw no random number in the constructor.
    """
    found: list[dict[str, Tensor]] = []
    for chance, seed in ((1, 5), (2, 5), (2, 6)):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(chance)
            model = MaskedLanguageModel(case.encoder_config(), PlainDecoderConfig(), 11)
        initialize(model, seed)
        found.append(dict(model.named_parameters()))
    for name, value in found[0].items():
        ensure(torch.equal(found[1][name], value), f"{name} starts at random, not from the seed")
    moved = any(not torch.equal(found[2][name], value) for name, value in found[0].items())
    ensure(moved, "another seed gives the same first values")


def check_chance_moves_places_in_training_only(case: MechanismCase) -> None:
    """Places follow from the seed of training noise alone; evaluation draws nothing."""
    mechanism = mechanisms.get(case.name)(case.config, case.encoder_config().dims())
    positions = torch.arange(case.length(7))[None]

    def placed(seed: int, training: bool) -> Tensor:
        torch.manual_seed(seed)
        return mechanism.place(Places(positions, None, training))

    with torch.random.fork_rng(devices=[]):
        ensure(torch.equal(placed(1, True), placed(1, True)), "one seed gives two sets of places")
        what = "training never moves places: declare places=False"
        ensure(any(not torch.equal(placed(1, True), placed(n, True)) for n in range(2, 9)), what)
        ensure(torch.equal(placed(1, False), placed(2, False)), "evaluation places by chance")
        before = torch.get_rng_state()
        mechanism.place(Places(positions, None, False))
        ensure(torch.equal(torch.get_rng_state(), before), "evaluation draws random numbers")
        model, ids = case.model().train(), case.ids(2, 6)
        outputs = []
        for seed in (5, 5, *range(6, 14)):
            torch.manual_seed(seed)
            outputs.append(model.encoder(ids))
    ensure(torch.equal(outputs[0], outputs[1]), "one seed gives two outputs in training")
    differs = any(not torch.equal(outputs[0], other) for other in outputs[2:])
    ensure(differs, "places of training do not reach the output")


def check_decoding_selected_places_equals_decoding_all(case: MechanismCase) -> None:
    """Each decoder gives the same logits at selected places whether it decodes those only or all.

    If not: training, which decodes masked places only, and inference disagree; queries and keys may
    differ in number.
    """
    ids = case.ids(3, 6)
    selected = torch.rand(ids.shape, generator=torch.Generator().manual_seed(0)) < 0.4
    selected[0], selected[1, -1] = False, True
    for name in decoders.names():
        expected = case.model(decoder=_decoder(name, "all"))(ids).logits[selected]
        for decode in ("all", "masked_only"):
            logits = case.model(decoder=_decoder(name, decode))(ids, selected=selected).logits
            ensure_close(logits, expected, f"decoder {name}, decode: {decode}", 1e-10)


def _decoder(name: str, decode: str) -> DecoderConfig:
    config = decoders.get(name).Config.model_validate({"name": name})
    known = "decode" in type(config).model_fields
    return config.model_copy(update={"decode": decode}) if known else config


def _shapes(model: torch.nn.Module) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in model.state_dict().items()}
