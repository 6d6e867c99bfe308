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
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

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
from supervisor.fleet.lives import HeldElsewhere
from supervisor.host.loop.workbench import Workbench
from supervisor.metatools.answers.questions import later_result
from supervisor.metatools.arguments.execution import Asked, Execute
from supervisor.metatools.texts import clean
from supervisor.service.asking.exchange import Exchange
from supervisor.service.asking.rounds import AskedByResult, InputNeeded
from supervisor.service.calls.joint_progress import JointProgress
from supervisor.service.results.sharing import BudgetShare, SharedBudget
from supervisor.service.results.together import Outcome, has_failed, part_of, together

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
