"""What becomes of a request that brings no MCP message: what a status, and what an error of the client, means."""

from __future__ import annotations

import os
import socket
import ssl

import httpx2
import trio
from msgspec.structs import replace

from actors.errors import SpawnFailed
from actors.kit import is_want
from actors.protocol.wire.peer import Cause, Failure
from actors.transport.http.authorization import Denial, NoToken
from actors.transport.http.client.client import TOO_MANY_INTERIM

SESSION_OVER = "its session is over"
NOT_TRUSTED = "its certificate is not trusted"
_CAUSES: dict[int, Cause] = {401: "unauthorized", 403: "forbidden", 429: "overloaded"}
_UNREACHED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
_GONE = ("without sending a response", "without sending complete message")
"""How the HTTP client says that the peer has closed a connection, which it takes for an error of the protocol."""
_SAID: dict[Cause, str] = {
    "unauthorized": "it wants a credential, or another one (HTTP {status})",
    "forbidden": "it wants a credential, or another one (HTTP {status})",
    "overloaded": "it is asked too often (HTTP {status})",
    "refused": "there is no MCP server at its address that takes this (HTTP {status})",
    "unavailable": "it is not available (HTTP {status})",
    "protocol": "it gave no answer (HTTP {status})",
}
_NOT_OF_SESSION = frozenset({401, 402, 403, 407, 413, 414, 429, 431, 451})
"""They say who may ask, how often, or that this one message is too large: whatever session it is asked in."""
_OF_PROXIES = (407, 502, 503, 504)
"""What a proxy says for itself (RFC 9110 15.5.8, 15.6)."""
_ELSEWHERE = "it sends us on to where nothing is sent (HTTP {status}); its address may have changed"


class UnforeseenAnswer(httpx2.RemoteProtocolError):
    """What came cannot be read, for a reason that nobody foresaw; its text is ours, and may reach clients."""


def of_status(
    id_: bytes,
    status: int,
    retry_after_s: float | None,
    denial: Denial | None = None,
    proxy: str = "",
    *,
    challenged: bool = True,
) -> Failure:
    """Return the failure for a status that is no success, and for what an authorizer says of it.

    A body is not repeated: it may hold anything. `proxy` is the variable of the environment that names who may have
    answered in the place of the server. `challenged`: the answer says how to log in.
    """
    cause = _CAUSES.get(status)
    if cause is None:
        cause = "unavailable" if status >= 500 else "refused" if status >= 400 else "protocol"
    # Whoever refuses by a status of 4xx has not done what was asked; behind a 5xx somebody may have.
    return Failure(
        id=id_,
        cause=cause,
        reason=(denial.reason if denial is not None else "")
        or (_ELSEWHERE if 300 <= status < 400 else _SAID[cause]).format(status=status)
        + (_through(proxy) if status in _OF_PROXIES else ""),
        sent=not 400 <= status < 500,
        retry_after_s=retry_after_s,
        login=denial is not None and denial.login,
        stale=_may_be_stale(status, challenged=challenged),
    )


def _may_be_stale(status: int, *, challenged: bool) -> bool:
    """Say whether a server may refuse a request because it does not know its session, or its era, any more.

    It should say so by 404 (MCP 2025-11-25, "Session Management"). Servers also say it by 400 (the official TypeScript
    transport where it was started anew), 401 without a challenge (rmcp before 1.0), 409, 410 and others, as JSON-RPC or
    as any text. So no word is looked for: the server is asked for a sign of life.
    """
    if status == 401 and not challenged:  # a real one has a challenge (RFC 9110 15.5.2)
        return True
    return 400 <= status < 500 and status not in _NOT_OF_SESSION


def expiry(id_: bytes, why: str = "") -> Failure:
    """Return the failure of a request in a session that is over: nothing of it was done."""
    reason = f"{SESSION_OVER}: {why}" if why else SESSION_OVER
    return Failure(id=id_, cause="expired", reason=reason, sent=False)


def _through(proxy: str) -> str:
    return f", through the proxy that {proxy} names" if proxy else ""


def of_error(id_: bytes, error: BaseException, proxy: str = "") -> Failure:
    """Return the failure for an error of the client: nobody could be reached, or what was sent is lost."""
    if isinstance(error, NoToken):
        return Failure(id=id_, cause="unavailable", reason=error.reason, sent=False)
    if isinstance(error, _UNREACHED):
        reason = f"it cannot be reached ({why(error)}){_through(proxy)}"
        return Failure(id=id_, cause="unavailable", reason=reason, sent=False)
    failure = _breakdown(id_, error)
    return replace(failure, reason=failure.reason + _through(proxy)) if failure.sent else failure


