"""The verdict table: what each outcome of a probe, and of `initialize`, says about the era of a server."""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec
import pytest

from actors.protocol.agreement.era import Action, Agreement, Identity, Negotiation, NoAgreement, Send, Terms
from actors.protocol.agreement.versions import Era
from actors.protocol.wire.jsonrpc import ErrorObject

MODERN = "2026-07-28"
FUTURE = "2099-01-01"
LEGACY = "2025-11-25"
INITIALIZE = "initialize"
PROBE = "server/discover"


def error(code: int, data: Any = None) -> ErrorObject:
    return ErrorObject(
        code, "message", msgspec.Raw(json.dumps(data).encode()) if data is not None else msgspec.Raw(b"")
    )


def unsupported(*versions: Any) -> ErrorObject:
    return error(-32022, {"supported": list(versions), "requested": MODERN})


def discovered(*versions: str) -> dict[str, Any]:
    return {"supportedVersions": list(versions), "capabilities": {"tools": {}}, "instructions": "read me"}


def initialized(version: str = LEGACY) -> dict[str, Any]:
    return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "x"}}


def verdict(answers: list[Any], known: Era | None = None) -> str:
    """Feed answers one after the other; return the method sent last, or the end."""
    negotiation = Negotiation(Identity(), known)
    action: Action = negotiation.start()
    for answer in answers:
        assert isinstance(action, Send), "there is nothing to answer any more"
        if isinstance(answer, ErrorObject):
            action = negotiation.on_error(answer)
        else:
            action = negotiation.on_result(msgspec.Raw(json.dumps(answer).encode()))
    match action:
        case Send(method=method):
            return method
        case Agreement(era=era, version=version):
            return f"{era} {version}"
        case NoAgreement():
            return "impossible"


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        # the probe's result
        ([discovered(MODERN)], f"modern {MODERN}"),
        ([discovered(FUTURE, MODERN, LEGACY)], f"modern {MODERN}"),
        ([discovered(LEGACY)], INITIALIZE),
        ([discovered()], INITIALIZE),
        ([discovered(FUTURE)], INITIALIZE),
        ([{}], INITIALIZE),
        ([{"supportedVersions": MODERN}], INITIALIZE),
        ([{"supportedVersions": [1]}], INITIALIZE),
        ([[]], INITIALIZE),
        # the probe's error: UnsupportedProtocolVersion
        ([unsupported(MODERN)], PROBE),
        ([unsupported(MODERN), discovered(MODERN)], f"modern {MODERN}"),
        ([unsupported(MODERN), unsupported(MODERN)], "impossible"),
        ([unsupported(MODERN), unsupported(MODERN, LEGACY)], INITIALIZE),
        ([unsupported(FUTURE)], "impossible"),
        ([unsupported(LEGACY)], INITIALIZE),
        ([unsupported(FUTURE, LEGACY)], INITIALIZE),
        ([unsupported()], INITIALIZE),
        ([unsupported(1)], INITIALIZE),
        ([error(-32022)], INITIALIZE),
        ([error(-32022, {"supported": MODERN})], INITIALIZE),
        ([error(-32022, [MODERN])], INITIALIZE),
        # any other error
        *(([error(code)], INITIALIZE) for code in (-32601, -32602, -32600, -32000, 0, -32020, -32021, -32603, 1)),
        # initialize
        *(
            ([error(-32601), initialized(version)], f"legacy {version}")
            for version in ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY)
        ),
        ([error(-32601), initialized(MODERN)], "impossible"),
        ([error(-32601), initialized("1999-01-01")], "impossible"),
        ([error(-32601), {}], "impossible"),
        ([error(-32601), error(-32602)], "impossible"),
        ([error(-32601), error(-32601)], "impossible"),
        # a slow start made us think otherwise
        ([error(-32601), unsupported(MODERN)], PROBE),
        ([error(-32601), error(-32022)], PROBE),
        ([error(-32601), unsupported(MODERN), discovered(MODERN)], f"modern {MODERN}"),
        ([error(-32601), unsupported(MODERN), unsupported(MODERN)], "impossible"),
        ([error(-32601), unsupported(MODERN), error(-32601)], INITIALIZE),
        ([error(-32601), unsupported(MODERN), error(-32601), unsupported(MODERN)], "impossible"),
    ],
)
def test_the_verdict_follows_the_table(answers: list[Any], expected: str) -> None:
    assert verdict(answers) == expected


@pytest.mark.parametrize(
    ("known", "answers", "expected"),
    [
        (None, [], PROBE),
        ("modern", [], PROBE),
        ("legacy", [], INITIALIZE),
        ("legacy", [initialized()], f"legacy {LEGACY}"),
        ("legacy", [unsupported(MODERN)], PROBE),
        ("modern", [error(-32601)], INITIALIZE),
    ],
)
def test_what_is_remembered_is_asked_first(known: Era | None, answers: list[Any], expected: str) -> None:
    assert verdict(answers, known) == expected


