"""What is computed from weights alone, kept between calls in evaluation until a weight changes."""

import weakref
from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor


class WeightCache:
    """Keeps one result with the state of the weights it came from.

    It serves only where no gradient is recorded, and forgets where one is. It compares identity,
    storage, version counter, dtype and device of every weight, so optimizer steps, `load_state_dict`,
    in-place edits and casts are seen. It keeps the old storage alive, since its address would
    otherwise be given to the next tensor of that size. PyTorch's counter does not see an edit in place
    through `weight.data`: call `clear` after one. A copy or a pickle of the cache is empty.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._weights: tuple[weakref.ref[Tensor], ...] = ()
        self._storages: tuple[Tensor, ...] = ()
        self._state: tuple[Hashable, ...] = ()
        self._value: Tensor | None = None

    def clear(self) -> None:
        """Forget the result."""
        self._weights, self._storages, self._state, self._value = (), (), (), None

    def get(
        self, weights: Sequence[Tensor], compute: Callable[[], Tensor], key: Hashable = None
    ) -> Tensor:
        """Return `compute()`, or its last result if neither `key` nor a weight has changed since."""
        if torch.compiler.is_compiling():  # a graph has no memory of its own
            return compute()
        if torch.is_grad_enabled() or any(weight.is_inference() for weight in weights):
            self.clear()
            return compute()
        autocast = _autocast_dtype(weights[0].device.type)
        state = (key, autocast, torch.is_inference_mode_enabled(), *map(_state, weights))
        same = len(self._weights) == len(weights) and all(
            kept() is weight for kept, weight in zip(self._weights, weights, strict=True)
        )
        if self._value is None or not same or state != self._state:
            self._value = compute()
            self._weights = tuple(weakref.ref(weight) for weight in weights)
            self._storages = tuple(weight.detach() for weight in weights)
            self._state = state
        return self._value

    def __reduce__(self) -> tuple[type["WeightCache"], tuple[()]]:
        return WeightCache, ()


def _state(weight: Tensor) -> Hashable:
    return weight.data_ptr(), weight._version, weight.dtype, weight.device


def _autocast_dtype(device: str) -> torch.dtype | None:
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
