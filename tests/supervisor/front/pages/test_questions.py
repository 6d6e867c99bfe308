"""The pages of questions over the real application, as a browser and as a program use them."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
import trio
from quart_trio import QuartTrio

from actors.catalogue.offer import Offer, Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.facts import FactLog
from actors.kit import Latest, Reply
from actors.messages import Question
from actors.principal import LOCAL, Principal
from actors.protocol.wire.json import quoted
from actors.search.index import Index
from supervisor.front.application import application
from supervisor.front.pages.performing import add_operations
from supervisor.front.pages.requests import REQUESTER
from supervisor.front.ui.pages import add_dashboard
from supervisor.identity.people import Person
from supervisor.identity.requester import Requester
from supervisor.metatools import questions
from supervisor.operations import Role
from supervisor.service.asking.elicitations import CallElicitations, Elicitations
from supervisor.service.client import Client
from tests.fakes.front_server import Running, dispatch, running
from tests.supervisor.front.pages.test_api import NOW, ask, page, view

PROPERTIES = {
    "name": {"type": "string", "title": "Your <b>name</b>", "description": 'of "both"', "minLength": 2},
    "password": {"type": "string"},
    "age": {"type": "integer", "minimum": 0},
    "height": {"type": "number", "default": 1.5},
    "agree": {"type": "boolean"},
    "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "<Green>"], "default": "g"},
    "sizes": {"type": "array", "items": {"enum": ["s", "m", "l"]}},
    "picture": {"type": "string", "contentEncoding": "base64"},
    "more": {"type": "object"},
    "action": {"type": "string"},
}
FORM = {
    "message": "<script>alert(1)</script>\nWho are you?\x1b[31m",
    "requestedSchema": {"type": "object", "properties": PROPERTIES, "required": ["name", "password"]},
}
SURE = {"message": "m", "requestedSchema": {"properties": {"sure": {"type": "boolean"}}}}
BOUNDARY = "----boundary"
GOOD = {"name": ["Ada"], "password": ["hunter2"]}


class Fields(HTMLParser):
    """The inputs of a page by their names, and everything that would run or load something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.inputs: dict[str, list[dict[str, str | None]]] = {}
        self.active: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("input", "select", "textarea", "option") and given.get("name"):
            self.inputs.setdefault(str(given["name"]), []).append(given)
        loaded = str(given.get("src") or given.get("href"))
        ours = tag in ("script", "link") and loaded.startswith("/ui/static/")
        if (tag in ("script", "img", "link", "iframe") and not ours) or any(name.startswith("on") for name in given):
            self.active.append(tag)


class Waiting:
    """One question that waits, and what its server gets."""

    def __init__(self, params: Any = FORM, principal: Principal = LOCAL, *, repeats: bool = False, **more: Any) -> None:
        self.all = Elicitations(FactLog(lambda: NOW), "http://127.0.0.1:1")
        self.reply: Reply[msgspec.Raw] = Reply()
        call = CallElicitations(self.all, "git<hub", "create_issue", 100.0, everyone=True)
        call = msgspec.structs.replace(call, client=Client(principal=principal, name="claude-code"), **more)
        call.offer(
            Question("elicitation/create", msgspec.Raw(json.dumps(params).encode())), self.reply, repeats=repeats
        )
        self.id = next(iter(self.all.of(call.client.principal))).id

    @property
    def answer(self) -> Any:
        return None if self.reply.value is None else json.loads(bytes(self.reply.value))


@asynccontextmanager
async def pages(waiting: Waiting, set_s: float = 0.0, **more: Any) -> AsyncIterator[Running]:
    """Show what waits. Since it was asked the clock was set by so many seconds."""
    shown = view(
        elicitations=waiting.all,
        clock=lambda: NOW + set_s,
        elapsed=trio.current_time,
        **more,
    )

    def register(app: QuartTrio) -> None:
        add_dashboard(shown, app, add_operations(shown, app))

    async with running(dispatch(register), shown.closing) as server:
        yield server


async def post(
    server: Running, path: str, body: bytes, kind: str = "application/json", *headers: bytes
) -> tuple[int, str]:
    lines = b"".join(header + b"\r\n" for header in (*headers, b"Content-Type: " + kind.encode()))
    length = f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
    raw = await server.exchange(f"POST {path} HTTP/1.1\r\n".encode() + server.host + lines + length + body)
    head, _, said = raw.partition(b"\r\n\r\n")
    return int(head.split()[1]), said.decode()


