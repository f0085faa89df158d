"""Backend `fused`: attention with every kind of bias in one C++ operator, compiled on first use."""

from posattn.backends.fused.backend import FusedBackend as FusedBackend
