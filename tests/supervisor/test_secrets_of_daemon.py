"""A secret in every place that can have one, and everything that a daemon ever says: no secret is in any of it.

Two servers spill what they are given wherever a server can say something (`tests/fakes/spilling_server.py`). The pages
and doors that are asked are those of the code, as in `test_admission_of_daemon.py`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import ssl
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
import trio

from docs.admission import DOORS, PERSONAL
from docs.routes import page_routes
from supervisor.config import load
from supervisor.front.dispatch import WEBSOCKET_PATH
from supervisor.host.datadir import DataDir, open_data_dir
from supervisor.host.logs import logging_to_stderr
from supervisor.service.doors.addresses import PERSONAL_PATH
from tests.fakes import spilling_server
from tests.fakes.certificates import certificate
from tests.fakes.identity_provider import ISSUER, MemoryProvider, signed
from tests.fakes.spilling_server import TOOLS, SpillingServer
from tests.fakes.websocket_client import open_websocket
from tests.scenario.daemon import World, running
from tests.supervisor.commands.test_cli import ask, invoke
from tests.supervisor.test_admission_of_daemon import path_of, provided
from tests.supervisor.test_providers_of_daemon import PUBLIC

__all__ = ["provided"]
pytestmark = pytest.mark.process

PLACES = (
    *(
        "entry env",
        "variable",
        "argument",
        "user in file",
        "team in file",
        "user given",
        "user given too",
        "team given",
    ),
    *("broken env", "header", "query", "user header", "user query"),
    *("login client", "login code", "login access", "login refresh"),
    *("provider client", "provider opaque"),
)
SERVERS = ("desk", "maps", "guarded", "broken")
GIVEN = {
    "desk": (
        *("entry env", "variable", "argument", "user in file", "team in file"),
        *("user given", "user given too", "team given"),
    ),
    "maps": ("header", "query", "user header", "user query"),
    "guarded": ("login client", "login code", "login access"),
    "broken": ("broken env",),
}
"""Which secrets each server is given; `guarded` is its own issuer."""


class Canaries:
    """A secret for each place: random to whoever does not know the directory of the test."""

    def __init__(self, directory: Path) -> None:
        self.of = {place: hashlib.sha256(f"{directory}{place}".encode()).hexdigest()[:24] for place in PLACES}

    def __getitem__(self, place: str) -> str:
        return self.of[place]


def forms(secret: str) -> Iterator[str]:
    yield secret
    yield secret.encode().hex()
    yield base64.b64encode(secret.encode()).decode().rstrip("=")


def is_in(secret: str, text: str) -> bool:
    return any(form in text for form in forms(secret))


class Said:
    """Everything that was said, each with where."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, str]] = []

    def add(self, where: str, text: str) -> None:
        self.texts.append((where, text))

    def answer(self, who: str | None, answer: httpx2.Response) -> httpx2.Response:
        head = "".join(f"{name}: {value}\n" for name, value in answer.headers.items())
        self.add(f"{answer.request.method} {answer.request.url.raw_path.decode()} of {who}", f"{head}{answer.text}")
        return answer

    def files(self, root: Path) -> None:
        """Add what is written there; each key is in a file of its own."""
        for file in root.rglob("*"):
            if file.is_file() and file.suffix != ".key":
                self.add(file.name, file.read_bytes().decode("latin-1"))

    def places_of(self, secret: str) -> list[str]:
        return [where for where, text in self.texts if is_in(secret, text)]


def configured(
    directory: Path, canaries: Canaries, far: SpillingServer, guarded: SpillingServer, **settings: Any
) -> dict[str, Any]:
    script = spilling_server.__file__
    desk_env = {
        "PLAIN": canaries["entry env"],
        "TAKEN": "${DESK_VARIABLE}",
        "KEY": "${team:KEY}",
        "OTHER": "${team:OTHER:-}",
        "PIN": "${user:PIN:-}",
        "TOKEN": "${user:TOKEN}",
        "PYTHONPATH": os.fspath(Path(script).parents[2]),
    }
    arguments = [script, os.fspath(directory / "desk.txt"), "--password", canaries["argument"]]
    users = {"ana": {"role": "admin", "subject": "1"}, "ben": {"subject": "2"}, "cem": {"role": "auditor"}}
    asking = {"client_id": "us", "client_secret": canaries["provider client"]}
    return {
        "mcpServers": {
            "desk": {
                "command": sys.executable,
                "args": arguments,
                "env": desk_env,
                "values": {"OTHER": {"hidden": True}},
            },
            "maps": {
                "url": f"{far.base}/mcp?key={canaries['query']}&more=${{user:MORE:-}}",
                "headers": {"X-Own": canaries["header"], "Authorization": "Bearer ${user:MAPS}"},
            },
            "broken": {
                "command": sys.executable,
                "args": [script, os.fspath(directory / "broken.txt"), "--fail"],
                "env": {"API_KEY": canaries["broken env"], "PYTHONPATH": desk_env["PYTHONPATH"]},
                "max_restarts": 0,
            },
            "guarded": {
                "url": f"{guarded.base}/mcp",
                "oauth": {"client_id": "us", "client_secret": canaries["login client"]},
            },
        },
        "supervisor": {
            "auth": "both",
            "show_debug": True,
            "public_url": PUBLIC,
            "drain_s": 0.2,
            "log_level": "debug",
            **settings,
            "identity": {
                "users": {**users, "ben": {**users["ben"], "values": {"desk": {"PIN": canaries["user in file"]}}}},
                "teams": {"core": {"members": ["ana", "ben"], "values": {"desk": {"KEY": canaries["team in file"]}}}},
                "issuers": [{"issuer": ISSUER, "introspection": asking}],
            },
        },
    }


