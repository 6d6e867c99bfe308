"""The questions of an incomplete result, asked of a legacy client by requests."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import msgspec
import trio

from actors.errors import CannotAsk, ProtocolViolation
from actors.kit import Latest, Reply
from actors.messages import Question
from actors.protocol.agreement.capabilities import ELICIT, mode_of
from actors.protocol.asking.input_required import InputRequest
from actors.protocol.asking.questions import CANCELLED, Fallback, refusal, timeout_answer
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import RemoteError, encode
from supervisor.servers.deployment import Deployment
from supervisor.service.asking.exchange import Exchange


async def ask_all(
    exchange: Exchange, server: str, requests: Mapping[str, InputRequest], deployment: Latest[Deployment]
) -> dict[str, msgspec.Raw]:
    """Return what the client answers to the questions of a modern server, which are asked at the same time.

    Nobody who does not answer has said yes. Raises `CannotAsk` where the server could not do with that.
    """
    replies: dict[str, Reply[msgspec.Raw]] = {}
    answers: dict[str, msgspec.Raw] = {}
    try:
        for key, request in requests.items():
            if (wrong := refusal(request.method, request.params)) is not None:
                raise ProtocolViolation(f"server {server!r} asked {wrong}", server=server, outcome="unknown")
            replies[key] = exchange.ask(Question(request.method, _for_legacy(request)))
        with trio.move_on_after(deployment.value.rules_of(server).question_timeout_s):
            for key, reply in replies.items():
                answers[key] = await _answer(requests[key].method, reply, server)
    finally:
        for reply in replies.values():
            reply.abandon()
    fallback = deployment.value.rules_of(server).question_fallback
    for key, request in requests.items():
        if key not in answers:
            given = replies[key].value
            answers[key] = _timeout_answer(request, fallback, server) if given is None else given
    return answers


async def _answer(method: str, reply: Reply[msgspec.Raw], server: str) -> msgspec.Raw:
    try:
        return await reply.wait()
    except CannotAsk as error:
        raise CannotAsk(f"server {server!r} asked for input: {error.message}", server=server) from None
    except RemoteError as error:
        if method == ELICIT:
            return msgspec.Raw(CANCELLED)
        text = f"server {server!r} asked for input ({method}), and the client refused: {error.error.message[:200]}"
        raise CannotAsk(text, server=server) from None


def _timeout_answer(request: InputRequest, fallback: Fallback, server: str) -> msgspec.Raw:
    answer = timeout_answer(request.method, request.params, fallback)
    if isinstance(answer, bytes):
        return msgspec.Raw(answer)
    raise CannotAsk(f"server {server!r} asked for input ({request.method}), and {answer.message}", server=server)


def _for_legacy(request: InputRequest) -> msgspec.Raw:
    """Return the params of a question for a client of 2025-11-25, where whoever asks for a visit gives it an id."""
    if request.method != ELICIT or mode_of(request.params) != "url":
        return request.params
    members = json.MEMBERS.decode(request.params)
    if "elicitationId" in members:
        return request.params
    return msgspec.Raw(encode({**members, "elicitationId": secrets.token_urlsafe(16)}))
