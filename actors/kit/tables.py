"""Data of ours that stand in a TOML file beside the module that uses them."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import TypeVar

import msgspec

T = TypeVar("T")


def table_of(package: str | None, name: str, of: type[T]) -> T:
    """Return what the file `NAME.toml` of a package says. Raises for a file of another form, when it is imported."""
    assert package is not None, "of a module in a package"
    text = files(package).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), of)
