"""Failed calls as results: which stay errors of the protocol, what a model reads, what a program reads."""

from __future__ import annotations

import json
import time
from typing import Any

import msgspec
import pytest

from actors.errors import (
    CallTimedOut,
    InvalidArguments,
    MailboxFull,
    MalformedRequest,
    ProtocolViolation,
    ServerDisabled,
    ServerExited,
    ServerGaveUp,
    ServerStarting,
    ShuttingDown,
    Starved,
    SupervisorError,
    TooManyCalls,
    UnknownTool,
)
from actors.messages import Result
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from docs.generate import error_classes
from supervisor.service.asking.rounds import CapabilityRequired
from supervisor.service.calls import failures


def told(error: SupervisorError | RemoteError) -> tuple[str, dict[str, Any]]:
    result = json.loads(failures.result(error))
    assert result["isError"] is True
    (block,) = result["content"]
    assert block["type"] == "text"
    return block["text"], result["structuredContent"]["error"]


def remote(code: int, message: str, data: bytes = b"", server: str = "") -> RemoteError:
    return RemoteError(ErrorObject(code, message, msgspec.Raw(data)), server)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MalformedRequest("x"), True),
        (InvalidArguments("x"), False),
        (MailboxFull(), True),
        (TooManyCalls("x", server="s"), False),
        (Starved("x"), True),
        (ShuttingDown(), True),
        (ShuttingDown("x", server="s"), False),
        (ServerDisabled("x", server="s"), False),
        (UnknownTool("x"), False),
        (CapabilityRequired("s", {"sampling": {}}, Result(msgspec.Raw(b"{}"), "modern")), True),
        (remote(-32042, "x", server="s"), True),
        (remote(-32603, "x", server="s"), False),
    ],
)
def test_only_what_a_client_can_act_on_by_itself_stays_an_error_of_the_protocol(error: Any, expected: bool) -> None:
    assert failures.is_for_client(error) is expected


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (CallTimedOut("late", outcome="unknown"), "late; whether the tool ran is not known: look before you call"),
        (ServerExited("gone", outcome="unknown"), "gone; whether the tool ran is not known"),
        (ServerExited("gone", outcome="not_sent"), "gone"),
        (ProtocolViolation("odd", outcome="completed"), "odd; the tool has run"),
        (ServerStarting("slow", retry_after_s=5), "slow; try again in 5 s"),
        (TooManyCalls("busy", server="s"), "busy; try again in 1 s"),
        (ServerGaveUp("bad", retry_after_s=200), "bad; calling it again within 200 s will not help: tell the user"),
        (ServerGaveUp("bad"), "bad; calling it again will not help: tell the user"),
        (ServerDisabled("off; tell the user"), "off; tell the user"),
        (UnknownTool("no"), "no"),
    ],
)
def test_a_model_is_told_what_to_do(error: SupervisorError, words: str) -> None:
    text, data = told(error)
    assert text.startswith(words)
    assert data["message"] == error.message
    assert (data["code"], data["type"], data["outcome"]) == (error.code, error.kind, error.outcome)


def test_an_error_of_a_server_names_it_and_keeps_code_and_data() -> None:
    text, data = told(remote(-32050, "fetch\x1b[31m failed", b'{"why":[1.0]}', "github"))
    assert text == (
        "fetch failed (said by the server 'github'); the server could not reach its service; "
        "retrying will not help until its network or credentials are right; tell the user"
    )
    assert (data["code"], data["data"], data["server"]) == (-32050, {"why": [1.0]}, "github")
    assert (data["type"], data["outcome"]) == ("server_error", "completed")
    assert "data" not in told(remote(-1, "x", server="s"))[1]


@pytest.mark.parametrize(
    ("message", "unreached"),
    [
        ("connect ECONNREFUSED 127.0.0.1:443", True),
        ("getaddrinfo ENOTFOUND api.example.com", True),
        ("401: Bad credentials", True),
        ("Request failed with status code 401", True),
        ("Unauthorized", True),
        ("Invalid API key", True),
        ("invalid token", True),
        ("issue 401 is closed", False),
        ("no such key", False),
        ("title is required", False),
    ],
)
def test_a_model_is_told_where_a_server_could_not_reach_its_service(message: str, unreached: bool) -> None:
    text, _ = told(remote(-32603, message, server="s"))
    assert text.startswith(f"{message} (said by the server 's')")
    assert ("tell the user" in text) is unreached


