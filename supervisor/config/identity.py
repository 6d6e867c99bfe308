"""Who sees what: the objects `identity` (users, teams, identity providers) and `profiles` of a configuration. Pure.

- A fault is one of the whole file: with less in it, or more, people would see what nobody meant.
- Profiles, and the `confirm` of people, name tools by `server:tool`. Which tools a server has is known to a daemon
  only; what an entry says of its tools is in the file: a tool that it hides is nobody's, and of one that it renames
  profiles have the new name, and `confirm` the server's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from actors.catalogue.tool_rules import ToolRules, fits
from actors.catalogue.views import ViewProfile
from supervisor.config.address import is_loopback
from supervisor.config.given import VALUES, GivenReader
from supervisor.config.jsonc import KeyPath
from supervisor.config.keys import hint_of, is_comment, name_fault, suggest_name
from supervisor.config.settings import Settings
from supervisor.config.values import Problem, Remark, is_address, read_members
from supervisor.identity.people import ALGORITHMS, Introspection, Issuer, People, Team, User

_WILD = re.compile(r"[*?\[\]]")


def _unfitting(path: str, servers: Mapping[str, ToolRules], *, own: bool) -> tuple[str, str] | None:
    """Return why a path fits no tool of the servers that it names, and what to do; None if it may fit one.

    `own`: it has the name that the server gives its tool.
    """
    server, _, tool = path.partition(":")
    named = [rules for name, rules in servers.items() if fits(name, (server,))]
    if not tool:
        return "names no tool, so it fits none", "write server:tool, or server:* for all"
    faults = [_fault(tool, rules, own=own) for rules in named] if _WILD.search(tool) is None else []
    return faults[0] if faults and all(faults) else None


def _fault(tool: str, rules: ToolRules, *, own: bool) -> tuple[str, str] | None:
    former = next((old for old, new in rules.rename.items() if new == tool), None)
    if own and former is not None and tool not in rules.rename:
        return "this is the name that clients see, and the server's own counts here", f'write "{former}"'
    if not own and former is None and (new := rules.rename.get(tool, tool)) != tool:
        return "its server's entry gives this tool another name", f'write "{new}"'
    if not rules.allows(former or tool):
        return "its server's entry hides this tool", "remove it, or change tools of the entry"
    return None


def named_tools(settings: Settings) -> Iterator[str]:
    """Yield each whole path that profiles and people name."""
    for profile in settings.profiles.values():
        yield from filter(_is_whole, (*(profile.tools or ()), *profile.deny))
    people: list[User | Team] = [*settings.identity.users.values(), *settings.identity.teams.values()]
    for owner in people:
        yield from filter(_is_whole, () if isinstance(owner.confirm, str) else owner.confirm)


def _is_whole(path: str) -> bool:
    return _WILD.search(path) is None and all(path.partition(":"))


_PROFILES = "profiles"
_WITH_PATHS = ("tools", "deny")


def read_profiles(members: Mapping[str, Any], default: object, problem: Problem) -> dict[str, dict[str, Any]]:
    """Return the members of each profile, objects as the file has them; `default` is the setting `profile`.

    `problem` takes keys from `supervisor` inwards.
    """
    read: dict[str, dict[str, Any]] = {}
    for name, written in members.items():
        if fault := name_fault(name):
            problem((_PROFILES, name), fault, f'rename it, for example to "{suggest_name(name)}"')
        read[name] = _read(name, written, problem)
    if isinstance(default, str) and default and default not in read:
        problem(("profile",), "there is no such profile", hint_of(default, read, 'it must be one of "profiles"'))
    return read


def _read(name: str, written: Mapping[str, Any], problem: Problem) -> dict[str, Any]:
    own = read_members(ViewProfile, written, (_PROFILES, name), problem)
    for at, pattern in enumerate(own.get("tools") or ()):
        if not all(pattern.partition(":")):
            problem((_PROFILES, name, "tools", at), "is not the path of a tool", "write server:tool, or server:*")
    return own


def profile_remarks(profiles: Mapping[str, ViewProfile], servers: Mapping[str, ToolRules]) -> Iterator[Remark]:
    """Yield which patterns of profiles fit none of these servers, all there are, or no tool of them."""
    for name, profile in profiles.items():
        for key in ("servers", *_WITH_PATHS):
            for at, pattern in enumerate(getattr(profile, key) or ()):
                server = pattern.partition(":")[0] if key in _WITH_PATHS else pattern
                if not any(fits(each, (server,)) for each in servers):
                    yield (_PROFILES, name, key, at), "no server is called so", hint_of(server, servers, "")
                elif ":" in pattern and (fault := _unfitting(pattern, servers, own=False)) is not None:
                    yield (_PROFILES, name, key, at), *fault


IDENTITY: Final = "identity"
ISSUERS: Final = "issuers"
_CONFIRM: Final = "confirm"
SECRET: Final = ("introspection", "client_secret")
"""Where, within a provider, a variable may stand."""
_KINDS: Final[Mapping[str, type[Struct]]] = {"users": User, "teams": Team}
_HTTPS: Final = "it begins with https://, as a secret or a key is fetched there"


def read_identity(written: Any, environ: Mapping[str, str], problem: Problem) -> dict[str, Any]:
    """Return the members of the object as `People` takes them. `problem` takes keys from `supervisor` inwards."""
    own = read_members(People, written, (IDENTITY,), problem)
    read: dict[str, Any] = {key: _read_named(key, own[key], environ, problem) for key in _KINDS if key in own}
    issuers = [_read_issuer(at, each, problem) for at, each in enumerate(own.get(ISSUERS, ()))]
    _check_subjects(read.get("users", {}), [each.get("issuer") for each in issuers], problem)
    return {**read, ISSUERS: issuers}


def _read_issuer(at: int, written: Any, problem: Problem) -> dict[str, Any]:
    place: KeyPath = (IDENTITY, ISSUERS, at)
    own = read_members(Issuer, written, place, problem)
    if not _is_provider(own.get("issuer", "")):
        problem((*place, "issuer"), "must be the https address of an identity provider", _HTTPS)
    for number in (at for at, each in enumerate(own.get("algorithms", ())) if each not in ALGORITHMS):
        problem((*place, "algorithms", number), "is not an algorithm that is taken", f"one of {', '.join(ALGORITHMS)}")
    if own.get("algorithms") == []:
        problem((*place, "algorithms"), "names none: no token could be valid", "leave it out for the usual ones")
    if "introspection" in own:
        own["introspection"] = _read_introspection(own["introspection"], (*place, "introspection"), problem)
    return own


def _read_introspection(written: Any, place: KeyPath, problem: Problem) -> dict[str, Any]:
    own = read_members(Introspection, written, place, problem)
    if own.get("endpoint") and not _is_provider(own["endpoint"], query=True):
        problem((*place, "endpoint"), "is not an address", _HTTPS)
    if not (own.get("client_id") and own.get("client_secret")):
        problem(place, "the daemon has to say who asks", 'give "client_id" and "client_secret"')
    return own


def _is_provider(address: str, *, query: bool = False) -> bool:
    """Say whether something that has to be confidential can be fetched at an address."""
    if not is_address(address, "http"):
        return False
    parts = urlsplit(address)
    secure = parts.scheme == "https" or is_loopback(parts.hostname or "")
    plain = address.isascii() and "@" not in parts.netloc and "#" not in address and (query or "?" not in address)
    return secure and plain


def _check_subjects(users: Mapping[str, Mapping[str, Any]], issuers: list[str | None], problem: Problem) -> None:
    """Record providers that are there twice, and subjects who could be two users, or none."""
    for at, issuer in enumerate(issuers):
        if issuer in issuers[:at]:
            problem((IDENTITY, ISSUERS, at, "issuer"), "is there twice", "remove one of them")
    taken: set[tuple[str | None, str]] = set()
    for name, user in users.items():
        place: KeyPath = (IDENTITY, "users", name)
        subject, issuer = user.get("subject", ""), user.get("issuer") or (issuers[0] if len(issuers) == 1 else None)
        if not subject:
            continue
        if issuer not in issuers:
            hint = "name one of identity.issuers" if issuers else "add it to identity.issuers"
            problem((*place, "issuer"), "says of no identity provider which one knows the subject", hint)
        if (issuer, subject) in taken:
            problem((*place, "subject"), "is another user, too", "a subject is one user")
        taken.add((issuer, subject))


def _read_named(kind: str, named: dict[str, Any], environ: Mapping[str, str], problem: Problem) -> dict[str, Any]:
    read = {}
    for name, members in named.items():
        if is_comment(name):
            continue
        if fault := name_fault(name):
            problem((IDENTITY, kind, name), fault, f'rename it, for example to "{suggest_name(name)}"')
        place = (IDENTITY, kind, name)
        given = GivenReader(place, environ, problem).read(members.get(VALUES, {}))
        own = read[name] = read_members(_KINDS[kind], {**members, VALUES: given}, place, problem)
        patterns = [] if isinstance(own.get(_CONFIRM), str) else own.get(_CONFIRM, [])
        for at in (at for at, each in enumerate(patterns) if ":" not in each and each != "*"):
            problem(
                (*place, _CONFIRM, at), "names no server, so it fits no tool", 'write "server:tool", or "*" for all'
            )
    return read


def identity_remarks(identity: People, servers: Mapping[str, ToolRules]) -> Iterator[Remark]:
    """Yield which names of users, servers and tools mean nobody; `servers` are all there are."""
    known = {"user": identity.users, "server": servers}
    for place, name, kind in identity.faults(servers):
        yield (IDENTITY, *place), f"there is no {kind} {name!r}", hint_of(name, known[kind], "")
    for kind, named in (("users", identity.users), ("teams", identity.teams)):
        for name, owner in named.items():
            for at, pattern in enumerate(() if isinstance(owner.confirm, str) else owner.confirm):
                if ":" in pattern and (fault := _unfitting(pattern, servers, own=True)) is not None:
                    yield (IDENTITY, kind, name, _CONFIRM, at), *fault
