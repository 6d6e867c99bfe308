"""Failures on their way between nodes: what one raises there is raised here. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from actors.errors import SupervisorError
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from supervisor.fleet.errors import NodeAway
from supervisor.fleet.links.encoding import BadFrame
from supervisor.fleet.links.frames import SentError

REMOTE: Final = RemoteError.__name__
MAX_DATA_BYTES: Final = 1_048_576
_INTERNAL: Final = "internal error at another node; its log says more"


def send(error: Exception) -> SentError:
    """Return a failure as it travels. Of a bug nothing does but that it was one."""
    if isinstance(error, RemoteError):
        fields = {"server": error.server, "waited_s": error.waited_s}
        sent, data = error.error, bytes(error.error.data)
        data = data if len(data) <= MAX_DATA_BYTES else b""  # as clients get it
        return SentError(REMOTE, sent.code, sent.message, msgspec.msgpack.encode(fields), data)
    if not isinstance(error, SupervisorError):
        error = NodeAway(_INTERNAL, outcome="unknown")
    return SentError(
        name=type(error).__name__,
        code=error.code,
        message=error.message,
        fields=msgspec.msgpack.encode(_plain(vars(error))),
        kind=error.kind,
        http_status=error.http_status,
        retryable=error.retryable,
    )


def receive(sent: SentError) -> Exception:
    """Return the failure that was sent: of its own class if there is one here, else with the same row.

    Raises `BadFrame`.
    """
    try:
        fields = msgspec.msgpack.decode(sent.fields, type=dict[str, Any])
    except msgspec.MsgspecError as bad:
        raise BadFrame(str(bad)) from None
    if sent.name == REMOTE:
        error = ErrorObject(sent.code, sent.message, msgspec.Raw(sent.data))
        return RemoteError(error, str(fields.get("server", "")), float(fields.get("waited_s", 0.0)))
    known = _classes().get(sent.name)
    failure = _failure(known or NodeAway, sent.message)
    vars(failure).update(fields)
    if known is None:
        vars(failure).update(code=sent.code, kind=sent.kind, http_status=sent.http_status, retryable=sent.retryable)
    return failure


def _failure(kind: type[SupervisorError], message: str) -> SupervisorError:
    """Return one without its constructor: what that would set comes with the fields."""
    failure = kind.__new__(kind, message)
    vars(failure).update(message=message, server=None, outcome="unknown", retry_after_s=None)
    vars(failure).update(details=None, idempotent=False)
    return failure


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Return what of the fields of a failure can be sent: all but what only means something here."""
    plain = {}
    for name, value in fields.items():
        try:
            msgspec.msgpack.encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError):
            continue
        plain[name] = value
    return plain


def _classes() -> dict[str, type[SupervisorError]]:
    """Return every kind of failure there is by now, by name."""
    kinds: dict[str, type[SupervisorError]] = {}
    todo: list[type[SupervisorError]] = [SupervisorError]
    while todo:
        kind = todo.pop()
        kinds[kind.__name__] = kind
        todo += kind.__subclasses__()
    return kinds