class Rig:
    """A daemon with secrets, those who ask it, and what it said."""

    def __init__(self, at: World, tls: ssl.SSLContext | None, said: Said, canaries: Canaries) -> None:
        self.at = at
        self.tls = tls
        self.said = said
        self.canaries = canaries

    async def ask(self, who: str | None, method: str, path: str, **more: Any) -> httpx2.Response:
        return self.said.answer(who, await self.at[who].ask(method, path, **more))

    async def rpc(self, who: str | None, door: str, method: str, **params: Any) -> httpx2.Response:
        return await self.ask(who, "POST", door, json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})

    async def give(self) -> None:
        """Have people give values, each by their own way."""
        for who, place, canary in (
            ("ben", "user/ben/desk/TOKEN", "user given"),
            ("ana", "user/ana/desk/TOKEN", "user given too"),
            ("ana", "team/core/desk/OTHER", "team given"),
            ("ben", "user/ben/maps/MAPS", "user header"),
            ("ben", "user/ben/maps/MORE", "user query"),
            ("ben", "user/ana/desk/TOKEN", "user given"),
            ("ben", "user/ben/desk/NONE", "user given"),
            ("ben", "user/ben/desk/PIN", "user given"),
        ):
            value, path = self.canaries[canary], f"/api/values/{place}"
            await self.ask(who, "PUT", path, json={"value": value})
            for wrong in ([value], f"{value}\n", {value: value}, *([f"{value}é"] if "header" in canary else [])):
                assert (await self.ask(who, "PUT", path, json={"value": wrong})).status_code >= 400
            await self.ask(who, "PUT", path, json={value: 1})
            await self.ask(who, "PUT", path, content=value)

    async def log_in(self) -> None:
        begun = (await self.ask("ana", "POST", "/api/servers/guarded/login")).json()
        query = {name: values[0] for name, values in parse_qs(urlsplit(begun["url"]).query).items()}
        state = {"state": query["state"], "code": self.canaries["login code"]}
        page = await self.ask(None, "GET", "/oauth/callback", params=state)
        code = re.search(r"<code>(.+?)</code>", page.text)
        assert code is not None
        await self.ask(None, "GET", "/oauth/callback", params=state)
        for answer in ("WRNG-CODE", code[1]):
            given = await self.ask("ana", "POST", f"/api/logins/{begun['login']}/answer", json={"answer": answer})
        assert given.json()["state"] == "done"

    async def ask_pages(self, who: str | None, servers: Sequence[str] = SERVERS) -> None:
        """Ask for every page, as far as it is about a server about each of some."""
        for route in sorted(page_routes().keys() - {"DELETE /api/servers/{server}"}):
            for server in servers if "{server}" in route else ("desk",):
                method, path = path_of(route, who or "ben")
                if method == "WS" or path.endswith(("/logout", "/disable")):
                    continue
                path = path.replace("spare", server).replace("nowhere", server)
                await self.ask(who, method, path, **({"json": {}} if method != "GET" else {}))
        for server in servers:
            await self.ask(who, "GET", f"/api/configuration?server={server}")

    async def ask_doors(self, who: str | None, servers: Sequence[str] = SERVERS) -> None:
        """Use every door as a client does, down to each failure of the servers behind it. Cargo is asked for last."""
        for door in sorted({*DOORS} - {WEBSOCKET_PATH}):
            for server in servers if "{server}" in door else ("desk",):
                path = door.replace("{server}", server)
                for method in ("initialize", "tools/list", "resources/list", "prompts/list", "resources/read", "x/y"):
                    await self.rpc(who, path, method, protocolVersion="2025-11-25", uri="file:///a")
                await self.ask(who, "GET", path)
                if "{server}" in door:
                    for name in sorted({*TOOLS} - {"cargo"}):
                        await self.rpc(who, path, "tools/call", name=name, arguments={})
        for server in servers:
            for name in sorted({*TOOLS} - {"cargo"}):
                await self.rpc(who, "/mcp/all", "tools/call", name=f"{server}__{name}", arguments={})
                call = {"tool_path": f"{server}:{name}", "arguments": {}}
                await self.rpc(who, "/mcp", "tools/call", name="execute_mcp_tool", arguments=call)
        await self.rpc(who, "/mcp", "tools/call", name="discover_mcp_tools", arguments={"query": "*"})

    async def ask_personal(self) -> None:
        """Use the personal address of a server, and others with its token."""
        token = self.at.keys["personal"]
        for path in (PERSONAL.replace("{server}", "desk"), "/i/none/mcp", f"/i/{token}/mcp", "/i/x", "/mcp", "/api/me"):
            for who in (None, "ben"):
                for method in ("initialize", "tools/list", "tools/call"):
                    await self.rpc(who, f"{path}?token={token}", method, protocolVersion="2025-11-25", name="spill")
                if path.startswith(PERSONAL_PATH):
                    await self.ask(who, "GET", f"{path}?token={token}&profile={token}")

    async def follow(self, path: str, *, task_status: trio.TaskStatus[None]) -> None:
        """Note what a WebSocket of the pages tells, until cancelled."""
        headers = [("authorization", f"Bearer {self.at.keys['operator']}")]
        async with open_websocket(self.at.http.base_url.port or 0, path, headers, self.tls) as socket:
            task_status.started()
            while True:
                self.said.add(f"WS {path}", str(await socket.get_message()))

    async def run_commands(self, file: Path) -> None:
        """Give every command that shows something."""
        url = str(self.at.http.base_url)
        for command in (*COMMANDS, ("explain", "desk", "--user", "ben", "--config", str(file))):
            shown = await ask(url, *command)
            assert shown.exit_code == (1 if command[0] == "call" else 0), shown.output
            self.said.add(f"mcpvisor {' '.join(command)}", f"{shown.output} {shown.exception!r}")


