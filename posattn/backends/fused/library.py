"""The compiled operators: built once per source, compiler and processor, then kept in the cache folder."""

import platform
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import final

import torch
from torch.utils import cpp_extension

from posattn.cache import build_once, cache_folder
from posattn.errors import BackendRefusal, DataError

SOURCES = Path(__file__).parent / "native"
FLAGS = (
    "-O3",
    "-std=c++20",
    "-fPIC",
    "-shared",
    "-fopenmp",
    "-fno-math-errno",
    "-fno-trapping-math",
)
NATIVE = {"x86_64": ("-march=native", "-mprefer-vector-width=512"), "aarch64": ("-mcpu=native",)}

Announce = Callable[[str], None]


def to_stderr(message: str) -> None:
    """Print one line beside the results."""
    print(message, file=sys.stderr, flush=True)


def _is_registered() -> bool:
    return hasattr(torch.ops.posattn, "fused_attention")


@final
class NativeLibrary:
    """The library with the operators `posattn::fused_attention` and its backward."""

    def __init__(
        self, announce: Announce = to_stderr, is_known: Callable[[], bool] = _is_registered
    ) -> None:
        """Load nothing yet; `is_known` says whether this process has the operators already."""
        self._announce = announce
        self._is_known = is_known
        self._problem: str | None = None
        self._is_loaded = False

    def problem(self) -> str | None:
        """Return why the operators cannot be had here, or None; builds and loads them when first asked."""
        if not self._is_loaded and self._problem is None:
            self._problem = self._load()
            self._is_loaded = self._problem is None
        return self._problem

    def _load(self) -> str | None:
        if self._is_known():  # another object loaded them
            return None
        if sys.platform != "linux":
            return f"its operator is compiled on Linux only, not on {sys.platform}"
        compiler = _compiler()
        if compiler is None:
            return (
                f"there is no C++ compiler: '{cpp_extension.get_cxx_compiler()}' does not run "
                "(install g++, or name one in the environment variable CXX)"
            )
        try:
            torch.ops.load_library(str(self._built(compiler)))
        except (BackendRefusal, DataError, OSError) as error:
            return f"its operator cannot be had: {error}"
        from posattn.backends.fused import gradient

        gradient.register()
        return None

    def _built(self, compiler: str) -> Path:
        """Return the compiled library, from the cache if it is there."""
        name = "fused.so"

        def build(folder: Path) -> None:
            self._announce("posattn: compiling the backend 'fused' for this machine, once")
            _compile(folder / name)

        def problem(folder: Path) -> str | None:
            return None if (folder / name).is_file() else f"{name} is missing"

        folder = cache_folder() / "native" / _key(compiler)
        return build_once(folder, build, problem, self._announce) / name


def _compiler() -> str | None:
    """Return what the compiler says of its version, or None if it does not run."""
    command = [cpp_extension.get_cxx_compiler(), "--version"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def _key(compiler: str) -> str:
    """Return a digest of all that decides what the compiled library is."""
    digest = sha256()
    for path in sorted(SOURCES.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    facts = (torch.__version__, compiler, platform.machine(), _processor(), *FLAGS)
    digest.update("\n".join(facts).encode())
    return digest.hexdigest()[:32]


def _processor() -> str:
    """Return the processor's instruction sets, which `native` code depends on."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _compile(target: Path) -> None:
    include = [f"-I{path}" for path in cpp_extension.include_paths()]
    libraries = [f"-L{path}" for path in cpp_extension.library_paths()]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    command = [cpp_extension.get_cxx_compiler(), *FLAGS, *NATIVE.get(platform.machine(), ()), abi]
    command += [*include, str(SOURCES / "fused.cpp"), "-o", str(target), *libraries]
    done = subprocess.run([*command, "-ltorch_cpu", "-lc10"], capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line][:3]
        raise BackendRefusal(f"the compiler failed: {' '.join(errors) or done.stderr[-300:]}")
