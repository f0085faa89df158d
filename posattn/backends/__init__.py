"""Backends: ways of computing attention, one file each, and the registry that knows them all."""

from posattn.backends.auto import AutoBackend as AutoBackend
from posattn.backends.base import AttentionBackend as AttentionBackend
from posattn.backends.base import AttentionCall as AttentionCall
from posattn.backends.base import backends as _backends
from posattn.backends.eager import EagerBackend as EagerBackend
from posattn.backends.eager import logits_by_term as logits_by_term
from posattn.backends.eager import probabilities as probabilities
from posattn.backends.flex import FlexBackend as FlexBackend
from posattn.backends.fused import FusedBackend as FusedBackend
from posattn.backends.sdpa import SDPABackend as SDPABackend
from posattn.backends.triton import TritonBackend as TritonBackend
from posattn.backends.xformers import XformersBackend as XformersBackend

registry = _backends
names = registry.names
get = registry.get
