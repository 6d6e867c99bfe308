"""Our own entry at a client: which door of ours it leads to, how it is written, how it is known again. Pure.

The door follows from what the client's model pays, and from whether what is there reaches it at all.

What a task costs a model at each door, with T tokens of all tools' definitions and M of the meta-tools' (M is a few
hundred, whatever T is). Figures are of docs/background/clients.md, of two clients before 108 tools:

- `four`: M in every request. A search before the first call of each need: a turn, and some 650 tokens of rows. Results
  are kept to a budget, and a tool that comes later is found by the next search, whether or not the client reads lists
  again. One name covers reading and deleting, so a client that goes by `readOnlyHint` makes one call after the other
  (three reads of 1 s in 3.7 s), and its rules cannot tell them apart.
- `by-effect`: the same, and one tool more, for what only reads: those calls run side by side, and a rule can allow it.
- `all`, for a client that sends its model all it has: T in every request, no search.
- `all`, for a client that searches itself: the names of the tools, or less, in every request. A search of its own
  before the first call: a turn, and the definitions that it finds. Tools have their own names, so reads run side by
  side (1.3 s) and rules can tell them apart, one by one. Results are not kept to our budget.
- `servers`: the turns of `all`, and of its tokens a little less or more; an entry and a connection for each server, and
  entries to bring up to date when servers come and go.

So with a client that keeps our tools loaded (by a hint of ours, or by a key in its entry) the meta-tools cost no turn
more than its own search would, and less in every request (Claude Code: 2 turns at both; 802 tokens, at `all` 1,528):
they are better. With one that searches itself and does not, they would have to be searched before they can search, and
`all` is better (Codex: 3 turns and 2,549 tokens at `four`, 2 turns and 1,257 at `all`). With one that sends its model
all that it has, or of which nothing is said, the four are what does least harm. `servers` gains too little for what is
to be kept up to date, so it is for who asks for it. (Codex tells its model a line of each entry. At `all` that line
names the servers, as many as 250 characters hold, so a model knows there, too, what it could search for.)

A door is kept as an address in the client's file while tools come behind it. So that T is small today is no reason for
`all`, but with a client that begins to search by itself once there are many: there it saves the search as long as T is
no more than M. With more tools `choose` goes from `all` to the meta-tools and never back; the list that `connect`
prints says where it would choose anew.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

import msgspec

from supervisor.config.address import PORTS, leads_to
from supervisor.config.clients import URL, ClientProgram, Facts, value_of

PROGRAM: Final = "mcpvisor"
STDIO: Final = "stdio"
"""Our command for clients that start a program."""


def own_entry(
    client: ClientProgram, url: str, program: Sequence[str], more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the entry of us at `url`; `program` is our own command line, for a client that only starts programs.

    `more`: what it has besides.
    """
    if client.remote is None:
        command, *args = program
        return {"command": command, "args": args, **(more or {})}
    entry: dict[str, Any] = {
        key: url if value == URL else value if isinstance(value, str) else list(value)
        for key, value in client.remote.items()
    }
    return {**entry, **(more or {})}


def is_own(members: object, listens: Collection[str]) -> bool:
    """Say whether an entry of any client leads to us: to one of the addresses `host:port`, or by our own program."""
    if _address_in(members, listens) is not None:
        return True
    words = [text for key, text in _texts(members) if key in ("command", "args", "cmd", "path")]
    before = words[: words.index(STDIO)] if STDIO in words else []
    names = {PurePath(word.replace("\\", "/").partition("@")[0]).stem for word in before}
    return not names.isdisjoint({PROGRAM, "supervisor"})


def _address_in(members: object, listens: Collection[str]) -> str | None:
    """Return the address in an entry that leads to one of `host:port`, None if none does."""
    for key, text in _texts(members):
        if any(leads_to(text, listen, doors_only=key not in ADDRESSES) for listen in listens):
            return text
    return None


ADDRESSES: Final = frozenset({"url", "serverUrl", "httpUrl", "uri"})
"""Keys under which clients have the address of a server."""


