"""Every variant of every mechanism as an ONNX file, compared with the model in onnxruntime.

    python tools/check_onnx.py [NAME ...]

Takes some minutes: a few seconds for each. Ends with 1 if one differs by more than 1e-4 or is refused.
"""

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

from posattn.errors import PosattnError
from posattn.export import save_onnx

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.encoder.small_models import MECHANISMS  # noqa: E402
from tests.encoder.small_models import model as small_model  # noqa: E402


def main() -> int:
    """Print the largest difference in logits of each variant; return the exit code."""
    warnings.simplefilter("ignore")
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    options.add_argument("names", nargs="*", metavar="NAME", help="mechanisms; all by default")
    names = options.parse_args().names
    failed = 0
    for variant, mechanism in MECHANISMS.items():
        if (names and mechanism["name"] not in names) or mechanism.get("memory_length"):
            continue
        model = small_model(mechanism, backend="eager")
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(
                    f"{variant:32} {save_onnx(model, Path(folder) / 'model.onnx'):.1e}", flush=True
                )
            except PosattnError as error:
                failed += 1
                print(f"{variant:32} refused: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
