"""The taxonomy of expected failures, named by whose fault they are.

Each class is one row of the border between the daemon and a client: `code` is the JSON-RPC error code, `kind` the word
an agent can act on, `http_status` what a modern HTTP client gets (a legacy one always gets 200: most lose the code).
Everything that is not a `SupervisorError` is a bug: it crashes its actor and never reaches a client as text.

Codes of our own lie outside -32768..-32000, as the specification asks of new application codes
(MCP 2026-07-28, basic/index, "Error Codes").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from actors.codes import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND

Outcome = Literal["not_sent", "unknown", "completed"]


class SupervisorError(Exception):
    """An expected failure. `message` may reach a client: no payload, no secret, no traceback in it."""

    code: ClassVar[int] = -31000
    http_status: ClassVar[int] = 200
    kind: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init_subclass__(
        cls,
        code: int | None = None,
        http_status: int | None = None,
        kind: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        """Take the row of a class; what it does not say is that of its base."""
        super().__init_subclass__()
        row = {"code": code, "http_status": http_status, "kind": kind, "retryable": retryable}
        for name, value in row.items():
            if value is not None:
                setattr(cls, name, value)

    def __init__(
        self,
        message: str,
        *,
        server: str | None = None,
        outcome: Outcome = "not_sent",
        retry_after_s: float | None = None,
        details: Mapping[str, Any] | None = None,
        idempotent: bool = False,  # what was asked for may be done twice
    ) -> None:
        super().__init__(message)
        self.message = message
        self.server = server
        self.outcome: Outcome = outcome
        self.retry_after_s = retry_after_s
        self.details = details
        self.idempotent = idempotent

    @property
    def repeatable(self) -> bool:
        """Whether the same request may be made again: it may work then, and nothing is done twice that must not be."""
        return self.retryable and (self.outcome == "not_sent" or (self.outcome == "unknown" and self.idempotent))

    def data(self) -> dict[str, Any]:
        members: dict[str, Any] = {"type": self.kind, "outcome": self.outcome, "retryable": self.repeatable}
        if self.server is not None:
            members["server"] = self.server
        if self.retry_after_s is not None:
            members["retry_after_ms"] = round(self.retry_after_s * 1000)
        return members | dict(self.details or {})


# The client's fault ---------------------------------------------------------------------------------------------------


class UnknownMethod(SupervisorError, code=METHOD_NOT_FOUND, http_status=404, kind="not_found"):
    """The method does not exist in the client's protocol revision."""


class UnknownTool(SupervisorError, code=INVALID_PARAMS, http_status=400, kind="not_found"):
    """No tool of that path is visible to this client."""


class UnknownServer(SupervisorError, code=INVALID_PARAMS, http_status=400, kind="not_found"):
    """No server of that name is configured."""


class UnknownDoor(SupervisorError, code=INVALID_REQUEST, http_status=404, kind="not_found"):
    """There is no endpoint of MCP at this address."""


class UnknownPrompt(SupervisorError, code=INVALID_PARAMS, http_status=400, kind="not_found"):
    """No prompt of that name is visible to this client."""


class InvalidArguments(SupervisorError, code=INVALID_PARAMS, http_status=400, kind="invalid"):
    """The arguments do not have the shape that was asked for."""


class MalformedRequest(InvalidArguments):
    """The params of the request itself do not have the shape that its method wants: nothing can be performed."""


class AmbiguousName(InvalidArguments, kind="ambiguous"):
    """A name can mean more than one thing. `data.readings` lists them, by names that mean one thing each."""


class CallTooLarge(SupervisorError, code=-31413, http_status=413, kind="too_large"):
    """A request or an answer is over a configured limit in bytes."""


class CannotAsk(SupervisorError, code=METHOD_NOT_FOUND, kind="not_supported"):
    """The client cannot be asked what a server wants to know: it did not declare it, or does not listen now."""


# Load -----------------------------------------------------------------------------------------------------------------


class MailboxFull(SupervisorError, code=-31429, kind="overloaded", retryable=True):
    """The actor's mailbox is full; the caller should shed load, not queue."""

    def __init__(self, message: str = "busy: too many requests are waiting; retry shortly", **more: Any) -> None:
        super().__init__(message, **{"retry_after_s": 1.0, **more})


