"""Several calls of one request, made side by side, each as if it were alone.

- Each has an exchange of its own: what it is asked, its trace, its record, and whether it failed are its own. The voice
  to the client, and its session, are those of the request.
- One that fails ends none of the others; what becomes of it is its result. Cancelling the request cancels all. Where
  the daemon ends, those that have not ended do, and the result tells of each what is known.
- One that asks its client something by what it is answered is parked, and the others go on. A model goes on with it in
  a request of its own; a modern client is asked itself then.
- Their results share a budget of tokens, and their progress one token.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

import msgspec
import trio

from actors.codes import INTERNAL_ERROR
from actors.errors import InvalidArguments, MalformedRequest, ShuttingDown, Starved, SupervisorError
from actors.errors import Outcome as ErrorOutcome
from actors.kit import is_want
from actors.messages import Note
from actors.protocol.asking.input_required import STATE
from actors.protocol.exchanges import PROGRESS
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError, encode
from supervisor.fleet.peers import HeldElsewhere
from supervisor.host.workbench import Workbench
from supervisor.metatools.execution import Asked, Execute
from supervisor.metatools.lenient_json import number, plain
from supervisor.metatools.questions import later_result
from supervisor.metatools.texts import clean
from supervisor.service.asking.exchange import Exchange
from supervisor.service.asking.rounds import AskedByResult, InputNeeded
from supervisor.service.results.cutting import LINE, STRUCTURED, text_of
from supervisor.service.results.keeper import BudgetShare, SharedBudget

# The progress of several calls of one request, told with its one token as that of all of them.
#
# Progress must grow with each notification (MCP 2025-11-25 and 2026-07-28, basic/utilities/progress). So what is told
# is how many calls are done, of how many, with the part that each of the others says it has done. One that does not say
# of how much gets nearer to done with each step, and is never there.

_DIGITS = 4


class JointProgress:
    """That of some calls, by their places; `numbers` are what their client knows them by."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers
        self._done = [0.0] * len(numbers)
        self._told = 0.0

    def merge(self, place: int, note: Note) -> Note | None:
        """Return what one call tells as progress of all; None for what does not grow."""
        told = json.members(note.params)
        done, total = number(plain(told.get("progress"))), number(plain(told.get("total")))
        part = done / total if total > 0 else 1 - 1 / (1 + done) if done > 0 else 0.0
        said = json.text_at(told.get("message"))
        return self._tell(place, min(part, 1.0) if part > 0 else 0.0, told.get("progressToken"), said)

    def end(self, place: int, token: bytes) -> Note | None:
        """Return that a call is done, with the token of the client, JSON text."""
        return self._tell(place, 1.0, token, "")

    def _tell(self, place: int, part: float, token: bytes | None, said: str) -> Note | None:
        self._done[place] = max(self._done[place], part)
        whole = round(sum(self._done), _DIGITS)
        if whole <= self._told or token is None:
            return None
        self._told = whole
        message = encode(f"[{self._numbers[place]}] {said}") if said else b""
        params = b'{"progressToken":%b,"progress":%b,"total":%d' % (token, encode(whole), len(self._done))
        return Note(PROGRESS, params + (b',"message":%b}' % message if message else b"}"))


# The results of several calls as one result, in their order.
#
# Before the blocks of each call stands a text with its number, its tool, and a mark that is made for the request: a
# server that writes such a text into its own result, to speak for another one, does not know the mark. The blocks
# themselves stay as they are.
# `structuredContent` has the same once more for programs, and for clients that show a model nothing else: of each
# result its own structured content, or its text. What is no text, or a text that fits no model, is in `content` alone.
#
# Results may be large, and there are several: they are joined as bytes, which gives up the lock, and never encoded
# anew.
#
# The whole has failed only if each of the calls has: models of the APIs with parallel calls get a result of each call
# with a word of its own about failure, and what a client does with one that failed must not be done to those that did
# not.

META_KEY: Final = "mcpvisor/results"
"""In `_meta`: that of each of the results, null where it has none."""
MAX_TEXT_BYTES: Final = 256 * 1024
"""A longer text is not there twice."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a call: its result, as a call by itself would have it. `waits`: it has asked something first."""

    path: str
    body: bytes
    waits: bool = False


class Part(msgspec.Struct, frozen=True):
    """What a result is in the whole, as JSON: its blocks after a label, and the members of its entry after the path."""

    label: str
    blocks: list[msgspec.Raw]
    entry: dict[str, Any]
    large: tuple[bytes, msgspec.Raw | bytes] | None
    meta: msgspec.Raw | None = None
    failed: bool = False