async def submit(
    server: Running, waiting: Waiting, fields: dict[str, list[str]], *, action: str = "accept", file: bytes = b""
) -> tuple[int, str]:
    """Send the form as a browser does."""
    parts = [("action", "", action.encode())]
    parts += [(f"field.{name}", "", value.encode()) for name, values in fields.items() for value in values]
    parts += [("field.picture", '; filename="a.png"', file)]
    body = b"".join(
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + value + b"\r\n"
        for name, more, value in parts
    )
    kind = f"multipart/form-data; boundary={BOUNDARY}"
    return await post(server, f"/questions/{waiting.id}", body + f"--{BOUNDARY}--\r\n".encode(), kind)


async def test_a_browser_gets_a_form_in_which_nothing_runs() -> None:
    waiting = Waiting()
    async with pages(waiting) as server:
        code, headers, body = await ask(server, f"/questions/{waiting.id}")
    text = body.decode()
    fields = Fields(text)
    assert (code, fields.active) == (200, [])
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"  # else browsers send no origin with the form
    assert fields.inputs.keys() == {f"field.{name}" for name in PROPERTIES}
    (password,) = fields.inputs["field.password"]
    assert (password["type"], "value" in password, "required" in password) == ("password", False, True)
    assert [each["value"] for each in fields.inputs["field.sizes"]] == ["s", "m", "l"]
    assert fields.inputs["field.height"][0]["value"] == "1.5"
    for shown in ("&lt;script&gt;", "git&lt;hub", "create_issue", "Your &lt;b&gt;name", "&lt;Green&gt;", "claude-code"):
        assert shown in text
    assert "\x1b" not in text


async def test_what_is_filled_in_reaches_the_server_as_json_of_its_schema() -> None:
    waiting = Waiting()
    typed = {
        **GOOD,
        "age": ["36"],
        "height": ["1.75"],
        "agree": ["false"],
        "colour": ["r"],
        "sizes": ["s", "l"],
        "more": ['{"a": [1]}'],
        "action": ["run"],
    }
    async with pages(waiting) as server:
        code, text = await submit(server, waiting, typed, file=b"\x89PNG")
        again, _ = await submit(server, waiting, typed)
    assert (code, again) == (200, 404)
    assert "The server has your answer" in text
    assert waiting.answer == {
        "action": "accept",
        "content": {
            "name": "Ada",
            "password": "hunter2",
            "age": 36,
            "height": 1.75,
            "agree": False,
            "colour": "r",
            "sizes": ["s", "l"],
            "picture": "iVBORw==",
            "more": {"a": [1]},
            "action": "run",
        },
    }


async def test_what_is_wrong_is_said_beside_it_and_what_was_right_stays_but_for_secrets() -> None:
    waiting = Waiting()
    async with pages(waiting) as server:
        code, text = await submit(server, waiting, {"name": ["A"], "password": ["hunter2"], "age": ["many"]})
    fields = Fields(text)
    assert (code, waiting.answer) == (400, None)
    assert "must be at least 2 characters" in text
    assert "must be a whole number" in text
    assert fields.inputs["field.name"][0]["value"] == "A"
    assert "hunter2" not in text


async def test_no_is_said_by_a_button_of_its_own() -> None:
    waiting = Waiting()
    async with pages(waiting) as server:
        code, text = await submit(server, waiting, {}, action="decline")
    assert (code, waiting.answer) == (200, {"action": "decline"})
    assert "you said no" in text


async def test_an_address_is_a_link_and_done_means_done() -> None:
    waiting = Waiting({"mode": "url", "url": "https://pay.example/?a=1&b=2", "message": "Pay"})
    async with pages(waiting) as server:
        _, _, body = await ask(server, f"/questions/{waiting.id}")
        code, _ = await submit(server, waiting, {})
    assert b'href="https://pay.example/?a=1&amp;b=2"' in body
    assert (code, waiting.answer) == (200, {"action": "accept"})


@pytest.mark.case("X09")
@pytest.mark.parametrize(
    ("url", "host"), [("https://\u0430pple.com/", b"<b>xn--pple-43d.com</b>"), ("http://[::1]:1/", b"<b>::1</b>")]
)
async def test_where_an_address_leads_is_said_in_letters_that_cannot_be_taken_for_others(url: str, host: bytes) -> None:
    waiting = Waiting({"mode": "url", "url": url, "message": "Pay"})
    async with pages(waiting) as server:
        _, _, body = await ask(server, f"/questions/{waiting.id}")
    assert host in body


async def test_a_host_that_is_no_name_is_shown_too() -> None:
    waiting = Waiting({"mode": "url", "url": "https://" + "\u00e4" * 80 + ".example/", "message": "Pay"})
    async with pages(waiting) as server:
        _, _, body = await ask(server, f"/questions/{waiting.id}")
    assert b"<b>%C3%A4%C3%A4" in body


