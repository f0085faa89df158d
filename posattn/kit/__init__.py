"""The kit for authors of mechanisms: a package to start from."""

from posattn.kit.package import write_package as write_package
