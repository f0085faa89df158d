"""All kernels compile for a GPU with all that they can be asked for, and seldom; none need be at hand."""

import os
import subprocess
import sys
from pathlib import Path

KERNELS = "block_bounds fold_kernel forward_kernel key_backward_kernel query_backward_kernel"


def words_of(what: str, cache: Path) -> list[str]:
    """Return what `compiled.py` prints in a process that does not interpret."""
    environment = {**os.environ, "TRITON_CACHE_DIR": str(cache), "TRITON_INTERPRET": "0"}
    command = [sys.executable, "-m", "tests.triton.kernels.compiled", what]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


def test_all_kernels_compile_for_compute_capability_9(tmp_path: Path) -> None:
    assert words_of("90", tmp_path) == [*KERNELS.split(), "spread_kernel", "tile_lists"]


def test_no_length_batch_or_piece_makes_kernels_compile_anew(tmp_path: Path) -> None:
    """Forward, by key and by query; lengths are multiples of 16, others share a second version."""
    assert words_of("count", tmp_path) == ["1", "1", "1"]
