"""PyTorch's FlexAttention: the bias one logit at a time, blocks that nobody sees left out.

It is compiled on first use: on CUDA once for each structure of the bias, on the CPU for each shape,
since the C++ that PyTorch 2.13 generates for changing lengths does not always compile (it replaces the
name of one size inside that of another). On the CPU PyTorch has its forward only, so training is
refused there, and `auto` passes it over, because compiling takes seconds a shape. On CUDA `auto` takes
it only where SDPA refuses.
"""

from collections import deque
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final, no_type_check

import torch
from torch import Tensor
from typing_extensions import override

from posattn.backends.base import AttentionBackend, AttentionCall, backends
from posattn.bias import ScoreMod, SumBias, VisibilityRule
from posattn.shapes import QueryHeads

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
DEVICES = ("cpu", "cuda")
NARROWEST_ON_CUDA = 16
KERNELS = 256
"""How many kernels are compiled before PyTorch would give up compiling."""


class KeptMask(NamedTuple):
    """A block mask with all that it was made for."""

    rules: tuple[VisibilityRule, ...]
    sizes: tuple[int, ...]
    device: torch.device
    mask: Any


@final
@backends.register("flex")
class FlexBackend(AttentionBackend):
    """FlexAttention, compiled. Learned biases get gradients on CUDA; no dropout, no relative values."""

    name: ClassVar[str] = "flex"

    def __init__(self) -> None:
        """Compile nothing yet."""
        self._masks: deque[KeptMask] = deque(maxlen=4)

    @override
    def refusals(self, call: AttentionCall) -> list[str]:
        device, dtype = call.query.device.type, call.query.dtype
        reasons = []
        if device not in DEVICES:
            reasons.append(f"it runs on {' and '.join(DEVICES)}, not on {device}")
        elif problem := self._compiler_problem(device):
            reasons.append(problem)
        if dtype not in DTYPES:
            able = ", ".join(str(one).removeprefix("torch.") for one in DTYPES)
            reasons.append(f"it computes in {able}, not in {str(dtype).removeprefix('torch.')}")
        if device == "cpu" and _learns(call):
            reasons.append(
                "PyTorch has no backward of FlexAttention on the device cpu, so it runs inference "
                "only there (sdpa and eager train)"
            )
        width = min(call.query.shape[-1], call.value.shape[-1])
        if device == "cuda" and width < NARROWEST_ON_CUDA:
            reasons.append(f"heads of {width} channels are below {NARROWEST_ON_CUDA}, its least")
        if call.dropout:
            reasons.append(f"it has no dropout, and {call.dropout} is asked for (sdpa has)")
        if call.relative_values is not None:
            reasons.append(
                "it never forms the probabilities that relative values need (eager does)"
            )
        return reasons

    @override
    def rank(self, call: AttentionCall) -> int:
        return 110 if call.query.device.type == "cpu" else 20

    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        score_mod = None if call.bias is None else _typed(SumBias(call.bias.parts()).score_mod())
        mask = None
        if call.visibility.rules:
            mask = self._mask(call)
        with torch._dynamo.config.patch(recompile_limit=KERNELS):
            compiled = self._by_shape if call.query.device.type == "cpu" else self._by_structure
            attended: Tensor = compiled(
                call.query * call.scale, call.key, call.value, score_mod, mask, 1.0
            )
        return attended

    @cached_property
    def _by_shape(self) -> Callable[..., Tensor]:
        from torch.nn.attention.flex_attention import flex_attention

        return torch.compile(flex_attention, dynamic=False)

    @cached_property
    def _by_structure(self) -> Callable[..., Tensor]:
        from torch.nn.attention.flex_attention import flex_attention

        return torch.compile(flex_attention)

    def _compiler_problem(self, device: str) -> str:
        return self._cpp_problem if device == "cpu" else self._triton_problem

    @cached_property
    def _cpp_problem(self) -> str:
        from torch._inductor import cpp_builder, exc

        try:
            cpp_builder.get_cpp_compiler()
        except exc.InvalidCxxCompiler:
            return "it is compiled on the CPU, and no C++ compiler was found (install g++ or clang)"
        return ""

    @cached_property
    def _triton_problem(self) -> str:
        from torch.utils._triton import has_triton

        return "" if has_triton() else "it is compiled by Triton on CUDA, which does not work here"

    def _mask(self, call: AttentionCall) -> Any:
        """Return the block mask of these rules, made once for all layers that share them."""
        from torch.nn.attention.flex_attention import create_block_mask

        visibility, device = call.visibility, call.query.device
        batch, heads, num_queries = call.query.shape[:3]
        heads = heads if visibility.differs_by_head else 1
        sizes = (batch, heads, num_queries, call.key.shape[2])
        for kept in self._masks:
            same = kept.sizes == sizes and kept.device == device
            if same and _same_rules(kept.rules, visibility.rules):
                return kept.mask
        mask = create_block_mask(visibility.mask_mod(), *sizes, device=device)
        self._masks.append(KeptMask(visibility.rules, sizes, device, mask))
        return mask


def _learns(call: AttentionCall) -> bool:
    if not torch.is_grad_enabled():
        return False
    inputs = (call.query, call.key, call.value)
    return any(x.requires_grad for x in inputs) or (call.bias is not None and call.bias.learns())


def _typed(score_mod: ScoreMod) -> ScoreMod:
    """Return the same in the dtype of the score, whatever that of the bias."""

    @no_type_check
    def add_bias(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return score_mod(score, b, h, i, j).to(score.dtype)

    mod: ScoreMod = add_bias
    return mod


def _same_rules(ours: tuple[VisibilityRule, ...], theirs: tuple[VisibilityRule, ...]) -> bool:
    return len(ours) == len(theirs) and all(map(_same_rule, ours, theirs))


def _same_rule(ours: VisibilityRule, theirs: VisibilityRule) -> bool:
    """Return whether the two are one object, or made of the same relations and numbers.

    A rule is made anew in each forward, and so are relations; a tensor may be the caller's, who may
    have changed it in place, so that two rules of one tensor count as different.
    """
    if ours is theirs:
        return True
    mine, other = vars(ours), vars(theirs)
    return type(ours) is type(theirs) and all(
        mine.get(name) is value and not isinstance(value, Tensor) for name, value in other.items()
    )