def _texts(members: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of an entry but those of its environment and its headers, each with the key it stands under."""
    if isinstance(members, str):
        yield key, members
    elif isinstance(members, Mapping):
        for name, each in members.items():
            if name not in ("env", "headers"):
                yield from _texts(each, str(name))
    elif isinstance(members, list):
        for each in members:
            yield from _texts(each, key)


Door = Literal["four", "by-effect", "all", "servers"]

MAIN: Final = "/mcp"
_ALL: Final = f"{MAIN}/all"
_SERVERS: Final = f"{MAIN}/servers/"
EXECUTE: Final = "execute"
BY_EFFECT: Final = "by-effect"
PROFILE: Final = "profile"
"""The parameter of an address that names a profile."""
_PATH: Final = re.compile(
    r"(?P<before>(?:/(?!mcp/)[^/]+)*?)(?:/mcp(?P<below>/all|/servers/[^/]+)?|(?P<personal>/i/[^/]+/mcp))/?"
)
"""Of a door; before it whatever a proxy has there."""
WORDS: Final[dict[Door, str]] = {
    "four": f"the four tools at {MAIN}",
    "by-effect": f"the five tools at {MAIN}?{EXECUTE}={BY_EFFECT}",
    "all": f"all tools at {_ALL}",
    "servers": f"one entry for each server, at {_SERVERS}NAME",
}
"""What a client sees at each."""


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """What a running daemon has. `tokens`: of the definitions of all tools, None if they are not counted yet."""

    tools: int
    tokens: int | None
    servers: tuple[str, ...]
    meta_tokens: int
    by_effect: bool = False
    """Whether it has the door of that name."""


class Choice(msgspec.Struct, frozen=True):
    """A door, and why; the reason follows "as"."""

    door: Door
    reason: str

    def __str__(self) -> str:
        return f"{WORDS[self.door]}, as {self.reason}"


def choose(facts: Facts, offered: Offered | None, wanted: Door | None = None) -> Choice:
    """Return the door for a client: the one that is `wanted`, else the one that costs its model least.

    `offered` is None where no daemon says what it has.
    """
    if wanted is not None:
        return Choice(wanted, "you asked for it")
    if offered is None:
        return Choice("four", "no daemon says how many tools there are")
    tools, tokens, meta = offered.tools, offered.tokens, offered.meta_tokens
    if not tools:
        return Choice("four", "there are no tools yet")
    limit = value_of(facts.limit)
    if limit is not None and limit.above == "left out" and tools > limit.tools:
        return _meta_tools(facts, offered, f"it takes {limit.tools} tools at most, and there are {tools:,}")
    searches, loaded = value_of(facts.searches), _stays_loaded(facts)
    if searches == "many" and tokens is not None and tokens <= meta:
        return Choice("all", f"all {tools} cost {tokens} tokens, the four {meta}, and it searches many itself")
    if searches == "always" and not loaded:
        return Choice("all", f"it searches the {tools:,} itself, and would have to search for the four first")
    if searches in ("always", "many"):
        few = "it keeps these loaded" if loaded else "it loads a few at once"
        return _meta_tools(facts, offered, f"{few}, and would have to search the {tools:,} others")
    if searches == "never":
        cost = f" and {tokens:,} tokens" if tokens is not None else ""
        return _meta_tools(facts, offered, f"it would send its model all {tools:,}{cost} with every request")
    if limit is not None:
        told = f"it takes {limit.tools} tools, more are {limit.above}, and nothing says what {tools:,} cost its model"
        return _meta_tools(facts, offered, told)
    return _meta_tools(facts, offered, f"nothing says what it does with {tools:,} tools")


def _meta_tools(facts: Facts, offered: Offered, reason: str) -> Choice:
    if offered.by_effect and value_of(facts.side_by_side) == "read-only":
        return Choice("by-effect", f"{reason}, and runs reads side by side")
    return Choice("four", reason)


def _stays_loaded(facts: Facts) -> bool:
    """Say whether our tools reach the model of a client that searches itself, without a search."""
    return facts.keeps_loaded is not None or value_of(facts.heeds_hint) is True


class DoorPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A door at an address: `url` without what says how tools are run there, which is in `door`.

    `base`: what it begins with, up to the daemon. `door` is None where the address leaves the choice: the first one.
    """

    url: str
    base: str
    door: Door | None

    @property
    def is_first(self) -> bool:
        """Whether any other door is below it."""
        return self.door in (None, "by-effect")


def read_door(url: str) -> DoorPlace:
    """Return the door at an address with a path. Raises `ValueError`, that says which there are, if it is none."""
    parts = urlsplit(url)
    path = _PATH.fullmatch(parts.path)
    if path is None:
        raise ValueError(
            f"there is no door at {parts.path or '/'}: there are {MAIN}, {_ALL} and {_SERVERS}NAME; the address of a "
            "daemon is scheme, host and port"
        )
    members = [member for member in parts.query.split("&") if member]
    said = [value for name, value in parse_qsl(parts.query) if name == EXECUTE]
    kept = [member for member in members if member.partition("=")[0] != EXECUTE]
    place = urlunsplit(parts._replace(path=parts.path.rstrip("/"), query="&".join(kept), fragment=""))
    is_first = not (path["below"] or path["personal"])
    if said and (not is_first or {*said} != {BY_EFFECT}):
        raise ValueError(f"what {EXECUTE} says there means nothing: there is {MAIN}?{EXECUTE}={BY_EFFECT}")
    base = urlunsplit((parts.scheme, parts.netloc, path["before"], "", ""))
    return DoorPlace(url=place, base=base, door=("by-effect" if said else None) if is_first else door_at(place))


def is_like_ours(url: str) -> bool:
    """Say whether an address has the path of a door of ours and nothing else, so that no secret is in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    path = _PATH.fullmatch(parts.path)
    return parts.scheme in PORTS and path is not None and not path["before"] and not parts.fragment


def address(url: str, door: Door, server: str = "") -> str:
    """Return where a door is, and that of a `server` by itself; `url` is the first one, with a profile or without."""
    parts = urlsplit(url)
    below = {"all": "/all", "servers": f"/servers/{quote(server, safe='')}"}.get(door, "")
    more = f"{EXECUTE}={BY_EFFECT}" if door == "by-effect" else ""
    query = "&".join(filter(None, (parts.query, more)))
    return urlunsplit(parts._replace(path=parts.path + below, query=query))


def door_at(url: str) -> Door:
    """Return which door an address of ours is; any that is none of the others is the first one."""
    parts = urlsplit(url)
    below = parts.path.rstrip("/")
    if below.endswith(_ALL):
        return "all"
    if _SERVERS in f"{below}/" or below.startswith("/i/"):
        return "servers"
    return "by-effect" if dict(parse_qsl(parts.query)).get(EXECUTE) == BY_EFFECT else "four"


def door_of(members: object, listens: Collection[str]) -> Door | None:
    """Return the door that an entry of any client leads to, None if it is not ours."""
    if not is_own(members, listens):
        return None
    return door_at(_address_in(members, listens) or MAIN)


def keeps_loaded(facts: Facts, door: Door) -> dict[str, Any]:
    """Return what our own entry needs so that the meta-tools stay loaded: nothing where the hint on them is enough."""
    fact = facts.keeps_loaded
    needed = door in ("four", "by-effect") and value_of(facts.heeds_hint) is not True
    return {**fact.value} if fact is not None and needed else {}
