"""What a published server holds in memory from one call to the next, as `stateful.toml` has it. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import PurePath
from typing import Final

import msgspec

from actors.transport.stdio.remedies import provider_of

_VERSION: Final = re.compile(r"(?<=.)(?:@|==|>=|~=|\[|:(?!/)).*$")
"""Behind the name of a package or an image: `@latest`, `==1.2`, `[extra]`, `:tag`."""


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    holds: str
    names: tuple[str, ...]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    row: tuple[_Row, ...]


_TABLE: Final = msgspec.convert(
    tomllib.loads(files(__package__).joinpath("stateful.toml").read_text(encoding="utf-8")), _Table
)
_OF_IMAGES: Final = (provider_of("docker"), provider_of("podman"))
HOLDS: Final = {name: row.holds for row in _TABLE.row for name in row.names}


def held_by(command: str, args: Sequence[str]) -> str:
    """Return what a server holds that is started so; empty if that is unknown.

    Of the command its name counts, of an argument the whole word: a path may lead to anything that is called so. An
    image is named with its registry before it.
    """
    words = [PurePath(command).name, *(word.partition("=")[2] if word.startswith("-") else word for word in args)]
    names = [_VERSION.sub("", word) for word in words]
    if provider_of(command) in _OF_IMAGES:
        names += ["/".join(name.split("/")[-2:]) for name in names]
    return next((HOLDS[name] for name in names if name in HOLDS), "")
