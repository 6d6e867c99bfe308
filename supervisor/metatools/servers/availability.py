"""Why a server cannot be used now, in words for whoever asked for it. Pure.

The local user is the operator: the reason is said, and the command that shows more. Reasons are free of secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from actors.catalogue.snapshot import Catalogue
from actors.errors import ServerDisabled, ServerError, ServerGaveUp, ServerStarting, ValuesMissing
from actors.installation import InstallationStatus, installation_status, is_available
from actors.life.breakers import OpenBreaker
from actors.life.states import State
from actors.messages import ServerStatus
from actors.protocol.listing import METHODS
from actors.server.calls.errors import down_error, log_hint
from actors.server.recovery import DELAYS, STARTING_RETRY_S
from supervisor.metatools.texts import clean

MAX_REASON_CHARS = 300
MAX_SERVERS_NAMED = 20
MAX_WHY_CHARS = 100
_FIRST = frozenset({State.DORMANT, State.SPAWNING, State.HANDSHAKING, State.DISCOVERING, State.READY})


def refusal(server: str, status: ServerStatus | None) -> ServerError | None:
    """Return why nothing can be asked of a server, however long one waits; None if it can be."""
    if status is None:
        return None
    if status.disabled:
        text = f"server {server!r} is not available: {_reason(status)}; calling it again will not help: tell the user"
        return ServerDisabled(text, server=server)
    if status.awaits:
        return missing_values_error(server, status.awaits, status.reason)
    if status.state is State.FAILED and status.wanted == "stopped":  # it has no actor that could be asked
        return ServerGaveUp(f"server {server!r} cannot be used: {_reason(status)}", server=server)
    return None


def missing_values_error(server: str, missing: tuple[str, ...], why: str) -> ValuesMissing:
    text = f"server {server!r} cannot be started: {clean(why)}; calling it again will not help: tell the user"
    return ValuesMissing(text, server=server, details={"missing": list(missing)} if missing else None)


def late(server: str, status: ServerStatus | None, now: float) -> ServerStarting:
    """Return the error for a server that did not come up in time. `now` is a moment of the trio clock."""
    if status is not None and (wait := respawn_after_s(status, now)) is not None:
        left = None if status.next_start is None else status.next_start - now
        return down_error(server, _reason(status), wait, left, away=status.down == "offline")
    activity = status.activity if status is not None else None
    why, wait = DELAYS[activity] if activity is not None else ("", STARTING_RETRY_S)
    text = f"server {server!r} is being discovered for the first time and is not ready yet{why}; {log_hint(server)}"
    return ServerStarting(text, server=server, retry_after_s=wait)


def retry_after_s(status: ServerStatus, now: float) -> float | None:
    """Return in how many seconds a call may find a server up again; see `ServerStatus.retry_at`."""
    return None if status.retry_at is None else max(0.0, status.retry_at - now)


def open_breaker(status: ServerStatus, tool: str, now: float) -> OpenBreaker | None:
    """Return the breaker that refuses calls of a tool, by its own name, for the longest time; None if none does.

    After its pause the next call is let through, so that is no refusal any more.
    """
    refusing = (each for each in status.breakers if each.breaker == "server" or each.tool == tool)
    return max((each for each in refusing if each.until > now), key=lambda each: each.until, default=None)


def availability_of(status: ServerStatus, tool: str, now: float) -> dict[str, Any]:
    """Return what a row says of a tool that cannot be called now: in how many milliseconds it can, if that is known,
    and why, if that is a breaker.
    """
    breaker = open_breaker(status, tool, now)
    down = not is_available(status)
    if breaker is None and not down:
        return {}
    waits = [retry_after_s(status, now) if down else None, breaker.until - now if breaker is not None else None]
    wait_s = max((each for each in waits if each is not None), default=None)
    when = {} if wait_s is None else {"retry_after_ms": round(wait_s * 1000)}
    return {"available": False, **when, **({} if breaker is None else {"reason": _why(breaker)})}


def _why(breaker: OpenBreaker) -> str:
    who = "it keeps" if breaker.tool else "calls of its server keep"
    return f"{who} failing: {clean(breaker.reason)[:MAX_WHY_CHARS]}"


def respawn_after_s(status: ServerStatus | None, now: float) -> float | None:
    """Return in how many seconds a server that failed is started again; None if it is not, or has not failed."""
    return retry_after_s(status, now) if status is not None and status.state is State.RESPAWNING else None


def is_coming(status: ServerStatus | None) -> bool:
    """Say whether a server without known tools is being discovered for the first time: it has not failed so far."""
    if status is None:
        return True
    queued = status.state is not State.DORMANT or status.incarnation == 0
    return is_available(status) and status.restarts == 0 and status.state in _FIRST and queued


def newcomers(seen: Catalogue, statuses: Mapping[str, ServerStatus]) -> frozenset[str]:
    """Return the servers that are being discovered for the first time; not those that failed and try again."""
    unknown = seen.names.servers - seen.entries.keys()
    if not unknown:
        return unknown
    return frozenset(server for server in unknown if is_coming(statuses.get(server)))


_STANDINGS: Mapping[InstallationStatus | None, str] = {
    None: "is not available",
    "awaiting_user_config": "waits for values",
    "requires_reauth": "wants a login",
    "offline": "is offline",
    "error": "fails and is started again",
    "permanently_failed": "could not be started",
}
"""What is said of a server that cannot be used, by the status that all pages show; why follows in brackets."""


def status_words(server: str, status: ServerStatus | None) -> str:
    if is_coming(status):
        return f"{clean(server)} is being discovered"
    assert status is not None
    word = installation_status(status, listed=False)
    if word in _STANDINGS:
        return f"{clean(server)} {_STANDINGS[word]} ({_reason(status)})"
    if not status.reason and not status.restarts:
        return f"{clean(server)} is {status.state} and was never discovered"
    return f"{clean(server)} could not be started ({_reason(status)})"


def is_off(status: ServerStatus | None) -> bool:
    return status is not None and status.disabled


def standings(servers: Iterable[str], statuses: Mapping[str, ServerStatus], most: int = MAX_SERVERS_NAMED) -> str:
    """Return how servers are doing, at most twenty of them; empty for none."""
    names = sorted(servers)
    told = "; ".join(status_words(name, statuses.get(name)) for name in names[:most])
    more = f"; {len(names) - most} more" if len(names) > most else ""
    return told + more


def unlisted_of(seen: Catalogue, server: str | None) -> str:
    """Return why not all tools of a server are known; empty if they are."""
    entry = seen.entries.get(server) if server is not None else None
    if entry is None or not entry.offer.partial:
        return ""
    problems = (problem for problem in entry.offer.problems if problem.startswith(METHODS["tools"]))
    return f"its list of tools could not be read to its end ({clean(next(problems, 'no answer'))[:MAX_REASON_CHARS]})"


def unlisted_sentences(seen: Catalogue, servers: Iterable[str]) -> str:
    """Say of which of these servers not all tools are known, at most twenty of them; empty for none."""
    partial = [server for server in sorted(servers) if server in seen.visible and unlisted_of(seen, server)]
    told = "; ".join(f"{clean(name)}: {unlisted_of(seen, name)}" for name in partial[:MAX_SERVERS_NAMED])
    return f"Not all tools are known. {told}; tell the user." if told else ""


def without(seen: Catalogue, server: str, tool: str) -> str:
    return f"Server {server!r} has no tool {clean(tool[:100])!r}. {unlisted_sentences(seen, [server])}".rstrip()


def _reason(status: ServerStatus) -> str:
    return clean(status.reason or ("it is switched off" if status.disabled else "its last start failed"))[
        :MAX_REASON_CHARS
    ]
