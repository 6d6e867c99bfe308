"""The pages of one server over the real application: orders, its row, its log; and that a foreign page gives none."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, get_args

import pytest
import trio
from werkzeug.datastructures import Headers

from actors.errors import MailboxFull, ServerDisabled, ServerGaveUp, ShuttingDown, SupervisorError
from actors.life.states import State
from supervisor.front.pages.app import create_app
from supervisor.front.pages.performing import add_operations
from supervisor.front.pages.view import View
from supervisor.servers.control import Order
from tests.fakes.control import Obeys
from tests.fakes.front_server import Running, dispatch, running
from tests.supervisor.front.pages.test_api import ask, page, status, view


@asynccontextmanager
async def pages(shown: View) -> AsyncIterator[Running]:
    async with running(dispatch(partial(add_operations, shown)), shown.closing) as server:
        yield server


def shown(control: Obeys) -> View:
    return view(status("a", State.READY, pid=7), control=control)


async def post(server: Running, path: str, *headers: bytes) -> tuple[int, Any]:
    lines = b"".join(header + b"\r\n" for header in headers)
    raw = await server.exchange(
        f"POST {path} HTTP/1.1\r\n".encode() + server.host + lines + b"Content-Length: 0\r\nConnection: close\r\n\r\n"
    )
    head, _, body = raw.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize("order", get_args(Order))
async def test_an_order_is_answered_with_a_sentence_and_the_row_of_the_server(order: Order) -> None:
    control = Obeys()
    async with pages(shown(control)) as server:
        code, body = await post(server, f"/api/servers/a/{order}")
    assert (code, body["message"], control.orders) == (200, f"{order} done", [("a", order)])
    assert (body["server"], body["order"]) == ("a", order)
    assert (body["status"]["state"], body["status"]["pid"]) == ("ready", 7)
    assert ("found" in body) == (order == "refresh")


async def test_a_name_with_spaces_and_dots_is_found() -> None:
    control = Obeys()
    async with pages(shown(control)) as server:
        assert (await post(server, "/api/servers/a%20b.c/wake"))[0] == 200
    assert control.orders == [("a b.c", "wake")]


async def test_an_unknown_server_is_404_with_the_nearest_names() -> None:
    control = Obeys()
    async with pages(shown(control)) as server:
        found = await page(server, "/api/servers/A", 404)
        assert found["error"]["data"]["nearest"] == ["a"]
        assert (await post(server, "/api/servers/A/restart"))[0] == 404
    assert control.orders == []


async def test_an_order_is_a_post() -> None:
    control = Obeys()
    async with pages(shown(control)) as server:
        for method in ("GET", "PUT", "OPTIONS"):
            code, headers, body = await ask(server, "/api/servers/a/restart", method)
            assert (code, headers["allow"]) == (405, "DELETE, PATCH, POST"), "the name of a server may have a slash"
            assert json.loads(body)["error"]["code"] == 405
    assert control.orders == []


@pytest.mark.parametrize(
    "origin", [b"https://evil.example", b"null", b"http://127.0.0.1:1", b"http://localhost.evil.example"]
)
async def test_a_page_of_another_origin_cannot_give_orders_by_a_simple_request(origin: bytes) -> None:
    control = Obeys()
    async with pages(shown(control)) as server:
        for content_type in (b"text/plain", b"application/x-www-form-urlencoded", b"application/json"):
            code, _ = await post(
                server, "/api/servers/a/disable", b"Origin: " + origin, b"Content-Type: " + content_type
            )
            assert code == 403
    assert control.orders == []


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
        for wrong in ("deadline_s=0", "deadline_s=x", "deadline=1"):
            assert (await post(server, f"/api/servers/a/sleep?{wrong}"))[0] == 400


async def test_one_server_has_a_page() -> None:
    async with pages(shown(Obeys())) as server:
        found = await page(server, "/api/servers/a")
    assert (found["server"], found["state"], found["since_s"], found["warnings"]) == ("a", "ready", 40.0, 0)


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


@pytest.mark.parametrize("client", ["127.0.0.1", "127.0.0.9", "::1", "::ffff:127.0.0.1", "198.51.100.1"])
async def test_an_order_from_this_machine_is_taken_by_whatever_address_it_comes(client: str) -> None:
    control = Obeys()
    code, _ = await order_from(control, client, [])
    assert (code, control.orders) == (200, [("a", "wake")])


async def order_from(control: Obeys, client: str, headers: list[tuple[bytes, bytes]]) -> tuple[int, Any]:
    """Give an order over a connection of this address to our own, 198.51.100.1, with a local `Host`."""
    app = create_app()
    add_operations(shown(control), app)
    named = Headers([("host", "127.0.0.1:3001"), *((name.decode(), value.decode()) for name, value in headers)])
    scope = {"client": (client, 1), "server": ("198.51.100.1", 3001)}
    with trio.fail_after(30):
        answer = await app.test_client().post("/api/servers/a/wake", headers=named, scope_base=scope)
        return answer.status_code, json.loads(await answer.get_data())


@pytest.mark.parametrize("order", ["login", "logout"])
async def test_a_login_where_no_server_has_one_says_which_have(order: str) -> None:
    async with running(dispatch(partial(add_operations, shown(Obeys()))), trio.Event()) as server:
        code, body = await post(server, f"/api/servers/a/{order}")
        unknown, _ = await post(server, f"/api/servers/b/{order}")
    assert (code, unknown) == (502, 404)
    assert body["error"]["message"].startswith("no login at 'a' is possible: only entries with a \"url\"")
