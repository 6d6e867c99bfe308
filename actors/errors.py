"""The taxonomy of expected failures, named by whose fault they are. Pure.

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


def forget_frames(error: BaseException) -> None:
    """Take from an error that is told, and from those it came of, the frames that it came through.

    One of these mostly holds what holds the error, such as the reply that it came by. So all that its call consisted of
    would be a cycle, and not freed without a search for garbage (`supervisor.host.pauses` says what that costs).
    """
    over: BaseException | None = error
    while over is not None and over.__traceback__ is not None:
        over.__traceback__, over = None, over.__cause__ or over.__context__


class SupervisorError(Exception):
    """An expected failure of no other kind. Its message may reach a client: no payload, no secret, no traceback."""

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
    """The protocol revision of the client has no such method, or this door has not."""


class UnknownTool(SupervisorError, code=INVALID_PARAMS, http_status=400, kind="not_found"):
    """The client sees no tool of that name. `data.nearest` has the nearest names."""


class UnknownServer(SupervisorError, code=INVALID_PARAMS, http_status=400, kind="not_found"):
    """The configuration has no server of that name."""


class UnknownDoor(SupervisorError, code=INVALID_REQUEST, http_status=404, kind="not_found"):
    """The address is no door of MCP, or names a server or a profile that is not configured."""


class UnknownPrompt(SupervisorError, code=INVALID_PARAMS, http_status=400, kind="not_found"):
    """The client sees no prompt of that name."""


class InvalidArguments(SupervisorError, code=INVALID_PARAMS, http_status=400, kind="invalid"):
    """The arguments do not fit what the tool or the method takes. The message says which ones."""


class MalformedRequest(InvalidArguments):
    """The params of the request itself do not fit its method, so the daemon cannot act on it."""


class AmbiguousName(InvalidArguments, kind="ambiguous"):
    """The name can mean several things. `data.readings` has a name for each that means it alone."""


class NotAuthenticated(SupervisorError, code=-31401, http_status=401, kind="unauthenticated"):
    """The request does not show who sends it, or what it shows is not valid here, or not any more."""


class TooManyAttempts(SupervisorError, code=-31429, http_status=429, kind="overloaded", retryable=True):
    """Too many wrong credentials came from this address; a right one is taken at any time."""


class TokensNotRead(SupervisorError, code=-31503, http_status=503, kind="unavailable", retryable=True):
    """The daemon has not read its database yet, so it does not know whose the token is. Nothing was done."""


class ProviderUnavailable(SupervisorError, code=-31503, http_status=503, kind="unavailable", retryable=True):
    """The identity provider that issued the token could not be asked about it, or too many are asked about just now.
    That says nothing about the token. Nothing was done."""


class InsufficientScope(SupervisorError, code=-31403, http_status=403, kind="insufficient_scope"):
    """The token of an identity provider is valid, but was not issued for that. `data.scope` has what it needs."""


class CallTooLarge(SupervisorError, code=-31413, http_status=413, kind="too_large"):
    """A request or an answer is larger than a limit allows. The message names the limit."""


class CannotAsk(SupervisorError, code=METHOD_NOT_FOUND, kind="not_supported"):
    """A server asks what the client cannot answer: it did not declare that, or has no stream to be asked on."""


# Load -----------------------------------------------------------------------------------------------------------------


class MailboxFull(SupervisorError, code=-31429, kind="overloaded", retryable=True):
    """Too many requests wait for a part of the daemon (the mailbox of its actor is full). It takes no more for now."""

    def __init__(self, message: str = "busy: too many requests are waiting; retry shortly", **more: Any) -> None:
        super().__init__(message, **{"retry_after_s": 1.0, **more})


class TooManyCalls(MailboxFull):
    """The request would go over a limit on calls, subscriptions or tasks. The message names the limit."""


class AnswerFirst(SupervisorError, code=-31409, kind="answer_first", retryable=True):
    """Another call of the client asks something, and comes first. Nothing was sent: go on with it, then make this."""


class Starved(SupervisorError, code=-31429, kind="overloaded", retryable=True):
    """The daemon has no descriptor, thread, memory or disk left for the request. A call may have run."""

    def __init__(self, message: str, **more: Any) -> None:
        super().__init__(message, **{"retry_after_s": 1.0, "outcome": "unknown", **more})


class CallTimedOut(SupervisorError, code=-31408, kind="timeout"):
    """The call had no result within its deadline. `outcome` says whether it was sent."""


# The server's fault ---------------------------------------------------------------------------------------------------


class ServerError(SupervisorError, code=-31502, kind="unavailable"):
    """A server is the cause, not the client and not the daemon. The message has the reason."""


class SpawnFailed(ServerError):
    """The daemon could not start the server, or could not reach it where it is remote.

    `permanent`: to try again without a change is pointless. `scarce`: the daemon or the system lacks descriptors,
    processes or memory; the server is not at fault. `away`: a remote server cannot be reached now. `detail`: the same
    at length, for operators only: where the daemon searched, what else is there. `hint`: what to do, where it is known.
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
    """The server answered with bytes that are not MCP. The message says what is wrong with them."""


