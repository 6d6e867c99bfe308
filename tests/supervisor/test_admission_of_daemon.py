"""Every address of a daemon, by every method, transport and revision, with every kind of credential: who is answered.

What is expected is the table of `docs/admission.py`. The addresses are those of the code, so a new one fails here until
it has its row there.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2
import pytest
from msgspec import Struct
from trio_websocket import ConnectionRejected

from actors.kit import first_of
from actors.protocol.agreement.versions import LATEST_LEGACY, LATEST_MODERN, LEGACY_VERSIONS, MODERN_VERSIONS
from docs.admission import COLUMNS, DOORS, LOGS, PERSONAL, ROWS, WITH_THE_KEY, Row, Shown, row
from docs.routes import page_routes
from supervisor.front import admission
from supervisor.front.dispatch import WEBSOCKET_PATH
from supervisor.front.pages.app import NO_PAGE
from supervisor.front.pages.requests import may_ask
from supervisor.host.datadir import DataDir
from supervisor.identity import requester as requester_module
from supervisor.identity.people import Person
from supervisor.identity.requester import Requester
from supervisor.identity.tokens import new_token
from supervisor.oauth.bearer import verifier
from supervisor.oauth.bearer.verifier import IdentityProvider
from supervisor.operations import DASHBOARD, ROLES, SUBJECTS, role_for
from supervisor.service.doors import addresses
from tests.fakes.http_client import modern, modern_headers
from tests.fakes.identity_provider import EC, ISSUER, NOW, MemoryProvider, signed
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.websocket_client import open_websocket
from tests.scenario.client import message
from tests.scenario.daemon import World, world
from tests.supervisor.test_providers_of_daemon import PUBLIC, challenge

SERVERS: dict[str, Any] = {
    "clock": {"command": "x"},
    "spare": {"command": "x"},
    "vault": {"command": "x", "users": ["dan"]},
}
PEOPLE = {"ana": ("admin", "1"), "ben": ("member", "2"), "cem": ("auditor", "3"), "dan": ("member", "4")}
IDENTITY: dict[str, Any] = {name: {"role": role, "subject": subject} for name, (role, subject) in PEOPLE.items()}
SETTINGS: dict[str, Any] = {"show_debug": True, "public_url": PUBLIC, "profiles": {"small": {"servers": ["clock"]}}}
SMALL = "?profile=small"
VERSIONS = (*LEGACY_VERSIONS, *MODERN_VERSIONS)
NEWEST = (LATEST_LEGACY, LATEST_MODERN)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
FILLED = {
    "question": "1",
    "login": "1",
    "id_": "0" * 12,
    "anything": "openid-configuration",
    "tier": "user",
    "name": "X",
    "mark": "1",
    "order": "sleep",
    "namespace": ".".join(reversed((urlsplit(PUBLIC).hostname or "").split("."))),
    "entry": "mcp",
    "version": "latest",
}
CALLS, HIDDEN, OTHERS = "doors: calls of tools", "the door of a server of others", "values of others"


ELSEWHERE = ("a token of a daemon", "one of a provider")
"""What is right where `auth` is another."""

CHALLENGE = re.compile(rb'"(challenge|proof)":"[0-9a-f]+",?')
"""Whoever has nothing is given another one each time."""


class Credential(Struct, frozen=True):
    """What somebody shows. `user`: whose it is."""

    what: str
    column: Shown
    headers: tuple[tuple[str, str], ...] = ()
    token: str = ""
    """In the query."""
    user: str = "ben"

    def column_at(self, path: str) -> Shown:
        """The column that holds at an address: a token in the query is nothing to any but a personal one."""
        return "nothing" if self.token and not path.startswith("/i/") else self.column

    def at(self, path: str) -> str:
        more = urlencode({"token": self.token}) if self.token else ""
        return f"{path}{'&' if '?' in path else '?'}{more}" if more else path


def bearer(what: str, column: Shown, token: str, user: str = "ben") -> Credential:
    return Credential(what, column, (("authorization", f"Bearer {token}"),), user=user)


@pytest.fixture
def provided(monkeypatch: pytest.MonkeyPatch) -> MemoryProvider:
    """An identity provider, and nobody is slowed down who shows one wrong token after the other."""
    provider = MemoryProvider()
    make = IdentityProvider
    monkeypatch.setattr(verifier, "IdentityProvider", lambda issuer, nursery: make(issuer, nursery, provider))
    monkeypatch.setattr(requester_module, "BURST", 1_000_000)
    return provider


@asynccontextmanager
async def doorway(directory: Path, data: DataDir, auth: str) -> AsyncIterator[tuple[World, list[Credential]]]:
    """A daemon, and what people may show there."""
    takes = {"tokens": auth in ("tokens", "both"), "issuers": auth in ("oauth", "both")}
    issuers = [{"issuer": ISSUER, "audience": ["the daemon"]}] if takes["issuers"] else []
    identity = {"users": IDENTITY if issuers else without_subjects(), "issuers": issuers} if auth != "none" else {}
    servers = SERVERS if identity else {name: {"command": "x"} for name in SERVERS}
    late_s = [0.0]
    fakes = {name: FakeServer(tools=[tool("tell")]) for name in servers}
    more: dict[str, Any] = {"daemon": {"clock": lambda: NOW + late_s[0]}, "patience_s": 300, **SETTINGS}
    async with world(directory, data, servers, fakes, auth=auth, identity=identity, **more) as at:
        shown = [*nothing(at), *always_wrong(), *operators(at)]
        shown += await own(at, late_s) if takes["tokens"] else [bearer(ELSEWHERE[0], "wrong", new_token())]
        shown += [*of_provider()] if takes["issuers"] else [bearer(ELSEWHERE[1], "wrong", signed(sub="1"))]
        yield at, shown


def without_subjects() -> dict[str, Any]:
    return {name: {"role": role} for name, (role, _) in PEOPLE.items()}


def nothing(at: World) -> Iterator[Credential]:
    yield Credential("nothing", "nothing")
    yield Credential("a cookie", "nothing", (("cookie", f"token={at.keys['operator']}"),))


def operators(at: World) -> Iterator[Credential]:
    yield bearer("the key of the daemon", "admin", at.keys["operator"])


def always_wrong() -> Iterator[Credential]:
    yield Credential("an empty line", "wrong", (("authorization", ""),))
    yield Credential("no token", "wrong", (("authorization", "Bearer"),))
    yield Credential("another scheme", "wrong", (("authorization", "Basic YTpi"),))
    yield Credential("two lines", "wrong", (("authorization", "Bearer x"), ("authorization", "Bearer x")))
    yield bearer("no token of anybody", "wrong", "x")
    yield bearer("one mistyped", "wrong", new_token()[:-1] + "-")
    yield bearer("one never made", "wrong", new_token())
    yield bearer("a pass of another key", "wrong", f"mcpvop_{int(NOW)}_{'0' * 64}")


async def own(at: World, late_s: list[float]) -> list[Credential]:
    """Tokens of the daemon, of each role and for one server; late by the clock that makes one of them expire."""
    shown = []
    for what, user, column, more in (
        ("a token of a member", "ben", "member", {}),
        ("one of an auditor", "cem", "auditor", {"role": "auditor"}),
        ("one of an admin", "ana", "admin", {"role": "admin"}),
        ("one of an admin for a member", "ana", "member", {"role": "member"}),
        ("one of a member for an admin", "ben", "member", {"role": "admin"}),
        ("one for one server", "ben", "one server", {"server": "clock"}),
        ("one that expired", "ana", "wrong", {"role": "admin", "expires_in_s": 60.0}),
        ("one for one server that expired", "ben", "wrong", {"server": "clock", "expires_in_s": 60.0}),
        ("one that is revoked", "ana", "wrong", {"role": "admin"}),
        ("one for another server", "ben", "wrong", {"server": "spare"}),
    ):
        id_ = await at.admit(user, **more)
        shown.append(bearer(what, column, at.keys[user], user))  # type: ignore[arg-type]
        if "revoked" in what:
            await at.revoke(id_)
        if "server" in more and "another" not in what and "expired" not in what:
            shown.append(Credential("one in the address", "one server", token=at.keys[user]))
    late_s[0] += 61.0
    return shown


def of_provider() -> Iterator[Credential]:
    """Tokens of an identity provider, each of the users with all that it takes, and those with something wrong."""
    yield bearer("one of a provider, a member", "member", signed(sub="2"))
    yield bearer("one of a provider, an auditor", "auditor", signed(sub="3"), "cem")
    yield bearer("one of a provider, an admin", "admin", signed(sub="1"), "ana")
    yield bearer("one of a provider by another address", "member", signed(sub="2", aud=["the daemon"]))
    yield bearer("one of a provider to read", "reader", signed(sub="1", scope="mcp:read profile"), "ana")
    wrong = {
        "that expired": signed(sub="1", exp=NOW - 1000),
        "for another address": signed(sub="1", aud="https://other.example/mcp"),
        "without an address": signed(sub="1", aud=None),
        "of another one": signed(sub="1", iss="https://evil.example"),
        "of a stranger": signed(sub="9"),
        "forged": signed(sub="1")[:-8] + "AAAAAAAA",
        "of another key": signed(EC, "ES256", sub="1"),
        "to sign in": signed(sub="1", nonce="x"),
    }
    for what, token in wrong.items():
        yield bearer(f"one of a provider {what}", "wrong", token)


class Rig:
    """Asks a daemon, and collects what is not as the table says."""

    def __init__(self, at: World, auth: str) -> None:
        self.at = at
        self.auth = auth
        self.wrong: list[str] = []
        self.refusals: dict[bool, set[bytes]] = {True: set(), False: set()}
        self.asked = 0
        self.older = cycle(each for each in VERSIONS if each not in NEWEST)

    def note(self, row_: Row, credential: Credential, how: str, told: str) -> None:
        self.asked += 1
        wanted = row_.cells[credential.column_at(row_.routes[0])]
        if told != wanted:
            self.wrong.append(f"{row_.title}: {how} with {credential.what}: {told}, not {wanted}")

    async def ask(self, credential: Credential, method: str, path: str, **more: Any) -> httpx2.Response:
        headers = [*credential.headers, *more.pop("headers", {}).items()]
        return await self.at.http.request(method, credential.at(path), headers=headers, **more)

    def told(self, answer: httpx2.Response, credential: Credential, path: str, *, hidden: bytes | None = None) -> str:
        """Return what an answer is in the table. `hidden`: that of a thing which does not exist."""
        if answer.status_code in (500, 503, 504):
            return f"{answer.status_code} {answer.text}"
        sign_in = f"/ui/sign-in?next={path.partition('?')[0]}"
        if answer.headers.get("location") == sign_in and path.startswith(("/ui", "/questions")):
            return "303" if not answer.content else f"303 {answer.text}"
        if answer.status_code == 401:
            return self._challenged(answer, credential, path)
        if answer.status_code == 403:
            alike = answer.json()["error"]["data"]["type"] == "insufficient_scope"
            return "403" if alike and 'error="insufficient_scope"' in challenge(answer) else f"403 {answer.text}"
        if "www-authenticate" in answer.headers:
            return f"{answer.status_code} with a challenge"
        return "404" if answer.status_code == 404 and answer.content == hidden else "yes"

    def _challenged(self, answer: httpx2.Response, credential: Credential, path: str) -> str:
        line = 'Bearer realm="mcpvisor"'
        if self.auth in ("oauth", "both") and not path.startswith("/i/"):
            door = path.partition("?")[0].removesuffix("/server-card") if path.startswith("/mcp") else "/mcp"
            where = f"{PUBLIC}/.well-known/oauth-protected-resource{door}"
            line = f'Bearer resource_metadata="{where}", scope="mcp:read mcp:tools:execute"'
        nothing = credential.column_at(path) == "nothing"
        if not nothing:
            line += ', error="invalid_token", error_description="not valid here, expired or revoked"'
        same = challenge(answer) == line and answer.json()["error"]["data"]["type"] == "unauthenticated"
        self.refusals[nothing].add(CHALLENGE.sub(b"", answer.content))
        return "401" if same else f"401 {challenge(answer)}"

    async def hears(self, credential: Credential, path: str, *messages: Any, hidden: str | None = None) -> list[str]:
        """Return what becomes of a WebSocket, and of each message over it."""
        told: list[str] = []
        try:
            port = self.at.http.base_url.port or 0
            async with open_websocket(port, credential.at(path), credential.headers) as socket:
                told.append("yes")
                for each in messages:
                    await socket.send_message(each if isinstance(each, str) else json.dumps(each))
                    told.append(told_by(json.loads(await socket.get_message())))
        except* ConnectionRejected as rejected:
            told.append(self._rejected(first_of(rejected), credential, path, hidden))
        return told

    def _rejected(self, error: BaseException, credential: Credential, path: str, hidden: str | None) -> str:
        assert isinstance(error, ConnectionRejected)
        answer = httpx2.Response(error.status_code, headers=[*(error.headers or ())], content=error.body or b"")
        said = answer.json()["error"]["message"]
        if answer.status_code == 404:
            return "404" if hidden is not None and said == hidden else f"404 {said}"
        return self.told(answer, credential, path)


def told_by(answer: dict[str, Any]) -> str:
    """What a message over a WebSocket says."""
    if "error" not in answer:
        return "yes"
    return "403" if answer["error"].get("data", {}).get("type") == "insufficient_scope" else json.dumps(answer)


def path_of(route: str, owner: str) -> tuple[str, str]:
    """Return a request that a route stands for: of a server that there is, but where it would be gone after that."""
    method, path = route.split()
    server = "nowhere" if method in ("PATCH", "DELETE") or path == "/api/trust" else "spare"
    things = {**FILLED, "server": server, "owner": owner}
    filled = re.sub(r"\{(\w+)\}", lambda found: things[found[1]], path)
    return method, {"/api/reload": "/api/reload?plan=true"}.get(filled, filled)


NOT_THERE = json.dumps({"error": {"code": 404, "message": NO_PAGE}}, separators=(",", ":")).encode()


async def ask_pages(rig: Rig, credential: Credential, *, wholly: bool) -> None:
    """Ask for every page by its methods, or for one of each row: what is shown is judged before the page is known."""
    for row_ in ROWS:
        for route in row_.routes[: None if wholly else 1] if " " in row_.routes[0] else ():
            method, path = path_of(route, "dan" if row_.title == OTHERS else credential.user)
            if method == "WS":
                nowhere = "there is no WebSocket here, or not for your role; there is /mcp, /api/events, "
                hidden = f"{nowhere}/api/servers/{{server}}/logs, /api/logs"
                told = (await rig.hears(credential, path, hidden=hidden))[0]
            else:
                answer = await rig.ask(credential, method, path, **({"json": {}} if method != "GET" else {}))
                told = rig.told(answer, credential, path, hidden=NOT_THERE)
            rig.note(row_, credential, route, told)


async def ask_otherwise(rig: Rig, credential: Credential) -> None:
    """Ask for every page by methods that it does not have: who may not see it is told of nothing.

    Two of them at each page, others at the next one.
    """
    rows: defaultdict[str, dict[str, Row]] = defaultdict(dict)
    for row_ in ROWS:
        for route in row_.routes:
            method, _, rule = route.partition(" ")
            if rule and row_.title not in (OTHERS, "where to sign in") and method != "WS":
                rows[path_of(f"GET {rule}", credential.user)[1]][method] = row_
    methods = cycle(METHODS)
    for path, known in rows.items():
        if "GET" in known and credential.column in ("nothing", "member", "admin"):
            head, answer = [await rig.ask(credential, method, path) for method in ("HEAD", "GET")]
            if (head.status_code, head.content) != (answer.status_code, b""):
                rig.wrong.append(f"HEAD {path} with {credential.what}: {head.status_code}")
        for method in islice((each for each in methods if each not in known), 2):
            answer = await rig.ask(credential, method, path)
            below = method in ("PATCH", "DELETE") and path.startswith("/api/servers/")  # of a server called so
            at_it = [row("orders and changes")] if below else [*known.values()]
            cells = {each.cells[credential.column_at(path)] for each in at_it}
            changes = credential.column == "reader" and method != "GET"
            theirs = credential.column == "member" and path.endswith("/logs") and not below  # others are
            never = cells == {"404"} and not theirs
            refused = next((each for each in ("303", "401") if each in cells), "")
            wanted = refused or ("403" if changes else "404" if never else "yes")
            told = rig.told(answer, credential, path, hidden=NOT_THERE)
            if told != wanted or (told == "yes" and answer.status_code not in (404, 405)):
                rig.wrong.append(f"{method} {path} with {credential.what}: {told}, {answer.status_code}, not {wanted}")


def greeting(version: str) -> dict[str, Any]:
    client = {"name": "a", "version": "1"}
    return message("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client})


def asked(method: str, version: str, **params: Any) -> tuple[bytes, dict[str, str]]:
    """Return a request of a revision, body and headers."""
    if version in LEGACY_VERSIONS:
        headers = {**modern_headers(method), "mcp-protocol-version": version}
        return json.dumps(message(method, params, 2)).encode(), headers
    headers = modern_headers(method, params.get("name"))
    return modern(method, params, protocolVersion=version), {**headers, "mcp-protocol-version": version}


def call_at(path: str) -> dict[str, Any]:
    """The parameters of a call that a door takes."""
    if path.startswith(("/mcp/servers", "/i/")):
        return {"name": "tell", "arguments": {}}
    if path.startswith("/mcp/all"):
        return {"name": "clock__tell", "arguments": {}}
    return {"name": "execute_mcp_tool", "arguments": {"tool_path": "clock:tell", "arguments": {}}}


async def ask_http(rig: Rig, rows: tuple[Row, Row], credential: Credential, path: str, version: str) -> None:
    """Use a door over HTTP as a client of a revision does."""
    reading, calling = rows
    session = {}
    how = f"{path} over HTTP, {version}"
    if version in LEGACY_VERSIONS:
        opened = await rig.ask(credential, "POST", path, json=greeting(version))
        rig.note(reading, credential, f"{how}, initialize", rig.told(opened, credential, path))
        session = {"mcp-session-id": opened.headers.get("mcp-session-id", "x")}
    else:
        body, headers = asked("server/discover", version)
        answer = await rig.ask(credential, "POST", path, content=body, headers=headers)
        rig.note(reading, credential, f"{how}, server/discover", rig.told(answer, credential, path))
    body, headers = asked("tools/list", version)
    answer = await rig.ask(credential, "POST", path, content=body, headers={**headers, **session})
    rig.note(reading, credential, f"{how}, tools/list", rig.told(answer, credential, path))
    body, headers = asked("tools/call", version, **call_at(path))
    answer = await rig.ask(credential, "POST", path, content=body, headers={**headers, **session})
    rig.note(calling, credential, f"{how}, tools/call", rig.told(answer, credential, path))
    if session:
        headers = {"accept": "text/event-stream", **session}
        shown = [*credential.headers, *headers.items()]
        async with rig.at.http.stream("GET", credential.at(path), headers=shown) as stream:
            told = (
                rig.told(stream, credential, path) if stream.status_code == 200 else await read(rig, stream, credential)
            )
            rig.note(reading, credential, f"{how}, GET", told)
        ended = await rig.ask(credential, "DELETE", path, headers=session)
        rig.note(reading, credential, f"{how}, DELETE", rig.told(ended, credential, path))


async def read(rig: Rig, stream: httpx2.Response, credential: Credential) -> str:
    await stream.aread()
    return rig.told(stream, credential, str(stream.url.raw_path, "ascii").partition("?token")[0])


async def ask_socket(rig: Rig, rows: tuple[Row, Row], credential: Credential, path: str, version: str) -> None:
    """Use a door over a WebSocket as a client of a revision does."""
    first = greeting(version) if version in LEGACY_VERSIONS else asked("server/discover", version)[0].decode()
    more = [asked("tools/list", version)[0].decode(), asked("tools/call", version, **call_at(path))[0].decode()]
    told = await rig.hears(credential, path, first, *more)
    kinds = (rows[0], rows[0], rows[0], rows[1])
    for row_, each in zip(kinds, told, strict=False):
        rig.note(row_, credential, f"{path} over a WebSocket, {version}", each)


async def ask_doors(rig: Rig, credential: Credential, *, wholly: bool) -> None:
    """Use every door over both transports by the newest revisions: `wholly`, with a profile, and by an older one, too.

    Which older one is another one at the next door.
    """
    rows = (row("doors: all but calls"), row(CALLS))
    for door in (*DOORS, PERSONAL):
        kind = (row("a personal address"),) * 2 if door == PERSONAL else rows
        path = door.replace("{server}", "clock")
        for version in (*NEWEST, next(rig.older)) if wholly else NEWEST:
            for suffix in ("", SMALL) if wholly and version in NEWEST else ("",):
                if door != WEBSOCKET_PATH:
                    await ask_http(rig, kind, credential, f"{path}{suffix}", version)
                await ask_socket(rig, kind, credential, f"{path}{suffix}", version)
        for method in METHODS if wholly else ():
            answer = await rig.ask(credential, method, path)
            if (answer.status_code == 401) != (kind[0].cells[credential.column_at(path)] == "401"):
                rig.wrong.append(f"{method} {path} with {credential.what}: {answer.status_code}")


async def ask_for_what_is_hidden(rig: Rig, credential: Credential, *, wholly: bool) -> None:
    """Use the door of a server of somebody else beside that of none: `wholly` as for every door."""
    wanted = row(HIDDEN)
    for version in VERSIONS if wholly else NEWEST:
        for suffix in ("", SMALL) if wholly else ("",):
            body, headers = asked("tools/list", version)
            there, nowhere = [
                await rig.ask(credential, "POST", f"/mcp/servers/{name}{suffix}", content=body, headers=headers)
                for name in ("vault", "qwxyz")
            ]
            path = f"/mcp/servers/vault{suffix}"
            hidden = nowhere.content.replace(b"qwxyz", b"vault")
            rig.note(wanted, credential, f"HTTP, {version}", rig.told(there, credential, path, hidden=hidden))
            if there.status_code == 404:
                told = await rig.hears(credential, path, hidden=json.loads(hidden)["error"]["message"])
                rig.note(wanted, credential, f"WebSocket, {version}", told[0])


@pytest.mark.case("I05", "I11", "I13")
@pytest.mark.usefixtures("provided")
@pytest.mark.parametrize("auth", ["tokens", "oauth", "both"])
async def test_everybody_is_answered_as_the_table_says(tmp_path: Path, data: DataDir, auth: str) -> None:
    async with doorway(tmp_path, data, auth) as (at, shown):
        rig = Rig(at, auth)
        columns = {credential.column for credential in shown}
        assert set(COLUMNS) - columns == {"tokens": {"reader"}, "oauth": {"one server"}, "both": set()}[auth]
        firsts = [*{credential.column: credential for credential in reversed(shown)}.values()]
        if auth != "both":  # where everything is shown, and the first of each kind at everything
            shown = [*firsts, *(each for each in shown if each.what in ELSEWHERE)]
        for credential in shown:
            wholly = auth == "both" and credential in firsts
            await ask_pages(rig, credential, wholly=wholly)
            await ask_doors(rig, credential, wholly=wholly)
            if wholly:
                await ask_otherwise(rig, credential)
            if credential.what != "the key of the daemon":
                await ask_for_what_is_hidden(rig, credential, wholly=wholly)
        assert not rig.wrong, f"{len(rig.wrong)} of {rig.asked}\n" + "\n".join(rig.wrong[:60])
        assert [len(bodies) for bodies in rig.refusals.values()] == [1, 1], "nobody is told what is wrong"


@pytest.mark.usefixtures("provided")
async def test_where_nobody_has_to_show_who_they_are_all_is_answered(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, "none") as (at, shown):
        for credential in (shown[0], bearer("no token of anybody", "wrong", "x"), shown[-1]):
            rig = Rig(at, "none")
            for route in sorted(page_routes()):
                method, path = path_of(route, "ben")
                if method == "WS":
                    assert await rig.hears(credential, path) == ["yes"]
                    continue
                answer = await rig.ask(credential, method, path, **({"json": {}} if method != "GET" else {}))
                without_key = route in WITH_THE_KEY or "/api/values/" in route
                assert (answer.status_code == 401) == without_key, route
                assert answer.status_code != 403, route
                assert answer.content != NOT_THERE, route
            for door in (*DOORS, PERSONAL):
                path = door.replace("{server}", "clock")
                for version in VERSIONS:
                    body, headers = asked("tools/call", version, **call_at(path))
                    first = [greeting(version)] if version in LEGACY_VERSIONS else []
                    told = await rig.hears(credential, path, *first, body.decode())
                    assert set(told) == {"yes"}, path
                    if door != WEBSOCKET_PATH:
                        called = await rig.ask(credential, "POST", path, content=body, headers=headers)
                        assert called.status_code == 200, path


@pytest.mark.case("I13")
def test_every_address_has_its_row() -> None:
    pages = {route for each in ROWS for route in each.routes if " " in route}
    beside = {"GET /.well-known/{anything}", "POST /register", "GET /api/nothing"}
    assert pages - page_routes().keys() == beside
    assert page_routes().keys() - pages == set()
    assert {*DOORS, PERSONAL} == {*addresses.DOORS.values(), WEBSOCKET_PATH}
    every = [*(each for subject in SUBJECTS.values() for each in subject), *DASHBOARD.values()]
    anybody = {each.route.translate(str.maketrans("<>", "{}")) for each in every if each.role is None}
    assert anybody == {*row("what anybody may know").routes, *row("to sign in with a browser").routes}
    static = {"GET /ui/static/{mark}/{name}", "POST /ui/sign-in"}
    assert {f"GET {path}" for path in admission.PUBLIC} | static == anybody


@pytest.mark.case("N12")
@pytest.mark.parametrize("column", ROLES)
def test_the_table_is_that_of_the_rights(column: Shown) -> None:
    for each in ROWS:
        for route in each.routes if " " in each.routes[0] else ():
            requester = Requester(person=Person(user="x", role=column))  # type: ignore[arg-type]
            operation = page_routes().get(route)
            if operation is not None and each.title != OTHERS and not (route in LOGS and column == "member"):
                allowed = may_ask(requester, operation.method, operation.rule)
                assert allowed == (each.cells[column] == "yes"), route


def test_what_is_new_is_for_an_admin() -> None:
    assert role_for("GET", "/api/new") == "admin"