COMMANDS = (
    *(("status",), ("status", "--json"), ("tools",), ("tokens",), ("me",), ("audit",), ("token", "list"), ("approve",)),
    *(
        ("logs",),
        ("logs", "desk"),
        ("logs", "maps"),
        ("config", "list", "--user", "ben"),
        ("config", "list", "--team", "core"),
    ),
    *(("history", "guarded:spill"), ("search", "*"), ("call", "desk:spill", "{}"), ("diff",), ("reload",)),
)
OFFLINE = (("check",), ("explain", "desk", "--config"))
"""What reads the file, which is the last argument."""


@asynccontextmanager
async def scene(data: DataDir, canaries: Canaries, said: Said, config: dict[str, Any]) -> AsyncIterator[Rig]:
    path = data.root.parent / "mcp.json"
    path.write_text(json.dumps(config, indent=1))
    environ = {"PATH": os.environ["PATH"], "DESK_VARIABLE": canaries["variable"]}

    def read(file: str, change: Any) -> Any:
        return load(Path(file or path), environ, change=change)

    certified = config["supervisor"].get("tls_certificate")
    tls = ssl.create_default_context(cafile=certified) if certified else None
    async with running(load(path, environ), data, 300, read) as client, trio.open_nursery() as nursery:
        at = World(client, data)
        await at.operator.ready()
        await at.admit("ben", server="desk")
        at.keys["personal"] = at.keys["ben"]
        for user, role in (("ana", "admin"), ("ben", "member"), ("cem", "auditor")):
            await at.admit(user, role=role)
        rig = Rig(at, tls, said, canaries)
        for followed in ("/api/events", "/api/servers/desk/logs?after=0", "/api/servers/maps/logs?after=0"):
            await nursery.start(rig.follow, followed)
        yield rig
        nursery.cancel_scope.cancel()


