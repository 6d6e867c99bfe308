"""Any JSON that a server of either era says, at every door, for clients of every revision: it arrives whole."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from actors.protocol.agreement.versions import LEGACY_VERSIONS, META_SERVER_INFO, MODERN_VERSIONS, Era
from supervisor.service.client import Client
from supervisor.service.port import Service, answer
from tests.fakes.exchanges import exchange
from tests.fakes.json_texts import OBJECTS, STRINGS, VALUES, arrays, objects, read
from tests.fakes.published import Served, served
from tests.fakes.whole_server import WholeServer

CLIENTS = [
    *(Client(version=version) for version in LEGACY_VERSIONS),
    *(Client(era="modern", version=version) for version in MODERN_VERSIONS),
]
TOOLS = [
    {"name": "plain", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}},
    {"name": "listing", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}},
]
UNKNOWN_BEFORE = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
Pairs = list[tuple[str, Any]]


class Told:
    """A text block: with the JSON of `value` as its text, or, without one, in place of another block."""

    def __init__(self, *value: Any) -> None:
        self.value = value


class Sayer(WholeServer):
    """A server that answers every request about one thing with the same text."""

    said = b"{}"

    def _result(self, method: str, params: Any) -> Any:
        if method in ("tools/call", "prompts/get", "resources/read", "x-own/method"):
            return self.said
        if method == "prompts/list":
            return {"prompts": [{"name": "p"}]}
        return super()._result(method, params)


# What should arrive, said in another way ------------------------------------------------------------------------------


def expected(said: bytes, written: Era, client: Client, *, wrapped: bool) -> Pairs:
    """What a client should read of the result of a call; blocks that are made on the way are `Told`."""
    pairs: Pairs = list(read(said))
    optional = {"_meta", "isError", *({"structuredContent"} if written == "legacy" else ())}
    pairs = [pair for pair in pairs if pair[1] is not None or pair[0] not in optional]
    if client.era == "modern":
        complete = written == "modern" and "resultType" in dict(pairs)
        return pairs if complete else [("resultType", "complete"), *without(pairs, "resultType")]
    if written == "modern":
        pairs = without(pairs, "resultType", "ttlMs", "cacheScope")
        pairs = [pair for pair in map(anonymous, pairs) if pair != ("_meta", None)]
    if client.version < "2025-06-18":
        structured = [value for name, value in pairs if name == "structuredContent"]
        pairs = without(pairs, "structuredContent")
        pairs = with_text(pairs, structured[0]) if structured else pairs
    else:
        value = dict(pairs).get("structuredContent", ())
        inside = wrapped or not isinstance(value, tuple)
        pairs = [
            (name, (("result", each),) if inside and name == "structuredContent" else each) for name, each in pairs
        ]
        pairs = pairs if isinstance(value, tuple) else with_text(pairs, value)
    return [(name, known(each, client.version) if name == "content" else each) for name, each in pairs]


def without(pairs: Pairs, *names: str) -> Pairs:
    return [pair for pair in pairs if pair[0] not in names]


def anonymous(pair: tuple[str, Any]) -> tuple[str, Any]:
    """A `_meta` without the name of the server; None if nothing is left."""
    name, value = pair
    if name != "_meta" or not isinstance(value, tuple) or META_SERVER_INFO not in dict(value):
        return pair
    return name, tuple(without(list(value), META_SERVER_INFO)) or None


def kind(block: Any) -> Any:
    return dict(block).get("type") if isinstance(block, tuple) else None


def with_text(pairs: Pairs, value: Any) -> Pairs:
    blocks = dict(pairs).get("content", [])
    if not isinstance(blocks, list) or any(kind(block) == "text" for block in blocks):
        return pairs
    return list({**dict(pairs), "content": [*blocks, Told(value)]}.items())


def known(blocks: Any, version: str) -> Any:
    if not isinstance(blocks, list):
        return blocks
    return [Told() if version < UNKNOWN_BEFORE.get(str(kind(each)), "") else each for each in blocks]


def alike(got: Any, wanted: Any) -> bool:
    """Whether what arrived is what was expected; blocks that are texts now are looked at by their own tests."""
    if not isinstance(wanted, list):
        return bool(got == wanted)
    return len(got) == len(wanted) and all(map(same_block, got, wanted))


def same_block(got: Any, wanted: Any) -> bool:
    if not isinstance(wanted, Told):
        return bool(got == wanted)
    return kind(got) == "text" and (not wanted.value or read(dict(got)["text"].encode()) == wanted.value[0])


# Doors ----------------------------------------------------------------------------------------------------------------


async def result(door: Service, client: Client, method: str, params: Any) -> Pairs:
    said = await answer(door, exchange(client, method, json.dumps(params).encode()))
    assert said.good, said.body
    return list(dict(read(said.body))["result"])


BLOCKS = st.one_of(
    objects(VALUES, type=st.sampled_from(["text", "image", "audio", "resource_link", "x"]).map(json.dumps)), VALUES
)
META = objects(VALUES, **{META_SERVER_INFO: OBJECTS})
RESULTS = objects(
    VALUES,
    content=arrays(BLOCKS),
    structuredContent=VALUES,
    _meta=META,
    resultType=st.just('"complete"'),
    ttlMs=st.just("5"),
    cacheScope=st.just('"public"'),
)
SOME = settings(
    max_examples=6,  # each starts a gateway and makes up to a hundred calls
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def on_one_line(text: str) -> bytes:
    return text.replace("\n", " ").encode()


@pytest.mark.parametrize("written", ["legacy", "modern"])
@SOME
@given(said=st.lists(RESULTS.map(on_one_line), min_size=4, max_size=8))
def test_results_of_tools_stay_whole(written: Era, said: list[bytes]) -> None:
    async def calls() -> None:
        server = Sayer(written, tools=TOOLS)
        async with served({"whole": server}, era=written) as running:
            for number, server.said in enumerate(said):
                for door in ("servers/whole", "all", ""):
                    await called(running, door, ("plain", "listing")[number % 2], written, server.said)

    trio.run(calls)


async def called(running: Served, door: str, tool: str, written: Era, said: bytes) -> None:
    """Call a tool at a door for clients of each revision, and look at what each gets."""
    service = running.doors.find(door).service
    params: Any = {"name": f"whole__{tool}" if door == "all" else tool}
    if not door:
        params = {"name": "execute_mcp_tool", "arguments": {"tool_path": f"whole:{tool}", "arguments": {}}}
    for client in CLIENTS:
        got = await result(service, client, "tools/call", params)
        wanted = expected(said, written, client, wrapped=bool(door) and tool == "listing")
        assert [name for name, _ in got] == [name for name, _ in wanted], (door, client)
        for (member, new), (_, old) in zip(got, wanted, strict=True):
            assert alike(new, old) if member == "content" else new == old, (door, client, member)


# Results of other methods ---------------------------------------------------------------------------------------------

OF_THE_ERA = ("resultType", "ttlMs", "cacheScope")
MORE: dict[str, st.SearchStrategy[str]] = {"_meta": META, "ttlMs": st.just("5"), "isError": VALUES}
PROMPTS = objects(VALUES, messages=arrays(objects(VALUES, content=BLOCKS)), **MORE)
CONTENTS = arrays(objects(VALUES, uri=STRINGS, text=STRINGS, _meta=META))
READ = objects(VALUES, ["contents"], contents=CONTENTS, **MORE)
DOORS = {"prompts/get": ("servers/whole", "all", ""), "resources/read": ("servers/whole", "all", "")}
NAMES = {"prompts/get": {"servers/whole": "p", "all": "whole__p", "": "whole:p"}}


def other(said: bytes, written: Era, client: Client) -> Pairs:
    """What a client should read of the result of another method, without what the eras add to results."""
    pairs = [pair for pair in read(said) if pair[0] not in OF_THE_ERA]
    optional = {"_meta", "isError", *({"structuredContent"} if written == "legacy" else ())}
    pairs = [pair for pair in pairs if pair[1] is not None or pair[0] not in optional]
    if written == "modern" and client.era == "legacy":
        pairs = [pair for pair in map(anonymous, pairs) if pair != ("_meta", None)]
    return pairs


async def asked(running: Served, door: str, method: str, written: Era, said: bytes) -> None:
    """Ask at a door for clients of each revision, and look at what each gets."""
    service = running.doors.find(door).service
    params = {"uri": "file:///a", "name": NAMES.get(method, {}).get(door, "")}
    for client in CLIENTS:
        got = without(await result(service, client, method, params), *OF_THE_ERA)
        wanted = other(said, written, client)
        assert [name for name, _ in got] == [name for name, _ in wanted], (door, client)
        for (member, new), (_, old) in zip(got, wanted, strict=True):
            if member == "messages" and method == "prompts/get":
                assert all(map(partial(same_message, client.version), new, old)), (door, client)
            else:
                assert new == old, (door, client, member)


def same_message(version: str, got: Any, wanted: Any) -> bool:
    content = dict(wanted).get("content")
    block = known([content], version)[0]
    return without(got, "content") == without(wanted, "content") and same_block(dict(got).get("content"), block)


def holds_whole(method: str, written: Era, said: list[bytes]) -> None:
    async def requests() -> None:
        server = Sayer(written, tools=TOOLS)
        async with served({"whole": server}, era=written) as running:
            for server.said in said:
                for door in DOORS.get(method, ("servers/whole",)):
                    await asked(running, door, method, written, server.said)

    trio.run(requests)


FEW = settings(SOME, max_examples=3)


@pytest.mark.parametrize("written", ["legacy", "modern"])
@FEW
@given(said=st.lists(PROMPTS.map(on_one_line), min_size=4, max_size=8))
def test_prompts_stay_whole(written: Era, said: list[bytes]) -> None:
    holds_whole("prompts/get", written, said)


@pytest.mark.parametrize("written", ["legacy", "modern"])
@FEW
@given(said=st.lists(READ.map(on_one_line), min_size=4, max_size=8))
def test_contents_of_resources_stay_whole(written: Era, said: list[bytes]) -> None:
    holds_whole("resources/read", written, said)


@pytest.mark.parametrize("written", ["legacy", "modern"])
@FEW
@given(said=st.lists(objects(VALUES, **MORE).map(on_one_line), min_size=4, max_size=8))
def test_results_of_methods_that_we_do_not_know_stay_whole(written: Era, said: list[bytes]) -> None:
    holds_whole("x-own/method", written, said)
