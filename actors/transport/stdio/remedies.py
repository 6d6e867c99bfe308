"""What to do where a program is missing, or says that it cannot work: what `remedies.toml` says, as values. Pure.

Nothing is said that may be wrong for another reason: what package managers, SDKs and Docker say is known by their own
words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Final

import msgspec

from actors.kit.tables import table_of
from actors.transport.stdio.installer import Installer

_UV: Final = frozenset({"uvx", "uv"})


class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where programs come from that servers are started with. `oldest`: versions before it start no present server.

    `asked`: the program that says the version, to these `arguments`; empty: each says it itself.
    """

    name: str
    programs: tuple[str, ...]
    install: str
    asked: str = ""
    oldest: tuple[int, ...] = ()
    arguments: tuple[str, ...] = ("--version",)


class Remedy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to do where a cause `says` this, and some other line of the output this (`among`), if there is one."""

    says: str
    advice: str
    among: str = ""
    with_uv: str = ""

    def for_(self, cause: str, lines: Iterable[str], installer: Installer | None) -> str:
        """Return what to do; empty where this is not what is the matter."""
        found = re.search(self.says, cause, re.MULTILINE)
        if found is None or (self.among and not any(re.search(self.among, line) for line in lines)):
            return ""
        advice = self.with_uv if self.with_uv and installer is not None and installer.launcher in _UV else self.advice
        return advice.format(**found.groupdict())


class _Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    provider: tuple[Provider, ...]
    remedy: tuple[Remedy, ...]


_TABLES: Final = table_of(__package__, "remedies", _Tables)
PROVIDERS: Final = _TABLES.provider
"""Those that published servers are started with; of another program nobody here knows where it comes from."""
REMEDIES: Final = _TABLES.remedy

_BY_PROGRAM: Final = {program: provider for provider in PROVIDERS for program in provider.programs}


def provider_of(command: str) -> Provider | None:
    return _BY_PROGRAM.get(PurePath(command).name)


def how_to_install(command: str) -> str:
    """Return what to do where a program is missing; empty for one of which that is not known."""
    provider = provider_of(command)
    if provider is None:
        return ""
    program = PurePath(command).name
    comes = f"{program} comes with {provider.name}: " if program != provider.name.lower() else ""
    return f"{comes}{provider.install}"


def how_to_provide(command: str, hint: str, nearest: str | None = None) -> str:
    """Return what to do about a command that cannot be started. `hint`: how it is installed, where that is known."""
    if "/" in command:
        return hint or "correct the path, or install the program"
    meant = f'did you mean "{nearest}"? Or ' if nearest else ""
    install = hint or f"{meant}install it"
    return f"{install}, or write its absolute path; a service often has a shorter PATH than your shell"


def advice_on(cause: str, lines: Iterable[str] = (), installer: Installer | None = None) -> str:
    """Return what to do about a cause, one of the `lines` that a program wrote; empty where nothing is known of it."""
    kept = tuple(lines)
    return next((advice for remedy in REMEDIES if (advice := remedy.for_(cause, kept, installer))), "")
