"""All kernels compile for a GPU with all that they can be asked for; none need be at hand."""

import os
import subprocess
import sys
from pathlib import Path

KERNELS = "block_bounds fold_kernel forward_kernel key_backward_kernel query_backward_kernel"


def test_all_kernels_compile_for_compute_capability_9(tmp_path: Path) -> None:
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path), "TRITON_INTERPRET": "0"}
    command = [sys.executable, "-m", "tests.backends.triton_kernels.compiled", "90"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == [*KERNELS.split(), "spread_kernel", "tile_lists"]
