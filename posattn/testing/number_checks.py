"""Checks of numbers: dtypes, gradients, lengths, and backends against the definition."""

import torch
from torch import Tensor

from posattn.backends import registry as backends
from posattn.encoder.model import MaskedLanguageModel, position_parameters
from posattn.errors import BackendRefusal, IncompatibleParts
from posattn.testing.checks import uncompiled
from posattn.testing.expect import ensure, ensure_close, ensure_finite
from posattn.testing.mechanism_case import PAD, MechanismCase

DTYPES = {
    torch.float16: 3e-2,
    torch.bfloat16: 3e-2,
    torch.float32: 1e-4,
}
"""Each dtype with the largest error of logits against float64 that it may have."""


def check_backends_equal_eager(case: MechanismCase) -> None:
    """Every backend gives eager's outputs and gradients, padding included, or refuses with reasons.

    If not: the result would depend on which backend a machine has; often a hidden pair or a bias is
    dropped.
    """
    expected = _outputs_and_gradients(case.model())
    for name in backends.names():
        try:
            found = _outputs_and_gradients(case.model(backend=name))
        except BackendRefusal as refusal:
            ensure(len(str(refusal)) > 20, f"{name} refuses without a reason: '{refusal}'")
            _compare_inference(case, name, expected["logits"])
            continue
        ensure(found.keys() == expected.keys(), f"{name} and eager have different gradients")
        for what, value in expected.items():
            scale = max(1.0, float(value.abs().max()))
            ensure_close(found[what], value, f"{name}: {what}", 1e-9 * scale)


def check_every_dtype_is_kept(case: MechanismCase) -> None:
    """A model cast to any dtype computes in it, near to what float64 gives with the same weights.

    If not: training in half precision breaks or upcasts; cast positions' numbers at the end, to the
    states' dtype.
    """
    ids, visible = _padded_ids(case)
    for dtype, tolerance in DTYPES.items():
        exact = _mild_model(case, "eager").to(dtype).double()(ids, visible=visible).logits
        ensure(exact.dtype == torch.float64, f"float64 gives {exact.dtype}")
        for backend in case.able_backends(dtype):
            model = _mild_model(case, backend).to(dtype)
            output = model(ids, visible=visible)
            ensure(
                output.logits.dtype == dtype,
                f"{backend}: a model in {dtype} returns {output.logits.dtype}",
            )
            what = f"{backend}: logits in {dtype} against float64"
            ensure_close(output.logits[visible], exact[visible], what, tolerance)


def check_autocast_is_harmless(case: MechanismCase) -> None:
    """A float32 model under bfloat16 autocast runs on every backend, near to float32.

    If not: mixed-precision training raises or drifts; look for a tensor with a fixed dtype.
    """
    ids, visible = _padded_ids(case)
    for backend in case.able_backends(torch.bfloat16):
        model = _mild_model(case, backend).float()
        exact = model(ids, visible=visible).logits
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(ids, visible=visible).logits
            torch.autograd.backward([logits.float().square().sum()])
        what = f"{backend}: logits under autocast against float32"
        ensure_close(logits[visible], exact[visible], what, 2e-2)
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                ensure_finite(parameter.grad, f"{backend}: gradient of {name} under autocast")


def check_every_parameter_learns(case: MechanismCase) -> None:
    """In training every parameter has a finite gradient; those of position are not zero.

    If not: a parameter is never trained, or its gradient is not finite; it may be unused, or detached.
    """
    model = case.model().train()
    ids, visible = _padded_ids(case)
    segments = case.segments(ids)
    logits = model(ids, visible=visible, segments=segments).logits[visible]
    torch.autograd.backward([torch.nn.functional.cross_entropy(logits, ids[visible])])
    for name, parameter in model.named_parameters():
        ensure(parameter.grad is not None, f"{name} gets no gradient")
        assert parameter.grad is not None
        ensure_finite(parameter.grad, f"gradient of {name}")
    # what adds the same to all keys of a query cancels in the softmax, so scores count as well
    layers = model.score_terms(ids, visible=visible, segments=segments)
    scores = [term for terms in layers for term in terms.values()]
    torch.autograd.backward([sum((term.square().sum() for term in scores), torch.zeros(()))])
    of_position = position_parameters(model)
    for name, parameter in model.named_parameters():
        if name in of_position:
            assert parameter.grad is not None
            moves = bool(parameter.grad.abs().max() > 1e-12)
            ensure(moves, f"the gradient of {name} is zero everywhere")