@pytest.mark.parametrize("default", [5, "r", {"r": 1}, [["r"], 7]])
async def test_a_default_of_another_type_spoils_no_page(default: Any) -> None:
    schema = {"type": "array", "items": {"enum": ["r", "g"]}, "default": default}
    waiting = Waiting({"message": "m", "requestedSchema": {"properties": {"colours": schema}}})
    async with pages(waiting) as server:
        code, _, body = await ask(server, f"/questions/{waiting.id}")
    assert code == 200
    assert not any("checked" in each for each in Fields(body.decode()).inputs["field.colours"])


async def test_a_field_may_have_any_name() -> None:
    waiting = Waiting({"message": "m", "requestedSchema": {"properties": {'a"b\nc\r\u00e9': {"type": "string"}}}})
    async with pages(waiting) as server:
        code, _ = await submit(server, waiting, {"a%22b%0D%0Ac%0D%0A\u00e9": ["x"]})
    assert (code, waiting.answer) == (200, {"action": "accept", "content": {'a"b\nc\r\u00e9': "x"}})


MULTIPART = f"multipart/form-data; boundary={BOUNDARY}"
PART = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'.encode()
LONG = b'--%b\r\nContent-Disposition: form-data; name="action%b"\r\n\r\naccept\r\n' % (BOUNDARY.encode(), b'"' * 5000)
END = f"--{BOUNDARY}--\r\n".encode()


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", PART + END),
        (MULTIPART, b""),
        (MULTIPART, PART),
        (MULTIPART, PART * 1001 + END),
        (MULTIPART, LONG + END),
        ("application/x-www-form-urlencoded", b"action=yes"),
        ("application/x-www-form-urlencoded", b"action=accept&action=decline"),
        ("text/plain", b"action=accept"),
    ],
)
async def test_what_no_browser_sends_answers_nothing(kind: str, body: bytes) -> None:
    waiting = Waiting(SURE)
    async with pages(waiting) as server:
        code, text = await post(server, f"/questions/{waiting.id}", body, kind)
        assert (code, waiting.answer) == (400, None)
        assert "The form" in text
        code, _ = await post(server, f"/questions/{waiting.id}", b"action=accept", "application/x-www-form-urlencoded")
        assert (code, waiting.answer) == (200, {"action": "accept", "content": {}})


async def test_all_that_wait_are_listed_for_people_and_for_programs() -> None:
    waiting = Waiting()
    async with pages(waiting) as server:
        _, _, body = await ask(server, "/questions")
        listed = await page(server, "/api/questions")
        one = await page(server, f"/api/questions/{waiting.id}")
        await submit(server, waiting, GOOD)
        _, _, nothing = await ask(server, "/questions")
    assert f'href="/questions/{waiting.id}"'.encode() in body
    assert b"Nobody asks anything" in nothing
    (first,) = listed["questions"]
    # a moment earlier there was more of it, and the clock of these pages stands still
    assert first == {**one, "expires_in_s": first["expires_in_s"], "asked_at": first["asked_at"]}
    assert first["expires_in_s"] >= one["expires_in_s"]
    assert (one["server"], one["about"], one["kind"]) == ("git<hub", "create_issue", "form")
    assert (one["client"], one["confirms"], one["repeats"]) == ("claude-code", False, False)
    assert one["page"] == f"http://127.0.0.1:1/questions/{waiting.id}"
    assert 0 < one["expires_in_s"] <= 100
    assert [field["name"] for field in one["fields"]] == list(PROPERTIES)


@pytest.mark.parametrize("set_s", [-7200.0, 7200.0])
async def test_for_how_long_a_server_has_been_asking_is_right_wherever_the_clock_was_set_to(set_s: float) -> None:
    async with pages(Waiting(), set_s) as server:
        _, _, overview = await ask(server, "/questions")
        (row,) = (await page(server, "/api/questions"))["questions"]
    said = re.search(rb"data-ago>(-?\d+) s</time> ago", overview)
    assert said is not None
    assert [age for age in (int(said[1]), NOW + set_s - row["asked_at"]) if not 0 <= age < 600] == []


CONFIRMATION = {"message": "Run shop:buy with {}?", "requestedSchema": questions.SCHEMA}
BUY = Tool(name="buy", described=quoted("Buys <b>it</b>."), annotations=msgspec.Raw(b'{"destructiveHint":true}'))


SHOP = Latest(
    Catalogue(revision=1, entries={"shop": Entry.make("shop", "stdio", Offer(tools=(BUY,)))}, index=Index.empty())
)