class TooManyCalls(MailboxFull):
    """A limit on calls in flight is reached."""


class Starved(SupervisorError, code=-31429, kind="overloaded", retryable=True):
    """The daemon lacks descriptors, threads, memory or disk for this request; what has run meanwhile is not known."""

    def __init__(self, message: str, **more: Any) -> None:
        super().__init__(message, **{"retry_after_s": 1.0, "outcome": "unknown", **more})


class CallTimedOut(SupervisorError, code=-31408, kind="timeout"):
    """The deadline of a call passed. Whether the tool ran is not known once it was sent."""


# The server's fault ---------------------------------------------------------------------------------------------------


class ServerError(SupervisorError, code=-31502, kind="unavailable"):
    """A server, not the client and not this daemon, is the cause."""


class SpawnFailed(ServerError):
    """The process could not be started. `permanent`: trying again without a change is pointless.

    `scarce`: the daemon or the system lacks something (descriptors, processes, memory), the server is not at fault.
    `away`: it cannot be reached, which says nothing about it. `detail` says the same at length, for operators only:
    where was searched, what else is there. `hint`: what to do, where that is known.
    """

    def __init__(
        self,
        message: str,
        *,
        permanent: bool = False,
        scarce: bool = False,
        away: bool = False,
        detail: str = "",
        hint: str = "",
        **more: Any,
    ) -> None:
        super().__init__(message, **more)
        self.hint = hint
        self.permanent = permanent
        self.scarce = scarce
        self.away = away
        self.detail = detail or message


class ProtocolViolation(ServerError, kind="protocol"):
    """The server answered with bytes that are not MCP; the message says what is wrong with them."""


class TruncatedMessage(ProtocolViolation):
    """The server's output ended in the middle of a message."""


class ServerExited(ServerError, kind="crashed"):
    """The process died while a call was in flight, or closed a pipe to us, or stopped reading."""


class ServerStarting(ServerError, kind="starting", retryable=True):
    """The server did not become ready within the call's deadline."""


class ServerGaveUp(ServerError):
    """The server failed too often; it is tried again on demand at most once per probe interval."""


class LoginRequired(ServerError, kind="requires_reauth"):
    """The server wants its operator to log in there, once or once more: nothing else helps."""


class ServerDisabled(ServerError, kind="disabled"):
    """The server is switched off, in the configuration or by an operator; no call starts it."""


# The operator's fault -------------------------------------------------------------------------------------------------


class ConfigError(SupervisorError, kind="config"):
    """The configuration cannot be used. Says file, line, key and what to do."""

    def __init__(
        self, message: str, *, path: str = "", key: str = "", line: int | None = None, hint: str = "", **more: Any
    ) -> None:
        super().__init__(message, **more)
        self.path = path
        self.key = key
        self.line = line
        self.hint = hint

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.path, self.line) if part)
        lead = ": ".join(part for part in (place, self.key) if part)
        body = f"{lead}: {self.message}" if lead else self.message
        return f"{body} ({self.hint})" if self.hint else body


class DaemonAway(SupervisorError, code=-31503, kind="unavailable", retryable=True):
    """No daemon answers at the address that `mcpvisor stdio` has, and none could be started; nothing was done."""


class LoginFailed(SupervisorError, kind="login"):
    """No login at a server is possible, or it did not succeed. Says what to do."""


# Ours -----------------------------------------------------------------------------------------------------------------


class ActorStopped(SupervisorError, code=-31503, kind="unavailable", retryable=True):
    """The actor that held this request stopped before it answered."""

    def __init__(self, message: str = "the part of the daemon that held this request stopped", **more: Any) -> None:
        super().__init__(message, **more)


class ShuttingDown(SupervisorError, code=-31503, kind="shutdown", retryable=True):
    """The daemon is about to exit and takes no new work."""

    def __init__(self, message: str = "the daemon is shutting down", **more: Any) -> None:
        super().__init__(message, **more)


class DaemonLost(SupervisorError, code=-31503, kind="lost", retryable=True):
    """The connection of `mcpvisor stdio` to the daemon ended before this was answered; it may have been done."""
