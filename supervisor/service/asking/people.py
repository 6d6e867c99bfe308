"""How a question of the daemon reaches the user of a client, and how the answer comes back, whatever the client can do.

It goes the way of a question of a server: by a request, by an incomplete result, or in a result of a meta-tool. Nothing
is sent to a server meanwhile. Where the answer comes with a second request, the call is parked.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import trio

from actors.errors import CannotAsk
from actors.messages import Question
from actors.protocol.asking.input_required import InputRequest
from actors.protocol.wire.jsonrpc import RemoteError
from supervisor.service.asking.exchange import Exchange
from supervisor.service.asking.parking import GRACE_S, Parked, Parking
from supervisor.service.asking.rounds import Rounds


class UserRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A question of ours about a call of a server, whose request has this `digest`.

    `key` is what it is called where it goes by a result. There it is good for a person on a page alone if it is to be
    answered `there_only`. `confirms`: it is whether a tool may run; `plugin` is who asks, if that is one.
    """

    question: Question
    key: str
    server: str
    digest: bytes
    within_s: float
    there_only: bool
    confirms: bool = False
    plugin: str = ""


async def ask_user(parking: Parking, exchange: Exchange, asked: UserRequest, *, by_result: bool) -> msgspec.Raw | None:
    """Return what the user of a client answers; None where nobody does in time, or the client refuses.

    Raises `CannotAsk` for a client that cannot be asked, and `InputNeeded` or `AskedByResult` for one that is to make
    its request again: `take_answer` has the answer then.
    """
    lacks = exchange.lacks(asked.question)
    if lacks and not by_result and not exchange.reaches_people(asked.question):
        raise CannotAsk(lacks, server=asked.server)
    if (usual := exchange.elicitations) is not None:
        exchange.elicitations = msgspec.structs.replace(usual, timeout_s=asked.within_s, confirms=asked.confirms)
    if not by_result if lacks else exchange.client.era == "legacy":
        answer = await _ask_client(exchange, asked.question, asked.within_s)
        exchange.elicitations = usual
        return answer
    rounds = Rounds(exchange, by_result=bool(lacks))
    request = InputRequest(asked.question.method, asked.question.params)
    rounds.require({asked.key: request}, there_only=asked.there_only)
    expires = trio.current_time() + asked.within_s + GRACE_S
    parked = Parked(
        exchange.client.principal,
        asked.digest,
        expires,
        None,
        rounds,
        unconfirmed=asked.confirms,
        plugin=asked.plugin,
    )
    raise parking.park_and_ask(parked, asked.server, by_result=rounds.by_result)


def take_answer(
    parking: Parking, exchange: Exchange, parked: Parked, answers: Mapping[str, msgspec.Raw], key: str, server: str
) -> msgspec.Raw | None:
    """Return what came for a parked question with the request that is made again; None for nothing.

    Raises `AskedByResult` where a person may still answer on the page, and `InputNeeded` where a model goes on with one
    of several calls: only now its client is asked.
    """
    rounds = parked.rounds
    rounds.go_on(exchange, answers)
    answer = rounds.answers.get(key)
    if answer is None and (rounds.by_result or (exchange.retry is not None and exchange.retry.ours)):
        raise parking.park_and_ask(parked, server, by_result=rounds.by_result)
    rounds.close()
    return answer


async def _ask_client(exchange: Exchange, question: Question, timeout_s: float) -> msgspec.Raw | None:
    reply = exchange.ask(question)
    with trio.move_on_after(timeout_s):
        try:
            return await reply.wait()
        except RemoteError:
            return msgspec.Raw(b"{}")
    return None
