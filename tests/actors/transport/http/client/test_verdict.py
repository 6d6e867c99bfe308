"""What becomes of a request that brings no message."""

from __future__ import annotations

import errno
import socket
import ssl

import httpx2
import pytest

from actors.transport.http.client.verdict import of_error, of_status, why


@pytest.mark.parametrize(
    ("status", "cause", "sent"),
    [
        (400, "refused", False),
        (401, "unauthorized", False),
        (403, "forbidden", False),
        (404, "refused", False),
        (429, "overloaded", False),
        (500, "unavailable", True),
        (503, "unavailable", True),
        (302, "protocol", True),
    ],
)
def test_a_status_says_why_and_whether_anything_was_done(status: int, cause: str, sent: bool) -> None:
    failure = of_status(b"1", status, 5.0)
    assert (failure.id, failure.cause, failure.sent, failure.retry_after_s) == (b"1", cause, sent, 5.0)
    assert str(status) in failure.reason


@pytest.mark.parametrize("status", [400, 404, 405, 406, 408, 409, 410, 415, 421, 422, 425, 426, 499])
def test_a_refusal_may_be_for_a_session_that_is_not_known_any_more(status: int) -> None:
    assert of_status(b"1", status, None).stale


@pytest.mark.parametrize("status", [302, 401, 402, 403, 407, 413, 414, 429, 431, 451, 500, 503])
def test_who_may_ask_how_often_and_how_much_has_nothing_to_do_with_a_session(status: int) -> None:
    assert not of_status(b"1", status, None).stale


def test_a_401_that_says_no_way_to_log_in_may_be_for_the_session() -> None:
    assert of_status(b"1", 401, None, challenged=False).stale


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (httpx2.RemoteProtocolError("Server disconnected without sending a response."), "crashed"),
        (httpx2.RemoteProtocolError("illegal status line"), "protocol"),
        (httpx2.DecodingError("x"), "protocol"),
        (httpx2.SSEError("x"), "too_large"),
        (httpx2.ReadError("x"), "crashed"),
        (httpx2.InvalidURL("x"), "crashed"),
    ],
)
def test_who_has_gone_is_told_from_who_sends_nonsense(error: Exception, cause: str) -> None:
    failure = of_error(b"1", error)
    assert (failure.id, failure.cause, failure.sent) == (b"1", cause, True)


def test_what_never_left_was_not_done() -> None:
    failure = of_error(b"1", httpx2.LocalProtocolError("secret"))
    assert (failure.cause, failure.sent) == ("refused", False)
    assert '"headers"' in failure.reason


def raised_from(cause: BaseException) -> Exception:
    try:
        try:
            raise cause
        except BaseException as error:
            raise RuntimeError("http://user:secret@host") from error
    except RuntimeError as error:
        return error


def untrusted() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError("bad")
    error.verify_message = "certificate has expired"
    return error


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (OSError(errno.ECONNREFUSED, "x"), "Connection refused"),
        (ExceptionGroup("all", [OSError(errno.EHOSTUNREACH, "x")]), "No route to host"),
        (socket.gaierror(-2, "secret"), "its name cannot be looked up"),
        (untrusted(), "its certificate is not trusted: certificate has expired"),
        (ssl.SSLError("secret"), "it does not speak TLS as we do"),
        (httpx2.ConnectTimeout("secret"), "no connection within connect_timeout_s"),
        (OSError("secret"), "RuntimeError"),
        (ValueError("secret"), "RuntimeError"),
    ],
)
def test_an_error_is_told_in_our_words(cause: BaseException, words: str) -> None:
    assert why(raised_from(cause)) == words
