"""What a record of the audit says, and how many records equal events make."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from actors.errors import InvalidArguments
from supervisor.identity.audit import (
    ACTIONS,
    GROUPS,
    MAX_DETAIL_CHARS,
    MAX_NAME_CHARS,
    MAX_TALLIED,
    OTHERS,
    AuditQuery,
    AuditRecord,
    Tallies,
    check_action,
    clean,
    record_of,
)
from supervisor.identity.operator_key import sign_pass
from supervisor.identity.people import Person
from supervisor.identity.requester import ANYBODY, MESSAGE_ID, THE_OPERATOR, Requester, RequestOrigin
from supervisor.identity.tokens import token_of

ANA = Requester(person=Person(user="ana", team="core", role="admin"), credential="0123456789ab")
SECRETS = st.one_of(
    st.integers(0, 2**256 - 1).map(token_of),
    st.binary(min_size=32, max_size=32).map(lambda key: sign_pass(key, "0" * 76, "127.0.0.1 1", "GET", "/")),
    st.binary(min_size=32, max_size=32).map(bytes.hex),
)
ADDRESSES = st.integers(0, 3 * MAX_TALLIED).map(lambda number: f"10.0.{number // 256}.{number % 256}")


ROOT = Path(__file__).parents[3]
IN_PARTS = (
    "token.",
    "server.",
    "value.",
    "configuration.publish",
    "tool.approve",
    "tool.ask_again",
    "login.begin",
    "login.forget",
    "audit.lose",
    "node.drain",
)
"""Actions that are put together, or stand in a table."""


def failed(time: float, address: str = "10.0.0.1", action: str = "credential.check") -> AuditRecord:
    return AuditRecord(time=time, action=action, outcome="refused", address=address)


def test_a_record_says_who_did_what_and_where_from() -> None:
    MESSAGE_ID.set(b'"call-7"')
    origin = RequestOrigin(ANA, "192.0.2.1", "/api/servers/a/restart")
    record = record_of(origin, 5.0, "server.restart", "a", "failed", "it did not come up")
    MESSAGE_ID.set(b"")
    assert asdict(record) == {
        "id": None,
        "time": 5.0,
        "action": "server.restart",
        "outcome": "failed",
        "principal": "user:ana:core",
        "user": "ana",
        "team": "core",
        "role": "admin",
        "credential": "0123456789ab",
        "address": "192.0.2.1",
        "door": "/api/servers/a/restart",
        "target": "a",
        "detail": "it did not come up",
        "request": '"call-7"',
        "count": 1,
    }


def test_the_operator_a_stranger_and_the_daemon_itself_are_told_apart() -> None:
    origins = (RequestOrigin(THE_OPERATOR, "::1"), RequestOrigin(ANYBODY, "::1"), RequestOrigin(address="::1"), None)
    records = [record_of(origin, 0.0, "daemon.stop", "", "done", "") for origin in origins]
    assert [(each.principal, each.role, each.address) for each in records] == [
        ("local", "admin", "::1"),
        ("", "", "::1"),
        ("", "", "::1"),
        ("", "", ""),
    ]


@given(before=st.text(max_size=400), secret=SECRETS, after=st.text(max_size=400), most=st.integers(3, 300))
def test_no_text_has_a_credential_or_more_than_its_bound(before: str, secret: str, after: str, most: int) -> None:
    shown = clean(f"{before} {secret} {after}", most)
    assert len(shown) <= most
    assert shown.isprintable()
    assert secret[-20:] not in shown
    assert secret[5:25] not in shown


@given(text=st.text(max_size=1000))
def test_every_text_of_a_record_is_bounded_and_can_be_kept(text: str) -> None:
    person = Person(user="ana")
    origin = RequestOrigin(Requester(person=person), text, text)
    record = record_of(origin, 0.0, "daemon.stop", text, "done", text)
    assert max(len(record.address), len(record.door), len(record.target)) <= MAX_NAME_CHARS
    assert len(record.detail) <= MAX_DETAIL_CHARS
    assert all(str(value).encode() is not None for value in asdict(record).values())


def test_half_a_pair_of_surrogates_can_be_kept() -> None:
    assert record_of(None, 0.0, "daemon.stop", "a\ud800b", "done", "\x1b[2J").target == "a?b"


@given(events=st.lists(st.tuples(st.floats(0, 600), ADDRESSES), max_size=400))
def test_every_event_is_counted_once_whatever_the_clock_does(events: list[tuple[float, str]]) -> None:
    tallies = Tallies()
    records: list[AuditRecord] = []
    for moment, address in events:
        records += tallies.add(failed(moment, address))
        records += tallies.over(moment)
    records += tallies.take()
    assert sum(record.count for record in records) == len(events)
    assert tallies.take() == []
    for address in {address for _, address in events}:
        named = sum(record.count for record in records if record.address == address)
        assert named <= sum(each == address for _, each in events)


@given(addresses=st.lists(ADDRESSES, max_size=600))
def test_so_many_addresses_of_a_minute_are_named_and_the_others_share_a_record(addresses: list[str]) -> None:
    tallies = Tallies()
    assert [over for address in addresses for over in tallies.add(failed(61.0, address))] == []
    records = tallies.take()
    named = list(dict.fromkeys(addresses))[:MAX_TALLIED]
    assert [record.address for record in records if record.address] == named
    others = [record.count for record in records if record.detail == OTHERS]
    assert others == ([sum(each not in named for each in addresses)] if set(addresses) - set(named) else [])
    assert len(records) <= MAX_TALLIED + 1


def test_one_action_takes_no_record_from_another() -> None:
    tallies = Tallies()
    for number in range(MAX_TALLIED + 1):
        tallies.add(failed(0.0, f"10.0.0.{number}"))
    tallies.add(failed(0.0, "10.1.1.1", "page.ask"))
    assert ("page.ask", "10.1.1.1") in {(each.action, each.address) for each in tallies.take()}


def test_a_minute_is_over_with_the_next_event_or_by_the_clock() -> None:
    tallies = Tallies()
    assert tallies.add(failed(59.0)) == tallies.add(failed(59.9)) == tallies.over(59.9) == []
    assert tallies.add(failed(60.0)) == [replace(failed(59.0), count=2)]
    assert tallies.over(120.0) == [failed(60.0)]
    assert tallies.over(300.0) == []


def test_a_filter_that_means_nothing_says_what_there_is() -> None:
    for action in ("", *ACTIONS, *GROUPS):
        check_action(action)
    for action in ("token.", "Token", "token.creat", "*", "token.create,token.revoke"):
        with pytest.raises(InvalidArguments, match=r"write one of audit, .*token\.create"):
            check_action(action)


@pytest.mark.parametrize(
    ("query", "taken"),
    [
        (AuditQuery(), True),
        (AuditQuery(user="ana"), True),
        (AuditQuery(user="an"), False),
        (AuditQuery(action="token.create"), True),
        (AuditQuery(action="token"), True),
        (AuditQuery(action="tok"), False),
        (AuditQuery(since=5.0), True),
        (AuditQuery(since=5.1), False),
        (AuditQuery(before=8), True),
        (AuditQuery(before=7), False),
    ],
)
def test_a_query_takes_what_is_wanted(query: AuditQuery, taken: bool) -> None:
    assert query.takes(AuditRecord(id=7, time=5.0, action="token.create", user="ana")) is taken


def test_what_is_recorded_are_the_actions_that_there_are() -> None:
    call = re.compile(r'\.(?:note|tally)\(\s*"([^"]+)"[,)]')
    files = (file.read_text(encoding="utf-8") for file in (ROOT / "supervisor").rglob("*.py"))
    recorded = {action for text in files for action in call.findall(text)}
    assert recorded == {action for action in ACTIONS if not action.startswith(IN_PARTS)}