def part_of(outcome: Outcome) -> Part:
    """Return what a result is in the whole."""
    path, members = outcome.path, json.read_or(json.MEMBERS, outcome.body, None)
    content = members.get("content", b"[]") if members is not None else b"{}"
    blocks, opened = json.read_or(json.ELEMENTS, content, None), json.read_or(json.OBJECTS, content, None)
    if members is None or blocks is None or opened is None:  # no result of a tool, but what a server gave for one
        return Part(path, [], {"tool_path": path}, (b"result", outcome.body))
    failed = bytes(members.get("isError", b"")) == b"true"
    entry: dict[str, Any] = {"tool_path": path, **({"isError": True} if failed else {})}
    said = [text_of(block) for block in opened]
    texts = [text for text in said if text is not None]
    beside = [json.text_at(block.get("type")) for block, text in zip(opened, said, strict=True) if text is None]
    large: tuple[bytes, msgspec.Raw | bytes] | None = None
    if STRUCTURED in members:
        large = STRUCTURED.encode(), members[STRUCTURED]
    elif sum(map(len, texts)) <= MAX_TEXT_BYTES:
        large = b"text", b'"%b"' % LINE.join(texts)
    else:
        beside.insert(0, "text")
    if beside:
        entry["in_content"] = beside
    word = " failed" if failed else " waits for an answer" if outcome.waits else ""
    return Part(f"{path}{word}", blocks, entry, large, members.get("_meta"), failed)


def together(parts: Sequence[Part], order: Sequence[int], head: bytes, mark: str) -> bytes:
    """Return one result; `order`: of each call asked for, the place of its part. `head`: what it has beside these.

    `mark` is in each label, and nowhere else.
    """
    content: list[bytes] = []
    entries: list[bytes] = []
    for turn, place in enumerate(order, 1):
        part, first = parts[place], order.index(place) + 1
        entries.append(b",")
        if first < turn:
            path = part.entry["tool_path"]
            content += [b",", _label(f"[{turn} {mark}] {path}: the same as [{first}], made once")]
            entries.append(encode({"tool_path": path, "same_as": first}))
            continue
        content += [b",", _label(f"[{turn} {mark}] {part.label}")]
        for block in part.blocks:
            content += [b",", bytes(block)]
        entry = encode(part.entry)
        if part.large is not None:
            name, value = part.large
            entries += [entry[:-1], b',"%b":' % name, bytes(value), b"}"]
        else:
            entries.append(entry)
    beside: dict[str, Any] = {**json.members(head)}
    if any(part.meta is not None for part in parts):
        metas = [parts[place].meta if order.index(place) == at else None for at, place in enumerate(order)]
        beside["_meta"] = {**json.members(beside.get("_meta")), META_KEY: metas}
    if has_failed(parts):
        beside["isError"] = True
    begin = encode(beside)[:-1] + (b"," if beside else b"")
    return b"".join([begin, b'"content":[', *content[1:], b'],"structuredContent":{"results":[', *entries[1:], b"]}}"])


def has_failed(parts: Sequence[Part]) -> bool:
    """Say whether the whole has failed: if each of the calls has."""
    return all(part.failed for part in parts)


def _label(text: str) -> bytes:
    return encode({"type": "text", "text": text})


log = logging.getLogger(__name__)

JOINED_COST: Final = 8
"""So many bytes of results cost as much, to be put together, as one that a model wrote."""
MAX_PATH_CHARS: Final = 200
MARK_BYTES: Final = 2
"""Of the mark in the labels of one result: nobody can try twice."""
_INTERNAL: Final = "internal error; the daemon's log says more"


Told = Callable[[Exchange, AskedByResult], Awaitable[bytes]]
Failed = Callable[[SupervisorError | RemoteError], bytes]


class Make(Protocol):
    """Makes one call and returns its result. Raises as a call may."""

    async def __call__(self, exchange: Exchange, wanted: Execute, share: BudgetShare, /) -> bytes: ...


class CallExchange(Exchange, kw_only=True):
    """One of several calls of a request, by its place; `progress` is that of all of them."""

    place: int
    progress: JointProgress

    def note(self, note: Note) -> bool:
        if note.method != PROGRESS:
            return Exchange.note(self, note)
        merged = self.progress.merge(self.place, note)
        return merged is None or Exchange.note(self, merged)

    def end(self) -> None:
        """The call is over: its client is told so, if it wants progress, and is asked nothing more."""
        merged = self.progress.end(self.place, self.wish.progress) if self.wish.progress else None
        if merged is not None:
            Exchange.note(self, merged)
        if self.asking:
            self.close()


