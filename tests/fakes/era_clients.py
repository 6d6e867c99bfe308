"""Clients of both eras at any door, over HTTP: small, and strict about what their era forbids."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2

from actors.protocol.agreement.versions import META_SERVER_INFO
from tests.fakes.http_client import JSON_HEADERS, legacy, modern, modern_headers

MODERN_MEMBERS = ("resultType", "ttlMs", "cacheScope")
CACHED = (
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "resources/read",
)
NAMED = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name"}
FORBIDDEN_CODES = {"modern": (-32002, -32042), "legacy": (-32020, -32021, -32022)}
"""2026-07-28, basic/index "Error Codes"; what is new in it means nothing to older clients."""
LISTS = {"tools": "name", "resources": "uri", "resourceTemplates": "uriTemplate", "prompts": "name"}
MAX_PAGES = 20


class NoResult(Exception):
    """What was asked for is refused; the text says how."""


class EraClient:
    """A client at one door. `wrong` is what it must not have been told."""

    def __init__(self, http: httpx2.AsyncClient, path: str, era: str) -> None:
        self.wrong: list[str] = []
        self._http = http
        self._path = path
        self._era = era
        self._session: dict[str, str] = {}

    async def greet(self) -> dict[str, Any]:
        """Begin, and return what the server says of itself."""
        if self._era == "modern":
            return await self.result("server/discover")
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        answer = await self._post(legacy("initialize", params), JSON_HEADERS)
        greeting = given("initialize", self._checked("initialize", answer))
        self._session = {"mcp-session-id": answer.headers["mcp-session-id"]}
        await self._post(legacy("notifications/initialized", id_=None), {**JSON_HEADERS, **self._session})
        return greeting

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask, and return the whole answer."""
        if self._era == "legacy":
            answer = await self._post(legacy(method, params), {**JSON_HEADERS, **self._session})
        else:
            named = params[NAMED[method]] if method in NAMED else None
            answer = await self._post(modern(method, params), modern_headers(method, named))
        return self._checked(method, answer)

    async def result(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask, and return the result. Raises `NoResult`."""
        return given(method, await self.ask(method, **params))

    async def tools(self) -> list[dict[str, Any]]:
        """Return all tools, page by page."""
        tools: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        for _ in range(MAX_PAGES):
            page = await self.result("tools/list", **params)
            tools += page["tools"]
            if "nextCursor" not in page:
                return tools
            params = {"cursor": page["nextCursor"]}
        self.wrong.append("tools/list: pages without end")
        return tools

    async def call(self, name: str, **arguments: Any) -> str:
        """Call a tool, and return the first text of what it gives."""
        result = await self.result("tools/call", name=name, arguments=arguments)
        return str(result["content"][0]["text"])

    async def _post(self, body: bytes, headers: dict[str, str]) -> httpx2.Response:
        return await self._http.post(self._path, content=body, headers=headers, timeout=120)

    def _checked(self, method: str, answer: httpx2.Response) -> dict[str, Any]:
        *notes, message = said(answer)
        self.wrong += [f"{method}: {note['method']}" for note in notes if not self._may_hear(note)]
        code = message["error"]["code"] if "error" in message else None
        if code in FORBIDDEN_CODES[self._era]:
            self.wrong.append(f"{method}: code {code}")
        if answer.status_code not in ((200, 400) if code == -32021 else (200,)):
            self.wrong.append(f"{method}: code {code} with HTTP {answer.status_code}")
        problems = _odd(method, message.get("result", {}), self._era) if "result" in message else ()
        self.wrong += [f"{method}: {problem}" for problem in problems]
        return message

    def _may_hear(self, note: dict[str, Any]) -> bool:
        """Whether what is told before an answer is for this client: it wants no progress, and declares nothing."""
        return self._era == "legacy" and note["method"] == "notifications/message"


def given(method: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the result of an answer. Raises `NoResult`."""
    if "result" not in answer:
        raise NoResult(f"{method}: {answer}")
    result: dict[str, Any] = answer["result"]
    return result


def said(answer: httpx2.Response) -> list[dict[str, Any]]:
    """Return the messages of an answer, one as JSON or all events of a stream; the last one answers the request."""
    if answer.headers["content-type"].startswith("text/event-stream"):
        lines = [line for line in answer.text.splitlines() if line.startswith("data: {")]  # the first may be empty
        return [json.loads(line.removeprefix("data: ")) for line in lines]
    return [answer.json()]


def _odd(method: str, result: dict[str, Any], era: str) -> Iterator[str]:
    """Say what of a result its era does not know."""
    if era == "legacy":
        yield from (f"{name} in a legacy result" for name in MODERN_MEMBERS if name in result)
        if META_SERVER_INFO in (result.get("_meta") or {}):
            yield "serverInfo in the _meta of a legacy result"
    else:
        if result.get("resultType") != "complete":
            yield f"resultType {result.get('resultType')!r}"
        if method in CACHED and not (isinstance(result.get("ttlMs"), int) and result["ttlMs"] >= 0):
            yield f"ttlMs {result.get('ttlMs')!r}"
        if method in CACHED and result.get("cacheScope") not in ("public", "private"):
            yield f"cacheScope {result.get('cacheScope')!r}"
    yield from (f"{name} is null" for name, value in result.items() if value is None)
    if method == "tools/call" and not isinstance(result.get("content"), list):
        yield f"content {result.get('content')!r}"
    if "tasks" in (result.get("capabilities") or {}) and (era == "modern" or "list" in result["capabilities"]["tasks"]):
        yield "the capability tasks"
    if method == "initialize" and not {"name", "version"} <= result.get("serverInfo", {}).keys():
        yield "no serverInfo"
    for member, key in LISTS.items():
        names = [each[key] for each in result.get(member, ())]
        yield from (f"{name} twice" for name in set(names) if names.count(name) > 1)
        for each in result.get(member, ()):
            yield from (f"{each[key]}: {problem}" for problem in _odd_definition(each, member == "tools", era))


def _odd_definition(definition: dict[str, Any], is_tool: bool, era: str) -> Iterator[str]:
    if is_tool and (definition.get("inputSchema") or {}).get("type") != "object":
        yield "a schema that is of no object"
    if era == "modern" and "execution" in definition:
        yield "execution"
    arguments = definition.get("arguments") or ()
    for part in (definition, definition.get("annotations") or {}, *arguments):
        yield from (f"{name} is null" for name, value in part.items() if value is None)
