"""Why a call is not taken, or has no answer that can be passed on, as an error for its client. Pure."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from actors.command_line import command
from actors.errors import (
    AnswerFirst,
    BreakerTripped,
    CallTimedOut,
    CallTooLarge,
    LoginRequired,
    MalformedRequest,
    Outcome,
    ProtocolViolation,
    ServerError,
    ServerExited,
    ServerStarting,
    Starved,
    SupervisorError,
    TooManyCalls,
)
from actors.life.breakers import BreakerRefusal
from actors.messages import CallServer
from actors.protocol.agreement.versions import Era
from actors.protocol.tasks import UnknownTask
from actors.protocol.wire.peer import Failure, Malformed

UNREACHED_RETRY_S = 1.0
"""When to make a call again that found nobody at a server that still answers others."""
Hide = Callable[[str], str]
"""Hides the secrets of a server in a text."""


def malformed_error(server: str, fact: Malformed[int], hide: Hide) -> SupervisorError:
    """Return the error for an answer that cannot be passed on. Where it has a result, the tool has run."""
    outcome: Outcome = "completed" if fact.done else "unknown"
    text = f"server {server!r} answered with {hide(fact.reason)}"
    if fact.over is None:
        return ProtocolViolation(text, server=server, outcome=outcome)
    text += "; ask for less at once, if the tool can do that"
    return CallTooLarge(text, server=server, outcome=outcome, details=fact.over)


def loss_error(server: str, failure: Failure, hide: Hide) -> SupervisorError:
    text = f"server {server!r}: {hide(failure.reason)}"
    outcome: Outcome = "unknown" if failure.sent else "not_sent"
    if failure.login:
        return LoginRequired(f"{text} (it wants a login)", server=server, outcome=outcome)
    if failure.unreached:
        again_s = failure.retry_after_s or UNREACHED_RETRY_S
        return ServerStarting(f"{text}; nothing was sent", server=server, retry_after_s=again_s)
    match failure.cause:
        case "crashed":
            return ServerExited(text, server=server, outcome=outcome)
        case "protocol":
            return ProtocolViolation(text, server=server, outcome=outcome)
        case "too_large":
            text += "; ask for less at once, if the tool can do that"
            return CallTooLarge(text, server=server, outcome=outcome)
        case "overloaded":
            return TooManyCalls(text, server=server, outcome=outcome, retry_after_s=failure.retry_after_s)
        case _:
            return ServerError(text, server=server, outcome=outcome, retry_after_s=failure.retry_after_s)


def unheard_error(server: str) -> TooManyCalls:
    text = (
        f"server {server!r} said more on this stream than its client could be told; "
        "accept text/event-stream, read it faster, and go on from the last cursor"
    )
    return TooManyCalls(text, server=server, outcome="unknown")


def too_large_error(server: str, size: int, limit: int) -> CallTooLarge:
    text = f"the call has {size} bytes; server {server!r} takes {limit} (max_queued_bytes)"
    return CallTooLarge(text, server=server)


def wrong_run_error(message: CallServer, era: Era, run: str) -> SupervisorError | None:
    """Return why an incarnation cannot know what a request is about; None if it can."""
    if message.resumes and era == "legacy":  # it cannot have begun what this goes on with
        text = f"requestState: not one that was given here for server {message.server!r}; make the request anew"
        return MalformedRequest(text, server=message.server)
    return lost_task_error(message.server) if message.run and message.run != run else None


def lost_task_error(server: str) -> UnknownTask:
    """Return the error for a request about a task whose server has ended since it made that."""
    text = f"server {server!r} has ended since it made this task: it is lost, and how far it came is not known"
    return UnknownTask(f"{text}; look before you make it again", server=server, outcome="unknown")


def busy_error(server: str, why: str) -> TooManyCalls:
    return TooManyCalls(f"server {server!r} is busy: {why}", server=server)


def unanswered_error(server: str, tool: str, left_s: float) -> AnswerFirst:
    """Return the error for a call that waits in vain, as a question about a call of `tool` has no answer.

    It is given up in `left_s`.
    """
    text = (
        f"server {server!r} waits for the answer to what another call, of {tool[:100]!r}, asks, and this one for its "
        f"turn; nothing was sent: go on with that call first, which is given up in {left_s:.0f} s, then call this again"
    )
    return AnswerFirst(text, server=server, retry_after_s=left_s)


def exit_error(server: str, reason: str) -> ServerExited:
    """Return the error for a call that its server may know of, and that ended before it answered."""
    text = f"server {server!r} stopped while the call was in flight: {reason}"
    return ServerExited(text, server=server, outcome="unknown")


class Delay(msgspec.Struct, frozen=True):
    """Why a server is not ready, as the end of a sentence, and in how many seconds to ask again.

    `scarce`: we lack what its start takes.
    """

    why: str
    retry_after_s: float
    scarce: bool = False

    def or_else(self, why: str) -> Delay:
        """Return it with another reason, if it has none."""
        return self if self.why or not why else msgspec.structs.replace(self, why=why)


def log_hint(server: str) -> str:
    return f"`{command('logs', server)}` shows what it says"


def when_again(wait_s: float, next_start_s: float | None) -> str:
    """Say when a server is tried again: by itself, in `next_start_s`, or by a call where that may be sooner."""
    by_itself = next_start_s is not None and next_start_s <= wait_s + 0.5  # to the second that is said
    return f"it is tried again in {wait_s:.0f} s" if by_itself else f"a call tries it again after {wait_s:.0f} s"


def down_error(
    server: str, reason: str, wait_s: float, next_start_s: float | None, *, away: bool = False
) -> ServerStarting:
    """Return the error for a server that failed, or is away, and that a call may find up again in `wait_s`."""
    text = f"server {server!r} {'is away' if away else 'did not start'}: {reason}; {when_again(wait_s, next_start_s)}"
    return ServerStarting(f"{text}; {log_hint(server)}", server=server, retry_after_s=wait_s)


def late_error(message: CallServer, took_s: float | None, delay: Delay) -> SupervisorError:
    """Return the error for a call whose deadline passed, after so many seconds; None: it was not sent, by `delay`."""
    server, limit = message.server, message.limit_s
    if took_s is not None:
        limit = max(limit, round(took_s))
        text = f"server {server!r} did not answer {message.method} within {limit:g} s"
        return CallTimedOut(text, server=server, outcome="unknown")
    text = f"server {server!r} was not ready within the call's deadline of {limit:g} s{delay.why}; nothing was sent"
    if delay.scarce:
        return Starved(text, server=server, outcome="not_sent", retry_after_s=delay.retry_after_s)
    return ServerStarting(text, server=server, retry_after_s=delay.retry_after_s)


def left_alone_error(server: str, refusal: BreakerRefusal) -> BreakerTripped:
    """Return the error for what a breaker does not let through, with the reason of its last failure and what helps."""
    by, again = refusal.by, f"call it again in {max(1, round(refusal.wait_s))} s"
    match by.breaker:
        case "tool":
            text = f"tool {by.tool[:100]!r} of server {server!r} is left alone for now, as its calls keep failing"
            advice = f"{again}, or use another tool: others of this server can be called"
        case "discovery":
            text = f"the lists of server {server!r} are left alone for now, as reading them keeps failing"
            advice = again
        case "server":
            text = f"server {server!r} is left alone for now, as its calls keep failing"
            advice = f"{again}, or use a tool of another server"
    text = f"{text} (the last time: {by.reason}); nothing was sent; {advice}"
    details = {"breaker": by.breaker}
    return BreakerTripped(text, server=server, retry_after_s=refusal.wait_s, details=details)