@pytest.mark.parametrize(
    ("only", "answers", "expected"),
    [
        ("legacy", [initialized()], "legacy"),
        ("legacy", [unsupported(MODERN)], "none"),
        ("modern", [discovered(MODERN)], "modern"),
        ("modern", [error(-32601)], "none"),
        ("modern", [unsupported(FUTURE, MODERN), discovered(MODERN)], "modern"),
        ("modern", [discovered(FUTURE)], "none"),
    ],
)
def test_an_era_that_is_insisted_on_is_the_only_one(only: Era, answers: list[Any], expected: str) -> None:
    for known in ("legacy", "modern", None):
        negotiation = Negotiation(Identity(), known, Terms(only=only))
        assert not negotiation.probing
        action: Action = negotiation.start()
        for answer in answers:
            if isinstance(answer, ErrorObject):
                action = negotiation.on_error(answer)
            else:
                action = negotiation.on_result(msgspec.Raw(json.dumps(answer).encode()))
        match action:
            case Agreement(era=era):
                assert era == expected
            case _:
                assert isinstance(action, NoAgreement)
                assert expected == "none"


def test_silence_under_the_first_probe_wants_a_fresh_process() -> None:
    negotiation = Negotiation(Identity(), None)
    negotiation.start()
    assert negotiation.probing


@pytest.mark.parametrize(
    ("known", "errors"),
    [("legacy", []), (None, [error(-32601)]), (None, [unsupported(MODERN)]), ("legacy", [unsupported(MODERN)])],
)
def test_silence_later_says_nothing_about_the_era(known: Era | None, errors: list[ErrorObject]) -> None:
    negotiation = Negotiation(Identity(), known)
    negotiation.start()
    for error in errors:
        negotiation.on_error(error)
    assert not negotiation.probing


def test_the_probe_names_the_version_in_its_envelope_and_initialize_does_not() -> None:
    negotiation = Negotiation(Identity(name="me", version="1"), None)
    probe = json.loads(negotiation.start().params)
    assert probe["_meta"]["io.modelcontextprotocol/protocolVersion"] == MODERN
    assert probe["_meta"]["io.modelcontextprotocol/clientInfo"] == {"name": "me", "version": "1"}
    sent = negotiation.on_error(error(-32601))
    assert isinstance(sent, Send)
    params = json.loads(sent.params)
    assert (params["protocolVersion"], "_meta" in params) == (LEGACY, False)


def test_what_was_agreed_on_is_kept_as_the_server_wrote_it() -> None:
    negotiation = Negotiation(Identity(), None)
    negotiation.start()
    found = {**discovered(MODERN), "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "n"}}}
    settled = negotiation.on_result(msgspec.Raw(json.dumps(found).encode()))
    assert isinstance(settled, Agreement)
    assert json.loads(bytes(settled.capabilities)) == {"tools": {}}
    assert json.loads(bytes(settled.server_info)) == {"name": "n"}
    assert settled.instructions == "read me"


def test_texts_of_a_server_are_cut_before_they_become_reasons() -> None:
    negotiation = Negotiation(Identity(), "legacy")
    negotiation.start()
    refused = negotiation.on_error(ErrorObject(-1, "x" * 100_000))
    assert isinstance(refused, NoAgreement)
    assert len(refused.reason) < 300


@pytest.mark.parametrize("known", [None, "legacy"])
@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        pytest.param({"filler": "x" * 300_000}, "bytes, the limit is 262144", id="large"),
        pytest.param(json.loads('{"a":' * 70 + "1" + "}" * 70), "more than 64 levels", id="deep"),
    ],
)
def test_an_answer_that_is_too_large_or_too_deep_to_be_kept_is_refused_with_the_reason(
    known: Era | None, extra: dict[str, Any], reason: str
) -> None:
    negotiation = Negotiation(Identity(), known)
    negotiation.start()
    answer = initialized() if known == "legacy" else discovered(MODERN)
    answer["capabilities"] = {"tools": {}, "experimental": extra}
    action = negotiation.on_result(msgspec.Raw(json.dumps(answer).encode()))
    assert isinstance(action, NoAgreement)
    assert reason in action.reason


def test_what_is_kept_of_an_answer_does_not_keep_the_message_alive() -> None:
    negotiation = Negotiation(Identity(), "legacy")
    negotiation.start()
    message = json.dumps(initialized()).encode()
    result = msgspec.json.decode(message, type=msgspec.Raw)
    before = sys.getrefcount(message)
    action = negotiation.on_result(result)
    assert isinstance(action, Agreement)
    del result
    assert sys.getrefcount(message) == before - 1
