"""Every page that changes something is recorded, whatever becomes of it, and only an auditor reads the records."""

from __future__ import annotations

import re
from functools import partial
from typing import get_args

import pytest
import trio
from quart_trio import QuartTrio

from actors.errors import CallTimedOut, InvalidArguments, SupervisorError
from supervisor.front.pages.api import View
from supervisor.front.pages.app import create_app
from supervisor.front.pages.audit import AUDITED, outcome_of, record_orders
from supervisor.front.pages.servers import add_server_routes
from supervisor.front.ui.pages import add_ui_routes
from supervisor.front.wiring import ROUTES
from supervisor.identity.audit import ACTIONS, Outcome
from supervisor.identity.tokens import NotKept
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
    app = create_app()
    for add in (*ROUTES.values(), add_ui_routes):
        add(view(), app)
    changing = {
        f"{method} {re.sub(r'<any.*?:order>', '<order>', rule.rule)}"
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"GET", "HEAD", "OPTIONS"}
    }
    assert changing == AUDITED.keys() | ELSEWHERE.keys()
    assert not AUDITED.keys() & ELSEWHERE.keys()
    actions = {action.format(order=order) for action in AUDITED.values() for order in get_args(Order)}
    assert actions <= ACTIONS.keys()


def test_every_such_route_of_the_daemon_has_its_recorder() -> None:
    app, kept = create_app(), KeptAudit()
    for add in (*ROUTES.values(), add_ui_routes):
        add(view(), app)
    before = dict(app.view_functions)
    record_orders(app, kept)
    recorded = {name for name, page in app.view_functions.items() if page is not before[name]}
    assert recorded == {"add_server", "change_server", "remove_server", "order_server", "login", "logout"} | {
        *("approve", "give_value", "forget_value", "ui_approve", "ui_value", "revoke_consent"),
        *("drain", "publish_configuration"),
    }


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


def register(shown: View, kept: KeptAudit, app: QuartTrio) -> None:
    add_server_routes(shown, app)
    record_orders(app, kept)


async def test_an_order_that_nobody_waits_for_is_recorded_once() -> None:
    control, kept = Obeys(hangs=True), KeptAudit()
    async with running(dispatch(partial(register, view(control=control), kept))) as server:
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
