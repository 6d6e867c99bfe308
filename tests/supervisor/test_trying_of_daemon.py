"""Trying a tool on its page when something is asked first: the question stands there, and one yes runs one call."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from supervisor.host.datadir import DataDir
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.page_figures import Element, read
from tests.scenario.daemon import World, world

WORDS = 'two\nlines, "quoted" & <b>'
PROPERTIES = {"name": {"type": "string", "maxLength": 5}, "sizes": {"type": "array", "items": {"enum": ["s", "m"]}}}


def schema(**properties: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in properties.items()}}


TOOLS = [
    tool("echo", inputSchema=schema(text="string", count="integer")),
    tool("ask", inputSchema=schema(message="string", properties="object")),
]


class Visitor:
    """Somebody at the page of a tool."""

    def __init__(self, at: World, fake: FakeServer) -> None:
        self._at = at
        self._fake = fake

    @property
    def runs(self) -> list[Any]:
        return [each["params"]["arguments"] for each in self._fake.messages if each.get("method") == "tools/call"]

    async def call(self, path: str, **typed: str) -> Element:
        address = f"/ui/tool?path={path}"
        shown = read((await self._at.ask("GET", address)).text)
        fields = {f"field.{name}": text for name, text in typed.items()}
        return await self._send(address, data={"token": _hidden(shown)["token"], **fields})

    async def press(self, page: Element, action: str, code: int = 200, **filled: Any) -> Element:
        """Press a button of the form with which a question is answered."""
        form = page.one("form", id="asked")
        parts: list[Any] = [(name, (None, value)) for name, value in {**_hidden(form), "action": action}.items()]
        for name, value in filled.items():
            (field,) = {each.attributes["name"] for each in form.all("input") if _is_field(each, name)}
            parts += [(field, (None, each)) for each in ([value] if isinstance(value, str) else value)]
        return await self._send(form.attributes["action"], code, files=parts)

    async def _send(self, address: str, code: int = 200, **body: Any) -> Element:
        answer = await self._at.ask("POST", address, headers={"origin": self._at.url}, **body)
        assert answer.status_code == code, answer.text
        return read(answer.text)


def _hidden(page: Element) -> dict[str, str]:
    return {each.attributes["name"]: each.attributes["value"] for each in page.all("input", type="hidden")}


def _is_field(element: Element, name: str) -> bool:
    return element.attributes.get("name", "").endswith(f".{name}")


def _said(page: Element) -> str:
    return page.one("section", id="try").text


@asynccontextmanager
async def visiting(directory: Path, data: DataDir, **entry: Any) -> AsyncIterator[Visitor]:
    fake = FakeServer(tools=TOOLS)
    async with world(directory, data, {"one": {"command": "x", **entry}}, {"one": fake}) as at:
        yield Visitor(at, fake)


async def test_a_tool_that_asks_for_a_yes_runs_once_after_one_yes_on_its_page(tmp_path: Path, data: DataDir) -> None:
    async with visiting(tmp_path, data, confirm=["echo"]) as somebody:
        asked = await somebody.call("one:echo", text=WORDS, count="3")
        assert "Run one:echo with" in _said(asked)
        assert "execute_mcp_tool" not in _said(asked), "that is for a model"
        assert somebody.runs == []
        done = await somebody.press(asked, "accept")
        assert "Answer, " in _said(done)
        assert somebody.runs == [{"text": WORDS, "count": 3}], "the very call that was asked about"
        again = await somebody.press(asked, "accept")
        assert "It failed" in _said(again)
        assert len(somebody.runs) == 1, "one yes, one run"


async def test_a_no_ends_the_call_and_nothing_runs(tmp_path: Path, data: DataDir) -> None:
    async with visiting(tmp_path, data, confirm=["echo"]) as somebody:
        asked = await somebody.call("one:echo", text="up")
        ended = await somebody.press(asked, "decline")
        assert "the user did not say yes" in _said(ended)
        assert not ended.all("form", id="asked")
        assert somebody.runs == []


async def test_another_call_than_the_one_that_was_asked_about_does_not_run(tmp_path: Path, data: DataDir) -> None:
    async with visiting(tmp_path, data, confirm=["echo"]) as somebody:
        asked = await somebody.call("one:echo", text="up")
        carried = asked.one("form", id="asked").one("input", name="call")
        carried.attributes["value"] = carried.attributes["value"].replace('"text":"up"', '"text":"down"')
        assert "It failed" in _said(await somebody.press(asked, "accept"))
        assert somebody.runs == []


async def test_what_a_server_asks_during_a_call_is_answered_on_the_page_of_its_tool(
    tmp_path: Path, data: DataDir
) -> None:
    async with visiting(tmp_path, data) as somebody:
        asked = await somebody.call("one:ask", message="Who?", properties=json.dumps(PROPERTIES))
        assert "Who?" in _said(asked)
        wrong = await somebody.press(asked, "accept", 400, name="Augusta")
        assert "must be at most 5 characters" in _said(wrong)
        done = await somebody.press(wrong, "accept", name="Ada", sizes=["s", "m"])
        assert '"name": "Ada"' in _said(done)
        assert somebody.runs == [{"message": "Who?", "properties": PROPERTIES}]
