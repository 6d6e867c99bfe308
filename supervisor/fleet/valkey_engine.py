"""An engine that is a Valkey or Redis server, by coredis. What has to be atomic is a script in `scripts/`.

All keys have one tag, so in a cluster they are in one slot: `PREFIX{fleet}:owners` and so on. The user of an ACL needs
`~PREFIX*` and `+@hash +@sortedset +@stream +@scripting +@connection +info +time`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from typing import Any, Final, TypeVar, cast

import coredis
import msgspec
import trio
from coredis.exceptions import ConnectionError, RedisError  # noqa: A004 - it is coredis' own
from coredis.response.types import StreamEntry
from coredis.retry import NoRetryPolicy

from actors.kit.fairness.share import LinePace
from supervisor.fleet.engine import (
    KEPT_S,
    EngineAway,
    EngineSettling,
    Entry,
    FeedLost,
    FeedPage,
    Joined,
    LaunchGrant,
    LeaseEnded,
    NameTaken,
    Node,
    OfferPublished,
    Offers,
    Place,
    RecordPut,
    refused,
)

T = TypeVar("T")

ANSWER_S: Final = 5.0
"""How long the engine has for an answer, beside what it was asked to wait; with what is waited for a turn to ask."""
_COMMANDS_PER_S: Final = 1000.0
_URGENT: Final = ("join", "renew", "leave", "release")
"""What a lease lives by: it counts, and waits for nothing."""
_PAGE: Final = 1000
_KEYS: Final = (
    *("nodes", "leases", "names", "owners", "offers", "texts", "uses", "feed", "state", "over", "records", "claims"),
)
_MARK: Final = b""
"""What is in a key beside what is kept there; see `scripts/common.lua`."""
_SCRIPTS: Final = ("join", "renew", "leave", "claim", "find", "release", "publish", "end", "put", "settle")
_ENTRY: Final[msgspec.json.Decoder[Entry]] = msgspec.json.Decoder(Entry)
_NODE: Final = msgspec.json.Decoder(Node)


class ValkeyEngine:
    """Implements `Engine`; see `open_valkey`. `prefix` begins the names of all keys, `pace` says how often it asks."""

    def __init__(self, client: coredis.Redis[bytes], prefix: str, lease_s: float, pace: LinePace) -> None:
        self._client = client
        self._pace = pace
        self._turn = trio.Lock()
        self._keys = [f"{prefix}{{fleet}}:{name}" for name in _KEYS]
        self._lease_ms = round(lease_s * 1000)
        common = f"local keep_ms = {round(KEPT_S * 1000)}\n" + _read("common")
        self._scripts = {name: client.register_script(common + _read(name)) for name in _SCRIPTS}

    async def settle(self) -> None:
        """Have a server that has just begun grant at once: for who knows that nobody holds a lease of before."""
        await self._run("settle")

    async def join(self, node: Node, held: Mapping[str, int] | None) -> Joined:
        given = [part for launch, fence in (held or {}).items() for part in (launch, str(fence))]
        about = (node.incarnation, node.name, node.place, msgspec.json.encode(node))
        answer = await self._run("join", *about, *given)
        if answer[0] == b"taken":
            raise NameTaken(f"another daemon is the node {node.name!r}; give this one another name")
        nodes = tuple(map(_node_of, answer[2]))
        return Joined(answer[1], nodes, frozenset(map(_text_of, answer[3])))

    async def renew(self, incarnation: str, node: Node | None = None) -> int:
        answer = await self._run("renew", incarnation, b"" if node is None else msgspec.json.encode(node))
        if answer[0] == b"ended":
            raise LeaseEnded("this node is no member of the fleet")
        return int(answer[1])

    async def leave(self, incarnation: str) -> None:
        await self._run("leave", incarnation)

    async def claim(self, launch: str, incarnation: str) -> Place:
        answer = await self._run("claim", launch, incarnation)
        if answer[0] == b"ended":
            raise LeaseEnded("this node is no member of the fleet")
        if answer[0] == b"settling":
            raise EngineSettling(retry_after_s=answer[1] / 1000)
        return Place(launch, _node_of(answer[1]), int(answer[2]))

    async def find(self, launch: str) -> Place | None:
        answer = await self._run("find", launch)
        return None if answer is None else Place(launch, _node_of(answer[0]), int(answer[1]))

    async def release(self, grants: Sequence[LaunchGrant]) -> None:
        await self._run(
            "release", *(part for each in grants for part in (each.launch, f"{each.fence} {each.incarnation}"))
        )

    async def publish(self, grant: LaunchGrant, digest: str, offer: bytes) -> bool:
        entry = msgspec.json.encode(OfferPublished(grant.launch, digest, grant.fence))
        return bool(await self._run("publish", grant.launch, str(grant.fence), digest, offer, entry))

    async def offers(self) -> Offers:
        position = await self._ask(lambda: self._client.hget(self._key("state"), "position"))
        offers = await self._scan("offers")
        digests = {_text_of(launch): _text_of(text).partition(" ")[2] for launch, text in offers.items()}
        return Offers(int(position or 0), digests)

    async def _scan(self, name: str) -> dict[bytes, bytes]:
        """Return a whole hash; what changes meanwhile is in the feed after the position of before."""
        whole: dict[bytes, bytes] = {}
        cursor: int | None = None
        while cursor != 0:
            cursor, page = await self._ask(partial(self._page_of, name, cursor))
            whole |= page
        whole.pop(_MARK, None)
        return whole

    async def _page_of(self, name: str, cursor: int | None) -> tuple[int, Mapping[bytes, bytes]]:
        return await self._client.hscan(self._key(name), cursor=cursor, count=_PAGE)

    async def read_offers(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        if not digests:
            return {}
        texts = await self._ask(lambda: self._client.hmget(self._key("texts"), [*digests]))
        return {digest: text for digest, text in zip(digests, texts, strict=True) if text is not None}

    async def end_sessions(self, left: Mapping[str, float]) -> None:
        given = [part for session, left_s in left.items() for part in (session, str(round(left_s * 1000)))]
        await self._run("end", *given)

    async def has_ended(self, session: str) -> bool:
        # One whose time is over is found until another one ends: then its id is not good any more.
        return await self._ask(lambda: self._client.zscore(self._key("over"), session)) is not None

    async def put(self, key: str, value: bytes) -> None:
        await self._run("put", key, value, msgspec.json.encode(RecordPut(key, value)))

    async def records(self) -> Mapping[str, bytes]:
        return {_text_of(key): value for key, value in (await self._scan("records")).items()}

    async def read(self, position: int, wait_s: float) -> FeedPage:
        after, wait_ms = {self._key("feed"): f"{position}-0"}, round(wait_s * 1000)
        # Not one of those that wait: all members together read no more than `READS_PER_S`.
        answer = await self._ask(
            lambda: self._client.xread(after, count=_PAGE, block=wait_ms), wait_s + ANSWER_S, urgent=True
        )
        entries = [] if not answer else [each for page in answer.values() for each in page]
        if not entries:
            return FeedPage(position)
        if _position(entries[0]) != position + 1:
            raise FeedLost(f"the feed does not go back to {position}")
        read = [(_position(entry), _entry_of(entry)) for entry in entries]
        return FeedPage(read[-1][0], tuple((at, entry) for at, entry in read if entry is not None))

    def _key(self, name: str) -> str:
        return self._keys[_KEYS.index(name)]

    async def _run(self, script: str, *arguments: str | bytes) -> Any:
        """Run a script: twice if the connection broke, as that may have been so for long, and twice does no harm."""
        given, urgent = [self._lease_ms, *arguments], script in _URGENT

        def ask() -> Awaitable[Any]:
            return self._scripts[script](self._keys, given)

        try:
            return await self._ask(ask, urgent=urgent)
        except EngineAway as error:
            if not isinstance(error.__cause__, ConnectionError):
                raise
            return await self._ask(ask, urgent=urgent)

    async def _ask(self, ask: Callable[[], Awaitable[T]], answer_s: float = ANSWER_S, *, urgent: bool = False) -> T:
        try:
            with trio.fail_after(answer_s):
                if not urgent:
                    async with self._turn:
                        await trio.sleep(self._pace.rest_s(trio.current_time()))
                self._pace.take(1, trio.current_time())
                return await ask()
        except (ConnectionError, OSError, trio.TooSlowError) as error:
            raise EngineAway from error
        except RedisError as error:  # it does answer, and says why not
            raise refused(str(error)) from error


@asynccontextmanager
async def open_valkey(
    url: str, prefix: str, lease_s: float, commands_per_s: float = _COMMANDS_PER_S
) -> AsyncIterator[ValkeyEngine]:
    """Open connections to a server, as they are needed: `redis://`, `rediss://` or `unix://`.

    What is asked more often than `commands_per_s` waits, but for a second's worth after a time of less.
    """
    logging.getLogger("coredis").setLevel(logging.CRITICAL)  # else each connection that fails is told with its stack
    async with coredis.Redis.from_url(url, retry_policy=NoRetryPolicy()) as client:
        yield ValkeyEngine(client, prefix, lease_s, LinePace(commands_per_s, burst=commands_per_s))


def _text_of(data: bytes) -> str:
    return data.decode(errors="replace")  # none of ours has written what is no text


def _node_of(text: bytes) -> Node:
    """Return a node as the engine has it. Raises `EngineAway` for what none of ours has written."""
    try:
        return _NODE.decode(text)
    except msgspec.MsgspecError as error:
        raise EngineAway("the engine of the fleet has what this version does not understand") from error


def _entry_of(entry: StreamEntry) -> Entry | None:
    """Return an entry of the feed; None for one that only another version understands."""
    text = cast("bytes", entry.field_values.get(b"entry", b""))
    try:
        return _ENTRY.decode(text)
    except msgspec.MsgspecError:
        return None


def _position(entry: StreamEntry) -> int:
    identifier = cast("bytes", entry.identifier)  # it is text only for a client that decodes everything
    return int(identifier.partition(b"-")[0])


def _read(script: str) -> str:
    return (files("supervisor.fleet") / "scripts" / f"{script}.lua").read_text()
