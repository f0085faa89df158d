"""Write tests/golden/*.json: biases computed by the released code of KERPLE, DAPE (for FIRE) and TUPE.

    python tools/golden_biases.py KERPLE DAPE TUPE tests/golden

The first three arguments are checkouts of chijames/KERPLE (25be3d7), chuanyang-Zheng/DAPE (bde344a) and
guolinke/TUPE (4c64ff7). Their classes are run as they are, alone, on the CPU and in float64; nothing of
their code is copied. Running this again gives the same files.
"""

import ast
import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import Parameter

LENGTH, HEADS, WIDTH = 9, 3, 12


def definitions(path: Path, names: set[str], **given: Any) -> dict[str, Any]:
    """Return the named classes and functions of a file, executed with the given globals only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kept = [node for node in tree.body if getattr(node, "name", None) in names]
    namespace: dict[str, Any] = {"torch": torch, "nn": nn, "math": math, "Parameter": Parameter}
    namespace |= {"F": nn.functional, **given}
    exec(compile(ast.Module(kept, []), str(path), "exec"), namespace)
    return namespace


def randomized(module: nn.Module, spread: float = 0.5) -> nn.Module:
    """Return the module with reproducible random parameters."""
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data = spread * noise
    return module


def kerple(checkout: Path) -> dict[str, Any]:
    """Return both kernels of KERPLE; later keys, which its code does not mask itself, are left out."""
    torch.cuda.current_device = lambda: torch.device("cpu")  # type: ignore[assignment,return-value]
    known = definitions(
        checkout / "megatron/mpu/layers.py",
        {"ParallelKerpleLog", "ParallelKerplePower"},
        get_model_parallel_world_size=lambda: 1,
        get_model_parallel_rank=lambda: 0,
    )
    found: dict[str, Any] = {"source": "chijames/KERPLE@25be3d7:megatron/mpu/layers.py"}
    for kernel, name in (("log", "ParallelKerpleLog"), ("power", "ParallelKerplePower")):
        arguments = SimpleNamespace(
            num_attention_heads=HEADS, params_dtype=torch.float64, pos_emb="kerple_power_ap_"
        )
        module = known[name](arguments)
        module.bias_p.data = torch.tensor([0.3, 1.0, 1.7], dtype=torch.float64)[:, None, None]
        module.bias_a.data = torch.tensor([0.9, 0.2, 0.05], dtype=torch.float64)[:, None, None]
        zeros = torch.zeros(1, HEADS, LENGTH, LENGTH, dtype=torch.float64)
        bias = module(zeros)[0]
        found[kernel] = {
            "p": module.bias_p.flatten().tolist(),
            "a": module.bias_a.flatten().tolist(),
            "last_row": bias[:, -1].tolist(),  # keys at distances LENGTH - 1 .. 0
        }
    return found


def fire(checkout: Path) -> dict[str, Any]:
    """Return FIRE as DAPE's authors wrote it, with a threshold inside the sequence."""
    module = definitions(checkout / "DAPE.py", {"FIRE"})["FIRE"](HEADS, mlp_width=5, init_L=4.0)
    module = randomized(module)
    module.c.data = torch.tensor(0.3, dtype=torch.float64)
    module.init_L.data = torch.tensor(4.0, dtype=torch.float64)
    module.L_multiplier.data = torch.tensor(1.1, dtype=torch.float64)
    module.mlp.double()
    bias = module(torch.zeros(1, HEADS, LENGTH, LENGTH, dtype=torch.float64))[0]
    return {
        "source": "chuanyang-Zheng/DAPE@bde344a:DAPE.py, class FIRE",
        "c": module.c.item(),
        "threshold": (module.init_L * module.L_multiplier).item(),
        "eps": module.eps,
        "weights": {name: value.tolist() for name, value in module.mlp.named_parameters()},
        "bias": bias.tolist(),
    }


class Recorder(nn.Module):
    """Stands in for a layer of TUPE and keeps the bias that it is given."""

    def __init__(self, **options: Any) -> None:
        """Take any options."""
        super().__init__()

    def forward(self, x: Any, self_attn_padding_mask: Any, self_attn_bias: Any) -> Any:
        """Return the states as they are."""
        self.seen = self_attn_bias
        return x


def tupe(checkout: Path) -> dict[str, Any]:
    """Return TUPE's untied biases, absolute alone and with relative buckets."""
    from typing import Optional

    found: dict[str, Any] = {
        "source": "guolinke/TUPE@4c64ff7:fairseq/modules/transformer_sentence_encoder.py"
    }
    known = definitions(
        checkout / "fairseq/modules/transformer_sentence_encoder.py",
        {"TransformerSentenceEncoder", "relative_position_bucket"},
        LayerNorm=lambda size, export: nn.LayerNorm(size, eps=1e-5),
        TransformerSentenceEncoderLayer=Recorder,
        Optional=Optional,
        Tuple=tuple,
    )
    for name, relative in (("absolute", False), ("relative", True)):
        module = known["TransformerSentenceEncoder"](
            padding_idx=0,
            vocab_size=5,
            num_encoder_layers=1,
            embedding_dim=WIDTH,
            num_attention_heads=HEADS,
            max_seq_len=LENGTH,
            rel_pos=relative,
            rel_pos_bins=8,
            max_rel_pos=6,
        )
        module = randomized(module).eval()
        module(torch.ones(1, LENGTH, dtype=torch.long))
        weights = {
            key: value.tolist()
            for key, value in module.named_parameters()
            if key.startswith(("pos", "relative_attention_bias"))
        }
        found[name] = {"weights": weights, "bias": module.layers[0].seen.tolist()}
    return found


def main() -> None:
    """Write one file for each original."""
    *checkouts, out = map(Path, sys.argv[1:])
    makers = {"kerple": kerple, "fire": fire, "tupe": tupe}
    with torch.no_grad():
        for (name, maker), checkout in zip(makers.items(), checkouts, strict=True):
            text = json.dumps(maker(checkout), separators=(",", ":"))
            (out / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