def check_short_and_odd_lengths_run(case: MechanismCase) -> None:
    """One token, and lengths that are not multiples of anything, run on every backend.

    If not: a batch of short texts stops a run; look for an assumed length.
    """
    for backend in case.able_backends():
        model = case.model(backend=backend)
        for length in (1, 3, 13):
            ids = case.ids(2, length)
            logits = model(ids).logits
            ensure(
                logits.shape[:2] == ids.shape, f"{backend}: length {length} gives {logits.shape}"
            )
            ensure_finite(logits, f"{backend}: logits at length {length}")


def check_the_longest_sequence_is_enforced(case: MechanismCase) -> None:
    """A sequence of max_length runs; one more token raises, with both numbers in the text.

    If not: longer input reads past a table or gives silent nonsense; say max_length() and raise beyond
    it.
    """
    model, limit = case.model(dtype=torch.float32), case.config.max_length()
    with torch.no_grad():
        if limit is None:
            ensure_finite(model(case.ids(1, 200)).hidden, "states of 200 tokens")
            return
        ensure_finite(model(case.ids(1, limit)).hidden, f"states of {limit} tokens")
        too_long = torch.ones(1, limit + 1, dtype=torch.long)
        try:
            model(too_long)
        except IncompatibleParts as error:
            told = str(limit) in str(error) and str(limit + 1) in str(error)
            ensure(told, f"the error for {limit + 1} tokens does not name both numbers: {error}")
            return
    raise AssertionError(f"{limit + 1} tokens run, although max_length() is {limit}")


def _compare_inference(case: MechanismCase, name: str, expected: Tensor) -> None:
    """Compare in float32 without gradients, uncompiled, what refuses float64 or training."""
    with torch.no_grad(), uncompiled():
        try:
            found = _logits(case.model(backend=name, dtype=torch.float32))
        except BackendRefusal:
            return
    scale = max(1.0, float(expected.abs().max()))
    ensure_close(found, expected, f"{name}: logits, float32, inference", 1e-4 * scale)


def _logits(model: MaskedLanguageModel) -> Tensor:
    ids = torch.tensor([[3, 9, 4, 1, 7], [5, 6, 2, PAD, PAD], [PAD, PAD, 8, 8, 2]])
    limit = model.max_length()
    ids = ids if limit is None else ids[:, :limit]
    visible = ids != PAD
    logits: Tensor = model(ids, visible=visible).logits[visible]
    return logits


def _outputs_and_gradients(model: MaskedLanguageModel) -> dict[str, Tensor]:
    logits = _logits(model)
    torch.autograd.backward([logits.square().sum()])
    found = {"logits": logits.detach()}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            found[f"gradient of {name}"] = parameter.grad
    return found


def _padded_ids(case: MechanismCase) -> tuple[Tensor, Tensor]:
    ids = case.ids(2, 7)
    visible = torch.ones_like(ids, dtype=torch.bool)
    visible[1, max(ids.shape[1] - 2, 1) :] = False
    return ids.masked_fill(~visible, PAD), visible


def _mild_model(case: MechanismCase, backend: str) -> MaskedLanguageModel:
    """Return a model whose largest logit is about 0.3, so that absolute tolerances mean something."""
    model = case.model(backend=backend)
    ids, visible = _padded_ids(case)
    with torch.no_grad():
        largest = float(model(ids, visible=visible).logits.abs().max())
        for parameter in [*model.head.norm.parameters(), model.head.output.bias]:
            parameter.mul_(0.3 / largest)
    return model
