"""The operator as PyTorch's autograd and compiler know it: shapes without numbers, and the gradient."""

from typing import Any

import torch
from torch import Tensor

FORWARD = "posattn::fused_attention"
BACKWARD = "posattn::fused_attention_backward"
# places of the inputs that may be learned, in the order in which the operator returns their gradients
QUERY, KEY, VALUE = 0, 1, 2
QUERY_LOOKUP, KEY_LOOKUP = (6, 7, 8), (10, 11, 12)  # scores, or rows and table
DISTANCE_SCORES, DENSE = 14, 15
LEARNED = (QUERY, KEY, VALUE, *QUERY_LOOKUP, *KEY_LOOKUP, DISTANCE_SCORES, DENSE)
NUM_INPUTS = 25


def register() -> None:
    """Tell PyTorch the shapes and the gradient of the loaded operators."""
    torch.library.register_fake(FORWARD, _fake_forward)
    torch.library.register_fake(BACKWARD, _fake_backward)
    torch.library.register_autograd(FORWARD, _backward, setup_context=_setup)


def _exact(query: Tensor) -> torch.dtype:
    return torch.promote_types(query.dtype, torch.float32)


def _fake_forward(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    batch, heads, length = query.shape[:3]
    out = query.new_empty(batch, length, heads, value.shape[3]).transpose(1, 2)
    return out, query.new_empty(batch, heads, length, dtype=_exact(query))


def _fake_backward(*given: Any) -> list[Tensor]:
    wants_distance, wants_dense = given[-2:]
    wanted = dict.fromkeys(LEARNED, True)
    wanted |= {DISTANCE_SCORES: wants_distance, DENSE: wants_dense}
    exact = _exact(given[QUERY])
    made = []
    for place, wants in wanted.items():
        like: Tensor | None = given[place]
        if like is None or not wants:
            made.append(given[QUERY].new_empty(0, dtype=exact))
        elif like.dim() == 4 and place != DENSE:
            batch, heads, length, width = like.shape
            made.append(like.new_empty(batch, length, heads, width).transpose(1, 2))
        else:
            made.append(like.new_empty(like.shape))
    return made


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    is_tensor = [isinstance(given, Tensor) for given in inputs]
    ctx.save_for_backward(
        *(given if is_tensor[i] else None for i, given in enumerate(inputs)), *output
    )
    ctx.constants = [None if is_tensor[i] else given for i, given in enumerate(inputs)]
    ctx.mark_non_differentiable(output[1])


def _backward(ctx: Any, grad_out: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    *tensors, out, log_sum = ctx.saved_tensors
    pairs = zip(tensors, ctx.constants, strict=True)
    inputs = [constant if tensor is None else tensor for tensor, constant in pairs]
    needs = ctx.needs_input_grad
    gradients = torch.ops.posattn.fused_attention_backward(
        *inputs, out, log_sum, grad_out, needs[DISTANCE_SCORES], needs[DENSE]
    )
    found: list[Tensor | None] = [None] * NUM_INPUTS
    for place, gradient in zip(LEARNED, gradients, strict=True):
        found[place] = gradient if needs[place] else None
    return tuple(found)
