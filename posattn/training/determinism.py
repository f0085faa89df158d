"""Seeds by purpose, noise that depends on (seed, step) only, and torch switched to repeatable.

Nothing here has to be saved to resume a run: before every micro-batch the generators of torch,
numpy and Python are seeded from (seed, step, micro-batch). Dropout noise is then the same after a
resume, with any number of processes, and whatever else drew numbers in between.
"""

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
import torch.utils.deterministic

_FILL = "fill_uninitialized_memory"  # a property that torch adds to its module at run time


def derive_seed(seed: int, *purpose: str | int) -> int:
    """Return a 63-bit seed that depends on all arguments and on nothing else."""
    text = "\0".join(repr(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def seed_everything(seed: int, *purpose: str | int) -> None:
    """Seed the global generators of torch (all devices), numpy and Python for one purpose."""
    derived = derive_seed(seed, *purpose)
    torch.manual_seed(derived)
    np.random.seed(derived % 2**32)
    random.seed(derived)


def seed_noise(seed: int, step: int, micro_batch: int) -> None:
    """Seed the global generators for the dropout noise of one micro-batch."""
    seed_everything(seed, "dropout", step, micro_batch)


@contextmanager
def reproducible(threads: int | None) -> Iterator[None]:
    """Make torch repeatable on the CPU within the block; leave the caller's settings as they were.

    With one thread sums have one order anyway. With more, torch is asked for deterministic
    algorithms (indexed sums would otherwise be added in any order), at some cost in speed. On a GPU
    they are not asked for, and sums may differ in the last bit between runs.
    """
    before = _Settings()
    if threads is not None:
        torch.set_num_threads(threads)
    if torch.get_num_threads() > 1 and not torch.cuda.is_available():
        torch.use_deterministic_algorithms(True, warn_only=True)
        setattr(torch.utils.deterministic, _FILL, False)
    try:
        yield
    finally:
        before.restore()


class _Settings:
    """What `reproducible` changes in the process."""

    def __init__(self) -> None:
        self.threads = torch.get_num_threads()
        self.deterministic = torch.are_deterministic_algorithms_enabled()
        self.warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
        self.fill = bool(getattr(torch.utils.deterministic, _FILL))
        self.torch_state = torch.get_rng_state()
        self.numpy_state = np.random.get_state()
        self.python_state = random.getstate()

    def restore(self) -> None:
        torch.set_num_threads(self.threads)
        torch.use_deterministic_algorithms(self.deterministic, warn_only=self.warn_only)
        setattr(torch.utils.deterministic, _FILL, self.fill)
        torch.set_rng_state(self.torch_state)
        np.random.set_state(self.numpy_state)
        random.setstate(self.python_state)
