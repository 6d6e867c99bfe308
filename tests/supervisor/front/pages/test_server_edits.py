"""`/api/servers` over real sockets: who may change the configuration, and what becomes of a body."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest
from quart_trio import QuartTrio

from supervisor.config import parse
from supervisor.front.pages.performing import add_operations
from supervisor.identity.operator_key import OperatorKey
from supervisor.servers.deployment import deploy
from tests.fakes.control import Configured
from tests.fakes.front_server import Running, dispatch, running
from tests.supervisor.front.pages.test_api import view

KEY = "0123456789abcdef" * 4
NEW = json.dumps({"name": "n", "entry": {"command": "x"}}).encode()


class Asked:
    """Pages with a key, and what was wanted of their editor."""

    def __init__(self, token: str = KEY) -> None:
        self.editor = Configured()
        operator = OperatorKey(bytes.fromhex(token), b"boot", time.monotonic)
        self.view = view(operator=operator, token_file="/data/page.key", editor=self.editor)

    def served(self) -> Any:
        """Serve them for a block."""
        return running(dispatch(self._add), self.view.closing)

    def _add(self, app: QuartTrio) -> None:
        add_operations(self.view, app)


async def ask(
    server: Running, method: str, path: str, body: bytes = b"", *heads: bytes, key: bytes | None = KEY.encode()
) -> tuple[int, bytes, Any]:
    """Return status, head and JSON of an answer."""
    lines = [f"{method} {path} HTTP/1.1".encode(), server.host.strip(), b"Connection: close", *heads]
    lines += [b"Content-Length: %d" % len(body)]
    lines += [] if key is None else [b"Authorization: Bearer " + key]
    raw = await server.exchange(b"\r\n".join(lines) + b"\r\n\r\n" + body)
    head, _, content = raw.partition(b"\r\n\r\n")
    return int(head.split()[1]), head, json.loads(content)


ORDERS = [
    ("POST", "/api/servers", NEW),
    ("PATCH", "/api/servers/a", b'{"entry": {}}'),
    ("DELETE", "/api/servers/a", b""),
]


@pytest.mark.case("N12")
@pytest.mark.parametrize(("method", "path", "body"), ORDERS)
async def test_only_who_has_the_key_and_is_here_changes_anything(method: str, path: str, body: bytes) -> None:
    asked = Asked()
    async with asked.served() as server:
        for key in (None, b"", b"wrong", KEY[:-1].encode(), KEY.encode() + b"0", b"\xff\xfe"):
            status, head, answer = await ask(server, method, path, body, key=key)
            assert (status, answer["error"]["code"]) == (401, 401)
            assert b"www-authenticate: bearer" in head.lower()
            assert "page.key" in answer["error"]["message"]
        basic = b"Authorization: Basic " + KEY.encode()
        assert (await ask(server, method, path, body, basic, key=None))[0] == 401
        assert (await ask(server, method, path, body, b"X-Forwarded-For: 127.0.0.1"))[0] == 403
        assert (await ask(server, method, path, body, b"Origin: https://evil.example"))[0] == 403
        assert asked.editor.edits == []
        lower = b"authorization: bearer " + KEY.encode()
        assert (await ask(server, method, path, body, lower, key=None))[0] in (200, 201)
        assert len(asked.editor.edits) == 1


async def test_without_a_key_of_the_daemon_nobody_changes_anything() -> None:
    asked = Asked(token="")
    async with asked.served() as server:
        for key in (None, b"", KEY.encode()):
            assert (await ask(server, "POST", "/api/servers", NEW, key=key))[0] == 401
    assert asked.editor.edits == []


@pytest.mark.parametrize("entry", [b"", b"\xff", b"[" * 100_000 + b"]" * 100_000])
async def test_a_body_that_is_no_json_we_read_is_400(entry: bytes) -> None:
    asked = Asked()
    async with asked.served() as server:
        for method, path in (("POST", "/api/servers"), ("PATCH", "/api/servers/a")):
            status, _, answer = await ask(server, method, path, b'{"name": "n", "entry": {"a": ' + entry + b"}}")
            assert (status, "the body cannot be used" in answer["error"]["message"]) == (400, True), answer
    assert asked.editor.edits == []


async def test_a_body_over_every_bound_is_refused() -> None:
    asked = Asked()
    async with asked.served() as server:
        length = b"Content-Length: %d" % 2**40
        head = [b"POST /api/servers HTTP/1.1", server.host.strip(), length, b"Authorization: Bearer " + KEY.encode()]
        raw = await server.exchange(b"\r\n".join([*head, b"Connection: close"]) + b"\r\n\r\n")
    assert int(raw.split()[1]) == 413
    assert asked.editor.edits == []


async def test_what_is_wanted_arrives_as_it_was_said() -> None:
    asked = Asked()
    async with asked.served() as server:
        assert (await ask(server, "POST", "/api/servers", NEW))[0] == 201
        patch: dict[str, Any] = {"entry": {"cwd": None, "env": {"A": None, "B": "1"}, "args": []}}
        assert (await ask(server, "PATCH", "/api/servers/a%20b.c", json.dumps(patch).encode()))[0] == 200
        assert (await ask(server, "DELETE", "/api/servers/a"))[0] == 200
    assert asked.editor.edits == [
        ("add", "n", {"command": "x"}, False),
        ("change", "a b.c", patch["entry"]),
        ("remove", "a"),
    ]


async def test_the_key_is_on_no_page_and_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    asked = Asked()
    async with asked.served() as server:
        for method, path, body in ORDERS:
            for key in (KEY, KEY[:-1]):
                _, head, answer = await ask(server, method, path, body, key=key.encode())
                assert KEY[:32] not in head.decode("latin-1") + json.dumps(answer)
        for path in ("/api/configuration", "/api/status", "/api/status/debug"):
            _, _, answer = await ask(server, "GET", path)
            assert KEY[:32] not in json.dumps(answer)
    assert KEY[:32] not in caplog.text


async def test_the_page_of_the_configuration_says_where_each_value_of_a_server_comes_from() -> None:
    text = '{"mcpServers": {"a": {"command": "x", "env": {"WORD": "unlikely", "PORT": "80"}}, "a b.c": {}}}'
    asked = Asked()
    asked.view.deployment.set(deploy(parse(text, Path("/etc/mcp.json"), {"HOME": "/home/me"}), key=bytes(32)))
    async with asked.served() as server:
        status, _, whole = await ask(server, "GET", "/api/configuration")
        assert (status, "values" in whole) == (200, False)
        status, _, answer = await ask(server, "GET", "/api/configuration?server=a")
        rows = {each["key"]: each for each in answer["values"]}
        assert (status, answer["server"], rows["command"]["value"]) == (200, "a", "x")
        assert (rows["command"]["source"], rows["command"]["line"], rows["command"]["from"]) == (
            "file",
            1,
            "mcp.json:1",
        )
        assert (rows["env.PORT"]["value"], rows["env.WORD"]["value"]) == ("80", "***")
        assert rows["idle_timeout_s"]["from"] == "default"
        assert "unlikely" not in json.dumps(answer)
        assert (await ask(server, "GET", "/api/configuration?server=a%20b.c"))[2]["values"] == []
        assert (await ask(server, "GET", "/api/configuration?server=nobody"))[0] == 404
