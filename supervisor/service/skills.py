"""Skills at the doors of many servers: what is asked about one, and whether its files are those that were listed.

A file is held against the entry that its server gave of the skill (SEP-2640, "Integrity and Verification"), by digest
and, of a `SKILL.md`, by what it begins with: that says that both fit together, and nothing about whether either can be
trusted.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol
from urllib.parse import unquote

import msgspec
import trio

from actors.catalogue.lists import Unusable, files_of, skill
from actors.catalogue.names import resource_uri
from actors.catalogue.offer import Skill
from actors.errors import ProtocolViolation, SkillMismatch, SupervisorError
from actors.protocol.agreement.versions import Era
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import RemoteError, encode
from supervisor.host.workbench import Workbench
from supervisor.metatools.inventory import rename_skill
from supervisor.metatools.texts import clean
from supervisor.service.asking.exchange import Exchange
from supervisor.service.client import Client
from supervisor.service.fitting.tool_definitions import fit_page
from supervisor.service.lookup.lookup import Naming
from supervisor.service.lookup.visible import Visible
from supervisor.service.request import PARAMS_COST, named_params

# Whether a `SKILL.md` begins with what its entry says (SEP-2640, "Frontmatter Verification").
#
# An entry has the front matter as JSON, made by its server's reader of YAML. Readers differ in what a plain scalar is:
# `yes`, `012` and `2026-01-01` are one thing by YAML 1.1 and another by 1.2. So a scalar is compared as it is written,
# and fits where one of them could have read it so: a skill must not be refused for the library that its server has.
#
# It comes from a stranger. No value is made of it: only nodes are, an alias is the node that it stands for, and all
# that is walked over is the entry, which is known to be small. The reader in Python ends at a depth where that in C
# would take the process with it.

MAX_BYTES: Final = 16_384
"""Of front matter; a longer one is taken for another one. The Agent Skills specification has 1,024 for the longest
text."""
FENCES: Final = 16
"""Of the lines around it."""
MAX_OPEN: Final = 500
"""So many brackets: the reader takes the square of them."""
_FRONT: Final = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_DAY: Final = re.compile(r"\d{4}-\d\d?-\d\d?")
_BREAKS: Final = str.maketrans("\x85\u2028\u2029", "   ")
"""These end a line by YAML 1.1 alone, so they are blanks on both sides."""
_NOTHING: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {True: ("true", "yes", "on", "y"), False: ("false", "no", "off", "n")}


def is_that(data: bytes, said: Any) -> bool:
    """Say whether a `SKILL.md` begins with front matter that is `said`, the object of its entry. Takes milliseconds."""
    import yaml  # type: ignore[import-untyped]  # it has no types; here, as most daemons have no skill to read

    head = data[: MAX_BYTES + FENCES].decode(errors="replace")
    if (front := _FRONT.match(head)) is None or len(text := front[1] or "") > MAX_BYTES:
        return False
    if text.count("[") + text.count("{") > MAX_OPEN:
        return False
    try:
        node = yaml.compose(text.translate(_BREAKS), Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return False
    return _front_matter_fits(node, said)


def _front_matter_fits(node: Any, said: Any) -> bool:
    """Say whether a node is a value of JSON; as deep as that one."""
    kind = getattr(node, "id", "")
    if isinstance(said, dict):
        if kind != "mapping" or len(node.value) != len(said):
            return False
        below = {key.value: value for key, value in node.value if key.id == "scalar"}
        return below.keys() == said.keys() and all(
            _front_matter_fits(below[name], value) for name, value in said.items()
        )
    if isinstance(said, list):
        there = kind == "sequence" and len(node.value) == len(said)
        return there and all(_front_matter_fits(item, value) for item, value in zip(node.value, said, strict=True))
    return kind == "scalar" and _fits_scalar(node.value, said, plain=node.style is None)


def _fits_scalar(text: str, said: Any, *, plain: bool) -> bool:
    if isinstance(said, str):
        return text == said.translate(_BREAKS) or (plain and (day := _day(text)) != "" and day == _day(said))
    if not plain:
        return False
    if said is None:
        return text in _NOTHING
    if isinstance(said, bool):
        return text.lower() in _BOOLEANS[said]
    return said in _numbers(text)


def _day(text: str) -> str:
    """Return the day that a text begins with: of a moment the hour depends on who wrote it down."""
    found = _DAY.match(text)
    return found[0] if found else ""


def _numbers(text: str) -> list[float]:
    """Return the numbers that a plain scalar can be: with a zero in front it is octal, or is not."""
    digits, found = text.replace("_", ""), list[float]()
    for read in (float, int, lambda each: int(each, 0), lambda each: int(each, 8)):
        try:
            found.append(read(digits))
        except (ValueError, OverflowError):
            continue
    return found


GET: Final = "skills/get"
READ_DIRECTORY: Final = "resources/directory/read"
OF_SKILLS: Final = frozenset({GET, READ_DIRECTORY})
"""Official SDKs want both to say for how long they hold."""
_HASHED: Final = 16
"""So many bytes cost as much as one that a model wrote."""
_MAX_URI_SHOWN: Final = 200


class Ask(Protocol):
    """Asks a server; see `Forwarder.ask`."""

    def __call__(
        self, exchange: Exchange, method: str, server: str, members: dict[str, msgspec.Raw], since: float, **more: Any
    ) -> Awaitable[bytes]: ...


class Content(msgspec.Struct, frozen=True):
    """What was read of a file: its length in bytes, its digest as an entry of a skill has it, and its beginning."""

    size: int
    digest: str
    head: bytes


class Skills:
    """Answers the methods of the extension that name something; `ask` sends them to its server."""

    def __init__(self, visible: Visible, bench: Workbench, naming: Naming, ask: Ask) -> None:
        self._visible = visible
        self._bench = bench
        self._naming = naming
        self._ask = ask
        self.methods: dict[str, Callable[[Exchange], Awaitable[bytes]]] = {
            GET: self._get,
            READ_DIRECTORY: self._read_directory,
        }

    async def _get(self, exchange: Exchange) -> bytes:
        server, own, body = await self._answer(exchange)
        return await self._bench.run(len(body) // PARAMS_COST, _as_got, server, own, body, exchange.client.era)

    async def _read_directory(self, exchange: Exchange) -> bytes:
        server, _, body = await self._answer(exchange)
        return await self._bench.run(len(body) // PARAMS_COST, _as_listed, server, body, exchange.client)

    async def _answer(self, exchange: Exchange) -> tuple[str, str, bytes]:
        since = trio.current_time()
        members, uri = await named_params(self._bench, exchange, "uri")
        server, own = await self._naming.resource(exchange.client, uri, since)
        members["uri"] = msgspec.Raw(encode(own))
        return server, own, await self._ask(exchange, exchange.method, server, members, since, name=own)

    async def check(self, exchange: Exchange, server: str, uri: str, body: bytes, since: float) -> bool:
        """Hold contents against each skill that has the file; return whether one has. Raises `SkillMismatch`.

        A skill may have changed since it was listed, so its server is asked once more before anything is refused.
        """
        entry = self._visible.catalogue.entries.get(server)
        holding = entry.skills_with(uri) if entry is not None else []
        if not holding:
            return False
        read = await self._bench.run(len(body) // _HASHED, content_of, body)
        for held in holding:
            if not await self._bench.run(len(held.definition), _fits, held, uri, read):
                now = await self._newest(exchange, server, held.uri, since)
                if now is None or not await self._bench.run(len(now.definition), _fits, now, uri, read):
                    raise _mismatch(server, held.uri, uri)
        return True

    async def _newest(self, exchange: Exchange, server: str, uri: str, since: float) -> Skill | None:
        with suppress(SupervisorError, RemoteError):
            named = {"uri": msgspec.Raw(encode(uri))}
            body = await self._ask(exchange, GET, server, named, since, name=uri, era="legacy")
            return await self._bench.run(len(body), _skill_in, server, uri, body)
        return None


def content_of(body: bytes) -> Content | None:
    """Return what the result of `resources/read` has of one file; None if it is not one, or cannot be read."""
    contents = json.read_or(json.ELEMENTS, json.at(body, "contents"), [])
    if len(contents) != 1:
        return None
    item = json.members(contents[0])
    text, blob = (json.read_or(json.STRING, item.get(name, msgspec.Raw(b"")), None) for name in ("text", "blob"))
    if (text is None) is (blob is None):
        return None
    try:
        data = text.encode() if text is not None else base64.b64decode(blob or "", validate=True)
    except ValueError:
        return None
    head = data[: MAX_BYTES + FENCES]
    return Content(len(data), f"sha256:{hashlib.sha256(data).hexdigest()}", head)


def _fits(held: Skill, uri: str, read: Content | None) -> bool:
    files = files_of(held)
    if files is not None:  # else it is made anew each time: there is nothing to hold a file against
        file = files.get(unquote(uri))
        if file is None or read is None or (file.size, file.digest) != (read.size, read.digest):
            return False
    if unquote(uri) != unquote(held.uri):
        return True
    said = json.read_or(json.VALUE, json.at(held.definition, "frontmatter"), None)
    return read is not None and is_that(read.head, said)


def _mismatch(server: str, held: str, uri: str) -> SkillMismatch:
    file, whose = clean(uri[:_MAX_URI_SHOWN]), clean(held[:_MAX_URI_SHOWN])
    text = f"server {server!r} gave something for {file!r} that is not what it lists for the skill {whose!r}"
    return SkillMismatch(
        f"{text}: do not use the skill; tell the user",
        server=server,
        outcome="completed",
        details={"skill": held[:8192]},
    )


def _skill_in(server: str, uri: str, body: bytes) -> Skill:
    """Return the skill of a result of `skills/get`. Raises `ProtocolViolation`."""
    try:
        got = skill(json.at(body, "skill"))
    except Unusable as reason:
        text = f"server {server!r} answered {GET} with something that is no skill: {reason}"
        raise ProtocolViolation(text, server=server, outcome="completed") from None
    if got.uri != uri:
        text = f"server {server!r} answered {GET} with another skill than was asked for"
        raise ProtocolViolation(text, server=server, outcome="completed")
    return got


def _as_got(server: str, uri: str, body: bytes, era: Era) -> bytes:
    """Return the result of `skills/get` with the URIs of this door."""
    entry = json.members(_skill_in(server, uri, body).definition)
    renamed = {**entry, **rename_skill(entry, partial(resource_uri, server))}
    return encode(_kept({**json.members(body), "skill": renamed}, era))


def _kept(members: dict[str, Any], era: Era) -> dict[str, Any]:
    """Return a result with how long it holds, in the era that has it; who else may see it, nothing is known of."""
    return {"ttlMs": 0, **members, "cacheScope": "private"} if era == "modern" else members


def _as_listed(server: str, body: bytes, client: Client) -> bytes:
    """Return the result of `resources/directory/read` with the URIs of this door."""
    fitted = fit_page(body, "resources", client.version)
    members: dict[str, Any] = dict(json.members(fitted))
    children = json.read_or(json.ELEMENTS, json.at(fitted, "resources"), [])
    listed = [json.members(child) for child in children]
    members["resources"] = [{**child, "uri": resource_uri(server, json.text_at(child["uri"]))} for child in listed]
    return encode(_kept(members, client.era))