def _breakdown(id_: bytes, error: BaseException) -> Failure:
    """Return the failure for an error that came after a request was sent, or in the middle of its answer."""
    if isinstance(error, httpx2.LocalProtocolError):
        text = 'what would be sent to it is no HTTP: look at its "headers"'
        return Failure(id=id_, cause="refused", reason=text, sent=False)
    cause: Cause = "protocol"
    match error:
        case httpx2.SSEError():  # the media type was looked at before, so it is the size
            cause, text = "too_large", "an event of its answer is over the limit (max_event_bytes)"
        case httpx2.DecodingError():
            text = "its answer is not compressed as it says"
        case UnforeseenAnswer():
            text = str(error)
        case httpx2.RemoteProtocolError() if str(error) == TOO_MANY_INTERIM:
            text = "it sends interim answers (HTTP 1xx) without end, and no answer"
        case httpx2.RemoteProtocolError() if any(words in str(error) for words in _GONE):
            cause, text = "crashed", "it closed the connection before its answer was whole"
        case httpx2.RemoteProtocolError():
            text = "what it sends is not valid HTTP, or its head is too large"
        case _:
            cause, text = "crashed", f"the connection to it was lost ({why(error)})"
    return Failure(id=id_, cause=cause, reason=text)


def why(error: BaseException) -> str:
    """Return in a few words what an error of the HTTP client comes from; its own words may hold anything."""
    name = type(error).__name__
    cause: BaseException | None = error
    while cause is not None:
        match cause:
            case httpx2.ProxyError() if (status := str(cause)[:3]).isdecimal():
                return f"its proxy answers HTTP {status}"
            case httpx2.ConnectTimeout():
                return "no connection within connect_timeout_s"
            case ssl.SSLCertVerificationError(verify_message=said) if said:
                return f"{NOT_TRUSTED}: {said}"
            case ssl.SSLError():
                return "it does not speak TLS as we do"
            case socket.gaierror():
                return "its name cannot be looked up"
            case OSError(errno=number) if number:
                return os.strerror(number)
            case BaseExceptionGroup(exceptions=[first, *_]):
                cause = first
            case _:
                cause = cause.__cause__ or cause.__context__
    return name


# Certificates ---------------------------------------------------------------------------------------------------------


class _Certificates:
    """What was read; nobody reads it while another does."""

    def __init__(self) -> None:
        self._lock = trio.Lock()
        self._trusted: ssl.SSLContext | None = None

    async def load(self) -> ssl.SSLContext:
        async with self._lock:
            if self._trusted is None:
                self._trusted = await _read()
            return self._trusted


_certificates = trio.lowlevel.RunVar[_Certificates]("trusted certificates")


async def trusted_certificates() -> ssl.SSLContext:
    """Return which certificates are trusted: those of the system, or what `SSL_CERT_FILE` and `SSL_CERT_DIR` name.

    They are read once for all servers: that takes a tenth of a second and a megabyte. Raises `SpawnFailed`; then they
    are read again the next time.
    """
    try:
        certificates = _certificates.get()
    except LookupError:
        certificates = _Certificates()
        _certificates.set(certificates)
    return await certificates.load()


async def context_for(url: str) -> ssl.SSLContext:
    """Return what is needed to connect to an address; of one without TLS it is not used. Raises `SpawnFailed`."""
    if url[:6].lower() == "https:":
        return await trusted_certificates()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def _read() -> ssl.SSLContext:
    try:
        return await trio.to_thread.run_sync(httpx2.create_ssl_context)
    except (OSError, RuntimeError) as error:
        if not (isinstance(error, OSError) or is_want(error)):  # else the system has no thread for us
            raise
        reason = "no certificate in it" if isinstance(error, ssl.SSLError) else why(error)
        text = f"the certificates to be trusted cannot be read from {_source()}: {reason}"
        raise SpawnFailed(text, scarce=is_want(error)) from error


def _source() -> str:
    """Return where the certificates are looked for, in the order of httpx2."""
    named = next((name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)), "")
    return f"what {named} names in the environment" if named else "the system"
