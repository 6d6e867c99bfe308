"""The mutants of `mutants.toml`, and what a tree is like with one of them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from tests.sources import PACKAGES, ROOT

FILE: Final = Path(__file__).parent / "mutants.toml"


class Mutant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One slip: `find` is a piece of one source file, `replace` what is there by mistake.

    `name` says the fault as a sentence; `tests` are the files or folders of which one test has to fail.
    """

    name: str
    find: str
    replace: str
    tests: tuple[str, ...]


def mutants() -> tuple[Mutant, ...]:
    """Read all of them. Raises `msgspec.ValidationError` for what is none."""
    return msgspec.convert(tomllib.loads(FILE.read_text(encoding="utf-8"))["mutant"], tuple[Mutant, ...])


def sources(root: Path = ROOT) -> dict[Path, str]:
    """Return the text of all source files of a tree."""
    files = (file for package in PACKAGES for file in sorted((root / package).rglob("*.py")))
    return {file: file.read_text(encoding="utf-8") for file in files}


def places(mutant: Mutant, texts: dict[Path, str]) -> Iterator[Path]:
    """Yield the files that have what it replaces, each as often as that stands there."""
    for file, text in texts.items():
        yield from (file for _ in range(text.count(mutant.find)))
