"""The object `identity` of a configuration: users and teams, and what they give for servers.

A fault of it is one of the whole file: with less in it, or more, people would see what nobody meant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from supervisor.config.given import VALUES, Expand, GivenReader
from supervisor.config.syntax.keys import is_comment, name_fault, nearest, suggest_name
from supervisor.config.syntax.values import Problem, Remark, read_members
from supervisor.identity.people import People, Team, User

IDENTITY: Final = "identity"
_KINDS: Final[Mapping[str, type[Struct]]] = {"users": User, "teams": Team}


def read_identity(written: Any, expand: Expand, problem: Problem) -> dict[str, Any]:
    """Return the members of the object as `People` takes them. `problem` takes keys from `supervisor` inwards."""
    own = read_members(People, written, (IDENTITY,), problem, IDENTITY)
    return {key: _read_named(key, own[key], expand, problem) for key in _KINDS if key in own}


def _read_named(kind: str, named: dict[str, Any], expand: Expand, problem: Problem) -> dict[str, Any]:
    read = {}
    for name, members in named.items():
        if is_comment(name):
            continue
        if fault := name_fault(name):
            problem((IDENTITY, kind, name), fault, f'rename it, for example to "{suggest_name(name)}"')
        place = (IDENTITY, kind, name)
        given = GivenReader(place, expand, problem).read(members.get(VALUES, {}))
        read[name] = read_members(_KINDS[kind], {**members, VALUES: given}, place, problem, IDENTITY)
    return read


def identity_remarks(identity: People, servers: Collection[str]) -> Iterator[Remark]:
    """Yield which names of users and servers mean nobody; `servers` are all there are."""
    known = {"user": identity.users, "server": servers}
    for place, name, kind in identity.faults(servers):
        likely = nearest(name, known[kind])
        yield (IDENTITY, *place), f"there is no {kind} {name!r}", f'did you mean "{likely}"?' if likely else ""