async def side_by_side(
    exchange: Exchange,
    asked: Asked,
    make: Make,
    told: Told,
    failed: Failed,
    bench: Workbench,
    head: bytes,
) -> bytes:
    """Make all calls and return their results as one.

    `told` gives the result that tells a model what was asked, `failed` that of a call that failed; `head` is a JSON
    object with what each of our results to this client has.

    Raises `MalformedRequest` for a request that is made again: none of this kind is. A checkpoint.
    """
    if exchange.retry is not None:
        raise MalformedRequest("requestState: a request for several calls asks nothing; go on with one of them alone")
    numbers = [asked.order.index(place) + 1 for place in range(len(asked.calls))]
    progress, budget = JointProgress(numbers), SharedBudget(len(asked.calls))
    outcomes: dict[int, Outcome] = {}

    async def perform(place: int, wanted: Execute) -> None:
        part, share = _part(exchange, place, progress), BudgetShare(budget, place)
        try:
            outcomes[place] = await _outcome(part, wanted, lambda: make(part, wanted, share), told, failed)
        except trio.Cancelled:
            outcomes[place] = Outcome(
                path=_path(wanted), body=failed(_cut_off(forwarded=part.forwarded, idempotent=part.idempotent))
            )
            raise
        finally:
            share.leave()
            exchange.forwarded |= part.forwarded
            part.end()

    async with trio.open_nursery() as nursery:
        exchange.calls = nursery.cancel_scope
        for place, wanted in enumerate(asked.calls):
            nursery.start_soon(perform, place, wanted)
            await trio.lowlevel.checkpoint()  # so each has begun before the next: one server gets them in their order
    never = failed(_cut_off(forwarded=False)) if len(outcomes) < len(asked.calls) else b""
    made = [outcomes.get(place, Outcome(path=_path(wanted), body=never)) for place, wanted in enumerate(asked.calls)]
    parts = [await bench.finish(len(each.body) // JOINED_COST, part_of, each) for each in made]
    exchange.failed = has_failed(parts)
    size = sum(len(each.body) for each in made)
    return await bench.finish(size // JOINED_COST, together, parts, asked.order, head, secrets.token_hex(MARK_BYTES))


def _part(exchange: Exchange, place: int, progress: JointProgress) -> CallExchange:
    return CallExchange(
        client=exchange.client,
        id=exchange.id,
        method=exchange.method,
        params=exchange.params,
        voice=exchange.voice,
        session=exchange.session,
        called=exchange.called,
        only_reads=exchange.only_reads,
        asks_later=True,
        trace=exchange.trace.branch() if exchange.trace is not None else None,
        protocol=exchange.protocol,
        lines=exchange.lines,
        place=place,
        progress=progress,
    )


def _path(wanted: Execute) -> str:
    return clean(f"{wanted.server}:{wanted.tool_path}" if wanted.server else wanted.tool_path)[:MAX_PATH_CHARS]


def _cut_off(*, forwarded: bool, idempotent: bool = False) -> ShuttingDown:
    """Return the error of a call that the end of the daemon has cut off."""
    if not forwarded:
        return ShuttingDown("the daemon ended before this was sent to a server")
    return ShuttingDown("the daemon ended before this call did", outcome="unknown", idempotent=idempotent)


async def _outcome(
    part: CallExchange,
    wanted: Execute,
    make: Callable[[], Awaitable[bytes]],
    told: Told,
    failed: Failed,
) -> Outcome:
    """Return what becomes of one call."""
    path = _path(wanted)
    try:
        return Outcome(path=path, body=await make())
    except AskedByResult as asked:
        return Outcome(path=path, body=await told(part, asked), waits=True)
    except InputNeeded as needed:
        state = json.text_at(msgspec.Raw(needed.result), STATE)
        return Outcome(path=path, body=later_result(state, part.called), waits=True)
    except HeldElsewhere as held:  # a request for this call alone would be performed there
        text = "continuation: this call waits at another node of the fleet; go on with it alone, without calls"
        error: SupervisorError | RemoteError = InvalidArguments(text, outcome=held.error.outcome)
    except (SupervisorError, RemoteError) as refused:
        error = refused
    except Exception as bug:  # the border between calls: a bug in one must not cost the others their results
        outcome: ErrorOutcome = "unknown" if part.forwarded else "not_sent"
        if is_want(bug):
            error = Starved("", outcome=outcome, idempotent=part.idempotent)
        else:
            log.exception("a bug while performing one of several calls")
            data = msgspec.Raw(encode({"type": "internal", "outcome": outcome, "retryable": False}))
            error = RemoteError(ErrorObject(INTERNAL_ERROR, _INTERNAL, data))
    return Outcome(path=path, body=failed(error))
