"""The trials that are made with other proxies, too: the rule, a client that is not held up, and this daemon in some."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.faults.session import CALL_ID, exchange
from benchmarks.faults.subjects import subjects
from benchmarks.faults.verdict import Outcome, Trial, fault_of_call, fault_of_refusal, outcome, score, trial
from benchmarks.faults.wires import try_wires

HANGS = "hangs until the client's timeout"
PATIENCE_S = 30.0
ANSWER = {"jsonrpc": "2.0", "id": CALL_ID, "result": {"content": [{"type": "text", "text": "key"}]}}
TEXT = json.dumps(ANSWER).encode()
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("error", "result", "structuredContent", "isError", "success")), inner)
    ),
)


@pytest.mark.parametrize(
    ("said", "runs", "fault"),
    [
        (Outcome("answer", "the key", 0), 1, ""),
        (Outcome("error", "it took too long", 0), 1, ""),
        (Outcome("error", "it took too long", 0), 2, "the call was sent 2 times"),
        (Outcome("answer", "something", 0), 1, "an answer that is not the server's"),
        (Outcome("nothing", "", 0), 1, HANGS),
        (Outcome("cut", "", 0), 0, "the connection ends without an answer"),
        (Outcome("status", "", 0, 500), 1, "HTTP 500 without an error of the protocol"),
    ],
)
def test_a_call_gets_its_answer_or_an_error_once(said: Outcome, runs: int, fault: str) -> None:
    assert fault_of_call(said, "key", runs) == fault


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (Outcome("error", "", 0, 400), ""),
        (Outcome("cut", "", 0), ""),
        (Outcome("status", "", 0, 501), ""),
        (Outcome("error", "", 0, 500), "HTTP 500"),
        (Outcome("nothing", "", 0), HANGS),
    ],
)
def test_a_malformed_request_is_refused_but_not_by_an_error_of_the_proxy(said: Outcome, fault: str) -> None:
    assert fault_of_refusal(said) == fault


def test_who_does_not_start_a_dead_server_again_is_not_blamed_for_the_next_call_alone() -> None:
    lacks = "no restart"
    assert trial("g", "n", "", "it fails", lacks=lacks) == Trial("g", "n", "not offered", lacks)
    assert trial("g", "n", HANGS, "it fails", lacks=lacks) == Trial("g", "n", "missed", f"{HANGS}; it fails")
    assert trial("g", "n", "", "", lacks=lacks).mark == "passed"
    assert trial("g", "n", "", "it fails").mark == "missed"


def test_what_is_not_offered_is_not_counted() -> None:
    trials = [Trial("g", "a", "passed"), Trial("g", "b", "missed"), Trial("g", "c", "not offered")]
    assert score(trials) == "1 of 2"
    assert score(trials[2:]) == "-"


@given(ANYTHING)
def test_any_message_has_a_meaning(message: Any) -> None:
    said = outcome(200, message, 0.0)
    assert said.kind in ("answer", "error", "status")
    if said.kind == "answer":
        assert "error" not in message or not isinstance(message["error"], dict)


def test_one_failed_call_of_several_at_once_is_an_error() -> None:
    assert outcome(200, {"result": {"structuredContent": {"success": False}}}, 0.0).kind == "error"
    assert outcome(200, {"result": {"structuredContent": {"success": True}}}, 0.0).kind == "answer"
    assert outcome(200, {"result": {"structuredContent": [False]}}, 0.0).kind == "answer"


def _head(kind: str) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nConnection: close\r\n\r\n" % kind.encode()


def _event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


@contextmanager
def _says(act: Callable[[socket.socket], None]) -> Iterator[int]:
    """Accept one connection, read something of it, act, and close; yields the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                act(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (_head("application/json") + TEXT, "answer"),
        (_head("application/json") + b"[%b]" % TEXT, "status"),
        (_head("text/event-stream") + _event(b'[{"id": 1}]') + _event(b'{"method": "x"}') + _event(TEXT), "answer"),
        (_head("text/event-stream") + _event(b'{"id": 1, "result": {}}'), "cut"),
        (_head("text/event-stream") + _event(b"{"), "cut"),
        (b"", "cut"),
        (b"nonsense\r\n\r\n", "cut"),
    ],
)
def test_what_a_client_sees_of_an_answer(data: bytes, kind: str) -> None:
    with _says(lambda connection: connection.sendall(data)) as port:
        said, _ = exchange(port, b"POST / HTTP/1.1\r\n\r\n", CALL_ID, PATIENCE_S)
    assert said.kind == kind


@pytest.mark.parametrize("begin", [b"", _head("application/json") + b"{", _head("text/event-stream") + b"data: "])
def test_a_client_is_not_held_up(begin: bytes) -> None:
    def act(connection: socket.socket) -> None:
        connection.sendall(begin)
        connection.recv(1)  # until the client has gone

    with _says(act) as port:
        said, _ = exchange(port, b"POST / HTTP/1.1\r\n\r\n", CALL_ID, 0.2)
    assert said.kind == "nothing"


@pytest.mark.process
def test_this_daemon_passes_trials_in_which_its_server_makes_noise_and_ends(tmp_path: Path) -> None:
    trials = list(try_wires(next(subjects()), tmp_path, ("noise", "exit")))
    assert [(each.name, each.mark, each.says) for each in trials] == [("noise", "passed", ""), ("exit", "passed", "")]
