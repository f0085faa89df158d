import pickle
from pathlib import Path

import pytest
import torch

from posattn.errors import CheckpointError
from posattn.training.weights import load_weights, read_tensors, save_weights, unique_tensors
from tests.training.tiny_run import TinyModel


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_tied_tensors_are_stored_once_and_tied_after_loading(
    tmp_path: Path, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    model = TinyModel(width=64)
    count = sum(p.numel() for p in model.parameters())
    path = tmp_path / "model.safetensors"
    save_weights(model, path)
    assert path.stat().st_size < 4 * count + 1500
    loaded = TinyModel(width=64).to(dtype)
    load_weights(loaded, path)
    assert loaded.readout.weight.data_ptr() == loaded.tokens.weight.data_ptr()
    assert torch.equal(loaded.tokens.weight, model.tokens.weight.to(dtype))
    assert sum(p.numel() for p in loaded.parameters()) == count
    before = loaded.tokens.weight.detach().clone()
    step = torch.optim.SGD([loaded.readout.weight], lr=1.0)
    loaded.readout.weight.sum().backward()
    step.step()
    assert torch.equal(loaded.tokens.weight, before - 1)


def test_the_further_names_of_a_tied_tensor_are_known() -> None:
    tensors, aliases = unique_tensors(TinyModel())
    assert aliases == {"readout.weight": "tokens.weight"}
    assert "readout.weight" not in tensors


def test_weights_of_another_model_are_refused_by_name_and_shape(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_weights(TinyModel(width=12), path)
    model = TinyModel(width=16)
    before = model.tokens.weight.detach().clone()
    with pytest.raises(CheckpointError, match=r"inner\.weight: \(12, 12\) in the file, \(16, 16\)"):
        load_weights(model, path)
    assert torch.equal(model.tokens.weight, before)
    model.extra = torch.nn.Linear(2, 2)
    with pytest.raises(CheckpointError, match=r"missing \['extra\.bias', 'extra\.weight'\]"):
        load_weights(model, path)


class Canary:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("writer", ["pickle", "torch"])
def test_a_pickle_is_refused_and_its_code_never_runs(tmp_path: Path, writer: str) -> None:
    canary, path = tmp_path / "canary", tmp_path / "model.safetensors"
    if writer == "pickle":
        path.write_bytes(pickle.dumps(Canary(canary)))
    else:
        torch.save({"weight": Canary(canary)}, path)
    with pytest.raises(CheckpointError, match="never from pickles"):
        read_tensors(path)
    assert not canary.exists()
