"""Print golden values of CAPE from the authors' code, in evaluation, as JSON.

Source: github.com/gcambara/cape, cape/cape.py at commit d456950 (MIT). Run as
`python tools/golden_cape.py PATH_TO/cape.py > tests/mechanisms/golden_cape.json`.
"""

import importlib.util
import json
import sys

import torch

CASES = [
    {"d_model": 6, "tokens": 4, "normalize": False, "delta": 1.0, "freq_scale": 1.0},
    {"d_model": 6, "tokens": 5, "normalize": True, "delta": 0.5, "freq_scale": 2.0},
]


def main(path: str) -> None:
    """Load the authors' module from `path` and print what it adds to each token."""
    spec = importlib.util.spec_from_file_location("cape_of_the_authors", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = []
    for case in CASES:
        options = {key: case[key] for key in ("d_model", "normalize", "freq_scale")}
        encoder = module.CAPE1d(batch_first=True, **options).eval()
        tokens = torch.zeros(1, case["tokens"], case["d_model"])
        added = encoder.compute_pos_emb(tokens, positions_delta=case["delta"])[0]
        found.append({**case, "added": [[round(x, 7) for x in row] for row in added.tolist()]})
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(sys.argv[1])