@pytest.mark.case("I15", "I16")
async def test_no_secret_is_in_anything_that_a_daemon_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provided: MemoryProvider
) -> None:
    canaries, said = Canaries(tmp_path), Said()
    pem, _ = certificate(tmp_path)
    tls = {"tls_certificate": str(pem), "tls_key": str(tmp_path / "key.pem")}
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    monkeypatch.setenv("DESK_VARIABLE", canaries["variable"])
    now = time.time()
    opaque, access, refresh = (canaries[place] for place in ("provider opaque", "login access", "login refresh"))
    provided.said[opaque] = {"active": True, "sub": "2", "aud": f"{PUBLIC}/mcp", "scope": "mcp:read", "exp": now + 600}
    shown = {"signed": signed(sub="1", iat=now, exp=now + 600), "opaque": opaque}
    log = tmp_path / "log.txt"
    with (
        open_data_dir(tmp_path / "data", {}) as data,
        log.open("wb") as written,
        logging_to_stderr("debug", written.fileno()),
    ):
        async with SpillingServer().running() as far, SpillingServer(guarded=access).running() as guarded:
            token = {"access_token": access, "token_type": "Bearer", "refresh_token": refresh, "expires_in": 600}
            guarded.pages["/token"].body = token
            async with scene(data, canaries, said, configured(tmp_path, canaries, far, guarded)) as rig:
                rig.at.keys |= shown
                await rig.give()
                await rig.log_in()
                await rig.ask_personal()
                for who in ("ben", "ana"):
                    await rig.ask_doors(who)
                    await rig.ask_pages(who)
                for other in ("operator", "signed", "opaque", "cem", None):  # is shown what one of them was, or less
                    await rig.ask_doors(other, ("desk",))
                    await rig.ask_pages(other, SERVERS if other == "cem" else ("desk",))
                said.files(data.root)
                cargo = [
                    await rig.at[who].at("/mcp/all").send("tools/call", name="desk__cargo") for who in ("ben", "ana")
                ]
                keys = {f"the token of {who}": key for who, key in rig.at.keys.items()}
            async with scene(data, canaries, said, configured(tmp_path, canaries, far, guarded, **tls)) as rig:
                keys |= {f"the later token of {who}": key for who, key in rig.at.keys.items()}
                monkeypatch.setenv("MCPVISOR_TOKEN", rig.at.keys["ana"])
                await rig.run_commands(tmp_path / "mcp.json")
                await rig.ask_pages("ana")
                for where, text in command_lines():
                    said.add(where, text)
    said.add("log", log.read_text())
    said.files(data.root)
    for command in OFFLINE:
        explained = invoke(*command, str(tmp_path / "mcp.json"))
        assert explained.exit_code == 0, explained.output
        said.add(" ".join(command), explained.output)
    desk, broken = ((tmp_path / name).read_text() for name in ("desk.txt", "broken.txt"))
    received = {
        "desk": desk,
        "broken": broken,
        "maps": "".join(f"{each.path} {each.headers} {each.body!r}" for each in far.requests),
        "guarded": "".join(f"{each.path} {each.headers} {each.body!r}" for each in guarded.requests),
    }
    secrets = {
        **canaries.of,
        **keys,
        **own_secrets(tmp_path, data),
    }
    found = {place: places for place, secret in secrets.items() if (places := said.places_of(secret))}
    seen = {*found.pop("argument")}
    assert seen == {"the command line of the server"}, "whoever writes a secret into `args` shows it to the machine"
    assert found == {}
    for server, given in GIVEN.items():
        assert {place for place, secret in canaries.of.items() if is_in(secret, received[server])} == {*given}, server
    assert is_in(canaries["provider client"], str(provided.headers)), "who issued a token may be asked about it"
    assert [place for place, key in keys.items() if key in "".join(received.values())] == []
    for line in desk.splitlines():
        whose = {place for place in ("user given", "user given too", "user in file") if canaries[place] in line}
        assert whose in (set(), {"user given", "user in file"}, {"user given too"}), "each has a process of their own"
    assert all(canaries["entry env"] in each.text for each in cargo), "a result is for whoever called"
    assert {"store.sqlite3", "store.sqlite3-wal"} <= {where for where, _ in said.texts}
    assert len(said.texts) > 1000
    assert sum("***" in text for _, text in said.texts) > 100


def own_secrets(directory: Path, data: DataDir) -> dict[str, str]:
    """Keys of the daemon, and that of its certificate."""
    lines = (directory / "key.pem").read_text().splitlines()[1:-1]
    pem = {f"line {number} of the key of the certificate": line for number, line in enumerate(lines)}
    return {**pem, **{file.name: file.read_bytes().hex() for file in data.root.glob("*.key")}}


def command_lines() -> Iterator[tuple[str, str]]:
    """The arguments of all processes of this machine, each with whose they are."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "cmdline").read_bytes().decode("latin-1")
        except OSError:  # it has ended
            continue
        yield "the command line of " + ("the server" if spilling_server.__file__ in text else "another program"), text