def confirmation(**more: Any) -> Waiting:
    return Waiting(CONFIRMATION, server="shop", about="buy", tool="buy", confirms=True, **more)


async def test_a_confirmation_says_who_asks_for_what_and_has_two_buttons() -> None:
    waiting = confirmation()
    async with pages(waiting, catalogue=SHOP) as server:
        text = (await ask(server, f"/questions/{waiting.id}"))[2].decode()
        listed = (await ask(server, "/questions"))[2].decode()
    assert "<h1>claude-code wants to run shop:buy</h1>" in text
    assert 'href="/ui/tool?path=shop%3Abuy"' in text
    assert '<b class="safety dangerous">dangerous</b>' in text
    assert "Buys &lt;b&gt;it&lt;/b&gt;." in text
    assert re.findall(r"<button name[^>]*>([^<]*)<", text) == ["Yes, run it", "No"]
    first = text[text.index("<form method") :].split("<button", 2)[1]
    assert first.startswith(" disabled hidden>"), "the first button is the one that Enter presses (HTML, 4.10.22.2)"
    assert f'<a href="/questions/{waiting.id}">Run shop:buy with {{}}?</a>' in listed


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_what_becomes_of_a_call_is_said_after_the_yes(repeats: bool, action: str) -> None:
    waiting = confirmation(repeats=repeats)
    async with pages(waiting) as server:
        code, text = await submit(server, waiting, {"run": ["true"], "remember": ["always"]}, action=action)
    expected = {
        ("accept", False): ("You said yes", "The call goes on now."),
        ("accept", True): ("You said yes", "Tell the model to go on: it repeats the call, and the tool runs then."),
        ("decline", False): ("You said no", "The call has ended."),
        ("decline", True): ("You said no", "If the model repeats the call, it is told so."),
    }
    assert code == 200
    assert [each for each in expected[action, repeats] if each not in text] == []
    assert ("mcpvisor consents" in text) == (action == "accept")
    assert '"/ui/calls?server=shop&amp;tool=buy"' in text
    content = {"content": {"run": True, "remember": "always"}} if action == "accept" else {}
    assert waiting.answer == {"action": action, **content}


@pytest.mark.parametrize(("role", "links"), [("member", 0), ("auditor", 2)])
async def test_who_may_not_see_a_tool_gets_no_link_to_it(role: Role, links: int) -> None:
    person = Person(user="ben", role=role)
    waiting = confirmation(principal=person.principal)
    app = application(view(elicitations=waiting.all, elapsed=trio.current_time, catalogue=SHOP))
    token = REQUESTER.set(Requester(person=person))
    try:
        answer = await app.test_client().get(f"/questions/{waiting.id}")
        text = await answer.get_data(as_text=True)
    finally:
        REQUESTER.reset(token)
    assert answer.status_code == 200
    assert "Buys &lt;b&gt;it&lt;/b&gt;." in text
    assert len(re.findall('href="/ui/(?:tool[?]|servers/)', text)) == links


async def test_a_program_answers_with_json() -> None:
    waiting = Waiting()
    path = f"/api/questions/{waiting.id}"
    content = {"name": "Ada", "password": "hunter2"}
    async with pages(waiting) as server:
        for wrong in (b"[]", b"{", b'{"action":"yes"}', b'{"action":"accept","more":1}', b"\xff"):
            code, said = await post(server, path, wrong)
            assert (code, "it is like {" in json.loads(said)["error"]["message"]) == (400, True), wrong
        code, said = await post(server, path, b'{"action":"accept","content":{"name":7}}')
        assert code == 400
        assert json.loads(said)["error"]["data"]["fields"] == {
            "name": "must be a text",
            "password": "has to be filled in",
        }
        code, _ = await post(server, path, json.dumps({"action": "accept", "content": content}).encode())
        gone, said = await post(server, path, b'{"action":"cancel"}')
    assert (code, waiting.answer) == (200, {"action": "accept", "content": content})
    assert (gone, "Nobody waits" in said) == (404, True)


@pytest.mark.case("I04")
async def test_nobody_sees_what_another_principal_is_asked() -> None:
    waiting = Waiting(principal=Principal("another"))
    async with pages(waiting) as server:
        assert await page(server, "/api/questions") == {"questions": []}
        assert (await ask(server, f"/questions/{waiting.id}"))[0] == 404
        assert (await ask(server, f"/api/questions/{waiting.id}"))[0] == 404
        assert (await submit(server, waiting, GOOD))[0] == 404
    assert waiting.answer is None
