"""Print golden values of DAPE over ALiBi from the authors' code, as JSON.

Source: github.com/chuanyang-Zheng/DAPE, DAPE.py at commit bde344a. Run as
`python tools/golden_dape.py PATH_TO/DAPE.py | grep -v ^torch > tests/mechanisms/golden_dape.json`.
The file holds weights, logits, and what the code adds to them (bias and network); it is causal,
so pairs j > i do not count.
"""

import importlib.util
import json
import sys
from typing import Any

import torch

HEADS, LENGTH, WIDTH = 2, 4, 3


def main(path: str) -> None:
    """Load the authors' module from `path` and print one call of it."""
    spec = importlib.util.spec_from_file_location("dape_of_the_authors", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.manual_seed(0)
    dape = module.AliBi_DAPE(HEADS, mp_rank=0, mlp_width=WIDTH)  # rank 1 has no slopes
    logits = torch.randn(1, HEADS, LENGTH, LENGTH)
    with torch.no_grad():
        added = dape(logits) - logits

    def rounded(value: Any) -> Any:
        return [rounded(x) for x in value] if isinstance(value, list) else round(value, 7)

    weights = {name: rounded(value.tolist()) for name, value in dape.mlp2.state_dict().items()}
    golden = {"weights": weights, "logits": rounded(logits.tolist())}
    print(json.dumps({**golden, "added": rounded(added.tolist())}))


if __name__ == "__main__":
    main(sys.argv[1])