class SkillMismatch(ServerError, kind="mismatch"):
    """What the server gave for a file of a skill is not what it lists: the digest or the size is another one, or the
    file is not among those of the skill. Nothing of it is passed on. `data.skill` is the URI of the skill."""


class TruncatedMessage(ProtocolViolation):
    """The server's output ended in the middle of a message."""


class ServerExited(ServerError, kind="crashed"):
    """The process of the server died during the call, closed a pipe, or stopped reading."""


class ServerStarting(ServerError, kind="starting", retryable=True):
    """The server was not ready within the deadline of the call."""


class ServerGaveUp(ServerError):
    """The server failed too often. A call tries it again, at most once per `probe_interval_s`."""


class BreakerTripped(ServerError, retryable=True):
    """Calls of the server, or of this tool, kept failing, so none is sent before `retry_after_ms`: its breaker is open
    (`data.breaker`: `server`, `tool` or `discovery`)."""


class LoginRequired(ServerError, kind="requires_reauth"):
    """The server wants a login, or a new one: its operator, or its user, runs `mcpvisor login`."""


class ServerDisabled(ServerError, kind="disabled"):
    """The server is switched off, in the configuration or by its operator. No call starts it."""


class ValuesMissing(ServerError, kind="needs_configuration"):
    """The server is started with values of its users or their team, and some are missing. `data.missing` names them."""


class ToolHeld(SupervisorError, code=-31451, kind="not_approved"):
    """The tool waits for approval, as its server defines it otherwise than was approved. Nothing was called: an admin
    runs `mcpvisor approve`. `data.reason` says why."""


class CallRefused(SupervisorError, code=-31452, kind="refused"):
    """A plugin of the operator refused the call, or holds its result back: `outcome` says whether the tool ran. The
    message has the reason, `data.plugin` the name of the plugin."""


# The operator's fault -------------------------------------------------------------------------------------------------


class ConfigError(SupervisorError, kind="config"):
    """The configuration cannot be used. The message has the file, the line, the key and what to do."""

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
    """`mcpvisor stdio` found no daemon and could not start one. Nothing was done."""


class LoginFailed(SupervisorError, kind="login"):
    """A login at a server is not possible, or did not succeed. The message says what to do."""


# Ours -----------------------------------------------------------------------------------------------------------------


class ActorStopped(SupervisorError, code=-31503, kind="unavailable", retryable=True):
    """The part of the daemon (an actor) that held the request stopped before it answered."""

    def __init__(self, message: str = "the part of the daemon that held this request stopped", **more: Any) -> None:
        super().__init__(message, **more)


class ShuttingDown(SupervisorError, code=-31503, kind="shutdown", retryable=True):
    """The daemon is about to end and takes no new work."""

    def __init__(self, message: str = "the daemon is shutting down", **more: Any) -> None:
        super().__init__(message, **more)


class DaemonLost(SupervisorError, code=-31503, kind="lost", retryable=True):
    """`mcpvisor stdio` lost its connection to the daemon before the answer came. The request may have been done."""