def test_variables_with_placeholders_are_named_where_they_may_be_the_reason() -> None:
    def text(message: str) -> str:
        result = failures.result(remote(-1, message, server="s"), ["API_TOKEN", "API_URL"])
        return str(json.loads(result)["content"][0]["text"])

    assert text("fetch failed").endswith(
        "; tell the user that its configuration has a placeholder for API_TOKEN, API_URL"
    )
    assert text("title is required") == "title is required (said by the server 's')"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("no such base\n    at get (/srv/x/index.js:1:2)\n    at node:internal/main:3:4", "no such base"),
        ("no such base at async get (file:///srv/x/index.js:1:2)", "no such base"),
        (
            'failed:\nTraceback (most recent call last):\n  File "/srv/x.py", line 3, in f\n    g()\nOSError: no',
            "failed: OSError: no",
        ),
        ('Traceback (most recent call last):\n  File "/srv/x.py", line 3, in f\n    g()', "an error without a message"),
        ("title: required\nbody: too long", "title: required\nbody: too long"),
        ("meet at 10:30:00 at /home:1", "meet at 10:30:00 at /home:1"),
    ],
)
def test_the_calls_that_led_to_an_error_are_for_programs_only(message: str, shown: str) -> None:
    text, data = told(remote(-1, message, server="s"))
    assert text == f"{shown} (said by the server 's')"
    assert data["message"] == message


@pytest.mark.parametrize("piece", [" ", "\n", " at ", " at /", " at x (", ' File "', "\n  at (/a:1"])
def test_a_trace_is_looked_for_in_no_time(piece: str) -> None:
    since = time.process_time()
    told(remote(-1, piece * (failures.MAX_TEXT_CHARS // len(piece)), server="s"))
    assert time.process_time() - since < 0.25


def test_a_text_of_a_megabyte_is_cut_for_the_model_only() -> None:
    text, data = told(remote(-1, "é" * 1_000_000, server="s"))
    assert len(text) < 11_000
    assert len(data["message"]) == 1_000_000


def test_our_own_error_in_the_codes_of_an_era_has_its_data_as_members() -> None:
    text, data = told(remote(-32002, "there is no resource", b'{"type":"not_found","uri":"x"}'))
    assert text == "there is no resource"
    assert data == {"code": -32002, "message": text, "type": "not_found", "uri": "x"}
    assert told(remote(-32002, "odd", b"[1]"))[1] == {"code": -32002, "message": "odd"}


@pytest.mark.parametrize(
    ("wordy", "parameters", "ends"), [(False, 3, "}}}"), (True, 30, "}}}"), (False, 900, "gives it")]
)
def test_a_schema_is_whole_or_not_there(wordy: bool, parameters: int, ends: str) -> None:
    text = "Some words about it. " * 20 if wordy else "x"
    schema = {"properties": {f"p{n}": {"type": "string", "description": text} for n in range(parameters)}}
    shown, data = told(InvalidArguments("s:t: wrong", details={"tool_path": "s:t", "schema": schema}))
    assert shown.startswith("s:t: wrong. ")
    assert len(shown) < 4200
    assert shown.endswith(ends)
    assert "schema" not in data
    if ends == "}}}":
        shown_schema = json.loads(shown.partition("inputSchema: ")[2])
        assert shown_schema["properties"].keys() == schema["properties"].keys()


def test_a_line_that_a_log_repeats_is_shown_once() -> None:
    line = "E{0} 17:01:{0} memcache.go:265] could not get the list of what the server offers: dial tcp: refused"
    message = "Command failed\n" + "\n".join(line.format(number) for number in range(30, 36)) + "\nrow 1\nrow 2\nrow 2"
    text, data = told(remote(-32603, message, server="cluster"))
    assert text.startswith(f"Command failed\n{line.format(30)}\nrow 1\nrow 2\nrow 2 (said by")
    assert data["message"] == message


@pytest.mark.parametrize("kind", error_classes())
def test_no_error_says_that_a_call_may_be_repeated_that_may_have_run_unless_its_tool_says_so(
    kind: type[SupervisorError],
) -> None:
    said = {}
    for idempotent in (False, True):
        for outcome in ("not_sent", "unknown", "completed"):
            error = kind("x")
            error.outcome, error.idempotent = outcome, idempotent
            said[outcome, idempotent] = error.data()["retryable"]
    assert said == {
        ("not_sent", False): kind.retryable,
        ("not_sent", True): kind.retryable,
        ("unknown", False): False,
        ("unknown", True): kind.retryable,
        ("completed", False): False,
        ("completed", True): False,
    }


def test_of_a_call_that_may_have_run_it_is_said_whether_its_tool_may_be_called_again() -> None:
    error = CallTimedOut("late", server="s", outcome="unknown")
    assert "look before you call it again" in failures.advice(error)
    error.idempotent = True
    assert "it says that it may be called again" in failures.advice(error)
