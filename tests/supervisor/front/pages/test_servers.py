"""Orders for a server over the real application: how they fail, and from where they are taken.

What they say when all is well, and when something is misspelt, is recorded: `tests/recording`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from werkzeug.datastructures import Headers

from actors.errors import MailboxFull, ServerDisabled, ServerGaveUp, ShuttingDown, SupervisorError
from actors.life.states import State
from supervisor.front.pages.app import create_app
from supervisor.front.pages.performing import add_operations
from supervisor.front.pages.view import View
from tests.fakes.control import Obeys
from tests.fakes.front_server import Running
from tests.supervisor.front.pages.test_api import pages, status, view


def shown(control: Obeys) -> View:
    return view(status("a", State.READY, pid=7), control=control)


async def post(server: Running, path: str, *headers: bytes) -> tuple[int, Any]:
    lines = b"".join(header + b"\r\n" for header in headers)
    raw = await server.exchange(
        f"POST {path} HTTP/1.1\r\n".encode() + server.host + lines + b"Content-Length: 0\r\nConnection: close\r\n\r\n"
    )
    head, _, body = raw.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


async def test_a_name_with_spaces_and_dots_is_found() -> None:
    control = Obeys()
    async with pages(shown(control)) as server:
        assert (await post(server, "/api/servers/a%20b.c/wake"))[0] == 200
    assert control.orders == [("a b.c", "wake")]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ServerGaveUp("it died"), 502),
        (ServerDisabled("it is off"), 409),
        (MailboxFull(), 503),
        (ShuttingDown(), 503),
    ],
)
async def test_a_failure_is_typed_and_in_words(error: SupervisorError, code: int) -> None:
    async with pages(shown(Obeys(error))) as server:
        found = await post(server, "/api/servers/a/restart")
    assert found == (code, {"error": {"code": code, "message": error.message, "data": error.data()}})


async def test_an_order_that_takes_too_long_is_not_waited_for_and_goes_on() -> None:
    async with pages(shown(Obeys(hangs=True))) as server:
        code, body = await post(server, "/api/servers/a/sleep?deadline_s=0.1")
        assert code == 504
        assert "not done after 0.1 s; it goes on" in body["error"]["message"]


# From where ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "headers"),
    [
        ("192.0.2.7", []),
        ("2001:db8::7", []),
        ("not-an-address", []),
        ("127.0.0.1", [(b"x-forwarded-for", b"192.0.2.7")]),
        ("127.0.0.1", [(b"forwarded", b"for=192.0.2.7")]),
    ],
)
async def test_an_order_from_another_machine_is_refused_whatever_host_it_names(
    client: str, headers: list[tuple[bytes, bytes]]
) -> None:
    control = Obeys()
    code, body = await order_from(control, client, headers)
    assert (code, control.orders) == (403, [])
    assert "from the machine only that the daemon runs on" in body["error"]["message"]


async def order_from(control: Obeys, client: str, headers: list[tuple[bytes, bytes]]) -> tuple[int, Any]:
    """Give an order over a connection of this address to our own, 198.51.100.1, with a local `Host`."""
    app = create_app()
    add_operations(shown(control), app)
    named = Headers([("host", "127.0.0.1:3001"), *((name.decode(), value.decode()) for name, value in headers)])
    scope = {"client": (client, 1), "server": ("198.51.100.1", 3001)}
    with trio.fail_after(30):
        answer = await app.test_client().post("/api/servers/a/wake", headers=named, scope_base=scope)
        return answer.status_code, json.loads(await answer.get_data())
