"""The code that torch.compile really generates for a CPU computes and learns what the plain model does.

Like the operator of `fused`, it needs a C++ compiler: without one these tests fail and say so.
"""

import pytest
import torch
from torch._inductor import metrics
from torch._inductor.utils import fresh_cache
from torch.testing import assert_close

from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import PlainDecoderConfig
from posattn.encoder.init import initialize
from posattn.encoder.model import MaskedLanguageModel
from posattn.training.compiling import BACKEND, compile_model, missing_compiler

pytestmark = pytest.mark.compile

CPU = torch.device("cpu")
LENGTHS = (8, 13, 24)


def build(mechanism: str) -> MaskedLanguageModel:
    """Return a model in training mode, without dropout, whose noise differs in a graph."""
    config = EncoderConfig.model_validate(
        {
            "hidden_size": 16,
            "num_heads": 2,
            "num_layers": 1,
            "mechanism": mechanism,
            "hidden_dropout": 0.0,
            "attention_dropout": 0.0,
        }
    )
    model = MaskedLanguageModel(config, PlainDecoderConfig(), vocab_size=20)
    initialize(model, seed=0)
    return model.train()


def test_there_is_a_compiler_for_the_backend_of_a_recipe() -> None:
    assert BACKEND == "inductor"
    assert missing_compiler(CPU) == ""


@pytest.mark.parametrize("mechanism", ["rope", "disentangled"])
def test_generated_code_gives_states_and_gradients_of_the_plain_model(mechanism: str) -> None:
    torch.compiler.reset()
    metrics.reset()
    plain, compiled = build(mechanism), build(mechanism)
    with fresh_cache():
        graphs = compile_model(compiled, CPU)
        for length in LENGTHS:
            ids = torch.arange(3 * length).view(3, length) % 20
            selected = ids % 4 == 0
            expected, given = (model(ids, selected=selected).logits for model in (plain, compiled))
            assert_close(given, expected, atol=1e-5, rtol=1e-5)
            expected.square().sum().backward()
            given.square().sum().backward()
    assert metrics.generated_kernel_count > 0
    assert 1 <= graphs.count <= 2
    for (name, mine), theirs in zip(compiled.named_parameters(), plain.parameters(), strict=True):
        assert mine.grad is not None, name
        assert_close(mine.grad, theirs.grad, atol=1e-5, rtol=1e-5)
