"""`${team:NAME}` and `${user:NAME}`: texts of an entry with places for values that teams and users give. Pure.

What else stands in such a text is expanded when the file is read; a value is put in as it is, and is not expanded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from supervisor.config.syntax.jsonc import KeyPath
from supervisor.identity.people import TIERS as TIERS
from supervisor.identity.people import Given as Given
from supervisor.identity.people import GivenByServer as GivenByServer
from supervisor.identity.people import Tier as Tier
from supervisor.identity.people import Value as Value


class Reference(msgspec.Struct, frozen=True):
    """A place for a value. `default` is what holds where nobody gives one; None: somebody has to."""

    tier: Tier
    name: str
    default: str | None = None


class TieredText(msgspec.Struct, frozen=True):
    """A text with such places in it, and where in the entry it stands, by our keys."""

    place: KeyPath
    parts: tuple[str | Reference, ...]

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(part for part in self.parts if isinstance(part, Reference))

    @property
    def is_argument(self) -> bool:
        """Whether it is a place for arguments of the program and nothing else."""
        return self.place[0] == "args" and len(self.parts) == 1

    def fill(self, value_of: Callable[[Reference], Value]) -> tuple[str, ...]:
        """Return the texts that stand there: one, or as many arguments as were given."""
        filled = [part if isinstance(part, str) else value_of(part) for part in self.parts]
        if len(filled) == 1 and isinstance(filled[0], tuple):
            return filled[0]
        return ("".join(part if isinstance(part, str) else " ".join(part) for part in filled),)


def fill_in(
    own: Mapping[str, Any], texts: Iterable[TieredText], value_of: Callable[[TieredText, Reference], Value]
) -> dict[str, Any]:
    """Return what of an entry, given by our keys, texts stand in, with them in their places."""
    url, env, headers = own.get("url", ""), {**own.get("env", {})}, {**own.get("headers", {})}
    arguments: list[tuple[str, ...]] = [(text,) for text in own.get("args", ())]
    for text in texts:
        filled = text.fill(partial(value_of, text))
        match text.place:
            case ("args", int(at)):
                arguments[at] = filled
            case ("env", str(name)):
                env[name] = filled[0]
            case ("headers", str(name)):
                headers[name] = filled[0]
            case _:
                url = filled[0]
    return {"url": url, "env": env, "headers": headers, "args": tuple(text for texts in arguments for text in texts)}
