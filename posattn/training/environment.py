"""environment.json: what a run's numbers depend on beside the recipe."""

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
import torch

PACKAGES = (
    "posattn", "torch", "numpy", "tokenizers", "safetensors", "accelerate", "pydantic",
)  # fmt: skip


def describe_environment(
    device: torch.device, seeds: dict[str, int], folder: Path | None = None
) -> dict[str, Any]:
    """Return versions, machine, threads, seeds, and git state of `folder` (else of the current)."""
    return {
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "threads": torch.get_num_threads(),
        "blas": blas_name(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "seeds": seeds,
        "git": git_state(folder or Path.cwd()),
    }


def cpu_model() -> str:
    """Return the processor's name as the system gives it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def peak_resident_bytes() -> int:
    """Return the largest resident memory of this process so far, in bytes."""
    on_windows = getattr(psutil.Process().memory_info(), "peak_wset", None)
    if on_windows is not None:
        return int(on_windows)
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def blas_name() -> str:
    """Return the linear algebra library that torch was built with."""
    for item in torch.__config__.show().replace("\n", ",").split(","):
        name, _, value = item.strip().partition("=")
        if name.endswith("BLAS_INFO"):
            return value
    return "unknown"


def git_state(folder: Path) -> dict[str, Any] | None:
    """Return commit and whether files differ from it; None outside a repository or without git."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    changes = _git(folder, "status", "--porcelain")
    return {"commit": commit, "dirty": bool(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
