"""Every page that changes something is recorded, whatever becomes of it, and only an auditor reads the records."""

from __future__ import annotations

from functools import partial
from typing import get_args

import pytest
import trio

from actors.errors import CallTimedOut, InvalidArguments, SupervisorError
from supervisor.front.pages.performing import add_operations, outcome_of
from supervisor.identity.audit import ACTIONS, Outcome
from supervisor.identity.tokens import NotKept
from supervisor.operations import DASHBOARD, SUBJECTS
from supervisor.servers.control import Order
from tests.fakes.control import Obeys
from tests.fakes.front_server import dispatch, running
from tests.fakes.kept_audit import KeptAudit
from tests.supervisor.front.pages.test_api import view

ELSEWHERE = {
    "POST /api/reload": "a reading of the configuration records itself, whoever wanted it",
    "POST /api/access-tokens": "the table of tokens records what becomes of them",
    "DELETE /api/access-tokens/<id_>": "the table of tokens records what becomes of them",
    "POST /ui/tokens": "the table of tokens records what becomes of them",
    "POST /ui/tokens/<id_>/revoke": "the table of tokens records what becomes of them",
    "POST /api/logins/<login>/answer": "a login records its end, and what was wrong before",
    "POST /api/tickets": "a ticket is worth what the credential is worth, and gone in half a minute",
    "POST /ui/servers/<server>/<order>": "the order itself is recorded, as one that is given there",
    "POST /ui/tool": "a call is recorded as any call",
    "POST /ui/tool/answer": "it goes on with a call, which is recorded as any call",
    "POST /ui/sign-in": "what is done with it is recorded, and so are wrong tokens",
    "POST /ui/sign-out": "it changes nothing but who that browser is",
    "POST /questions/<question>": "a question records its answer, wherever that is given",
    "POST /api/questions/<question>": "a question records its answer, wherever that is given",
}
"""Routes that change something, and what records it."""


def test_every_route_that_changes_something_is_recorded() -> None:
    every = [*(each for subject in SUBJECTS.values() for each in subject), *DASHBOARD.values()]
    changing = {each.route for each in every if each.method != "GET"}
    recorded = {each.route: each.audit for each in every if each.audit}
    assert changing == recorded.keys() | ELSEWHERE.keys()
    assert not recorded.keys() & ELSEWHERE.keys()
    actions = {action.format(order=order) for action in recorded.values() for order in get_args(Order)}
    assert actions <= ACTIONS.keys()


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (InvalidArguments("no"), "refused"),
        (NotKept("no"), "failed"),
        (SupervisorError("no"), "failed"),
        (CallTimedOut("no", outcome="unknown"), "unknown"),
        (CallTimedOut("no"), "failed"),
    ],
)
def test_how_an_action_ended_is_said_by_its_error(error: SupervisorError, outcome: Outcome) -> None:
    assert outcome_of(error) == outcome


async def test_an_order_that_nobody_waits_for_is_recorded_once() -> None:
    control, kept = Obeys(hangs=True), KeptAudit()
    async with running(dispatch(partial(add_operations, view(control=control, trail=kept)))) as server:
        head = b"POST /api/servers/a/restart?deadline_s=0.1 HTTP/1.1\r\nConnection: close\r\n" + server.host + b"\r\n"
        assert b" 504 " in (await server.exchange(head))[:20]
        assert kept.notes == [("server.restart", "a", "unknown", "")]
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        await stream.send_all(b"POST /api/servers/a/sleep HTTP/1.1\r\n" + server.host + b"\r\n")
        while len(control.orders) < 2:  # noqa: ASYNC110 - the page tells nobody that it waits
            await trio.sleep(0.01)
        await stream.aclose()
        with trio.fail_after(20):
            while len(kept.notes) < 2:  # noqa: ASYNC110 - nor that its client has left
                await trio.sleep(0.01)
        assert kept.notes[1:] == [("server.sleep", "a", "unknown", "")]
        assert [origin is not None and origin.address for origin in kept.origins] == ["127.0.0.1"] * 2
