"""The wrong calls that models make, and the answer each must get, through the gateway to servers that hold them.

`tests/corpus/model_mistakes.jsonl` has a call a line: `about` says what is odd, `call` is the params of `tools/call`,
`then` what must happen: `tool` and `arguments` that arrive; `code`, words (`says`) and the `schema` of an error (a
result, unless `protocol` says that it is JSON-RPC's); the `first` path of a discover (null: none), the `only` server in
it, words of its `notice`; the resource it `reads`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from supervisor.metatools import definitions
from tests.fakes.failures import failure
from tests.fakes.published import Published, published

CORPUS = Path(__file__).parents[2] / "corpus" / "model_mistakes.jsonl"
TEXT = {"type": "string"}
REPOSITORY = {"owner": TEXT, "repo": TEXT}


def tool(name: str, description: str, required: tuple[str, ...] = (), /, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": description, "inputSchema": schema}


SERVERS: dict[str, list[dict[str, Any]]] = {
    "github": [
        tool(
            "create_issue",
            "Create an issue in a repository.",
            ("owner", "repo", "title"),
            **REPOSITORY,
            title=TEXT,
            body=TEXT,
            labels={"type": "array", "items": TEXT},
            draft={"type": "boolean"},
        ),
        tool(
            "list_issues",
            "List the issues of a repository.",
            ("owner", "repo"),
            **REPOSITORY,
            page={"type": "integer"},
            assignee={"type": ["string", "null"]},
        ),
    ],
    "files": [
        tool("read_file", "Read a text file.", ("path",), path=TEXT) | {"annotations": {"readOnlyHint": True}},
        tool("write_file", "Write a text file.", ("path", "content"), path=TEXT, content=TEXT),
        tool("move_file", "Move a file.", ("source", "destination"), source=TEXT, destination=TEXT),
        tool("rename", "Give a file another name.", ("path", "name"), path=TEXT, name=TEXT),
        tool("wrap", "Wrap an object.", (), input={"type": "object"}),
    ],
    "mail": [tool("send", "Send a mail.", ("to",), to={"type": "array", "items": TEXT}, options={"type": "object"})],
    "browser": [
        tool(
            "screenshot",
            "Take a picture of the page.",
            ("selector", "type", "clip"),
            selector=TEXT,
            type={"type": "string", "enum": ["png", "jpeg"], "default": "png"},
            clip={"type": "object", "properties": {"x": TEXT}, "default": {}},
        )
    ],
    "my_db": [
        tool("run_query", "Run SQL.", ("sql",), sql=TEXT, server=TEXT),
        tool("list_tables", "List all tables."),
    ],
}


def cases() -> list[Any]:
    return [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]


def schema_of(name: str) -> Any:
    if name in definitions.SCHEMAS:
        return definitions.SCHEMAS[name]
    server, _, wanted = name.partition(":")
    return next(found["inputSchema"] for found in SERVERS[server.replace("-", "_")] if found["name"] == wanted)


def check_error(answer: Any, then: Any) -> None:
    error = answer["error"] if then.get("protocol") else failure(answer)
    assert error["code"] == then["code"]
    assert all(words in error["message"] for words in then["says"]), error["message"]
    assert "schema" not in error["data"]
    if "schema" in then:
        assert error["message"].count(json.dumps(schema_of(then["schema"]), separators=(",", ":"))) == 1


def check_page(answer: Any, then: Any) -> None:
    page = json.loads(answer["result"]["content"][0]["text"])
    rows = page["tools"]
    paths = [row.get("tool_path") or row.get("uri") for row in rows]
    assert paths[:1] == ([then["first"]] if then["first"] else [])
    if "only" in then:
        assert all(path.startswith((f"{then['only']}:", f"{then['only']}|")) for path in paths)
    assert all(words in page["notice"] for words in then.get("notice", ()))


async def check(servers: Published, case: Any) -> None:
    then = case["then"]
    answer = await servers.answer(case["call"])
    calls = servers.take_calls()
    if "code" in then:
        check_error(answer, then)
    elif "first" in then:
        check_page(answer, then)
    elif "reads" in then:
        assert "hello" in json.dumps(answer["result"]), answer
    else:
        assert answer.get("result", {}).get("isError") is False, answer
        assert [(f"{server}:{name}", arguments) for server, name, arguments in calls] == [
            (then["tool"], then["arguments"])
        ]
        return
    assert calls == []


async def test_every_mistake_of_a_model_gets_the_answer_it_must_get() -> None:
    failed: list[str] = []
    async with published(**SERVERS) as servers:
        for case in cases():
            try:
                await check(servers, case)
            except (AssertionError, KeyError) as error:
                failed.append(f"{case['about']}: {case['call']} {error!r}"[:1500])
    assert failed == []
    assert len(cases()) >= 60


def test_no_mistake_is_in_the_corpus_twice() -> None:
    calls = [json.dumps(case["call"], sort_keys=True) for case in cases()]
    assert len(set(calls)) == len(calls)
