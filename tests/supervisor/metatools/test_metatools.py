"""The meta-tools' definitions, and every mistake of a model that is understood or answered."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import InvalidArguments
from actors.protocol.wire import jsonrpc
from supervisor.metatools import arguments as tools
from supervisor.metatools import execution, lenient_json
from supervisor.metatools.definitions import BY_EFFECT, DEFINITIONS, KINDS
from supervisor.tokens.counting import META_TOKENS, META_TOKENS_BY_EFFECT, Tiktoken, count_tool, load_encoding
from tests.fakes.json_texts import raw

PATH = "github:create_issue"


def execute(value: Any) -> tuple[str, Any]:
    call = execution.execute(raw(value))
    return call.tool_path, json.loads(bytes(call.arguments))


def test_the_whole_list_costs_at_most_500_tokens_and_the_constant_is_what_is_counted() -> None:
    tokenizer = Tiktoken(load_encoding())
    assert tokenizer.count(jsonrpc.encode({"tools": DEFINITIONS}).decode()) <= 500
    counted = (
        count_tool(tokenizer, tool["name"], tool["description"], msgspec.json.encode(tool["inputSchema"]))
        for tool in DEFINITIONS
    )
    assert sum(counted) == META_TOKENS


def test_with_the_one_that_only_reads_they_cost_at_most_600_tokens() -> None:
    tokenizer = Tiktoken(load_encoding())
    assert tokenizer.count(jsonrpc.encode({"tools": BY_EFFECT}).decode()) <= 600
    counted = (
        count_tool(tokenizer, tool["name"], tool["description"], msgspec.json.encode(tool["inputSchema"]))
        for tool in BY_EFFECT
    )
    assert sum(counted) == META_TOKENS_BY_EFFECT


def test_the_one_that_only_reads_takes_what_the_other_one_takes() -> None:
    four, (run, reads) = [*DEFINITIONS], [each for each in BY_EFFECT if each["name"].startswith("execute")]
    assert [each for each in BY_EFFECT if each is not reads] == four
    assert BY_EFFECT.index(reads) == four.index(run) + 1
    assert reads["annotations"] == {"readOnlyHint": True}
    assert reads["inputSchema"]["properties"].keys() == run["inputSchema"]["properties"].keys()
    assert reads["inputSchema"]["required"] == run["inputSchema"]["required"]
    assert "description" not in json.dumps(reads["inputSchema"])


def test_an_object_of_thousands_that_names_a_path_is_no_call_in_a_call() -> None:
    own = {"tool_path": PATH, "arguments": {}, **{f"k{number}": 0 for number in range(2000)}}
    assert execute({"tool_path": PATH, "arguments": own}) == (PATH, own)


def test_arguments_that_are_an_object_are_not_touched() -> None:
    text = b'{ "a" : 1.0, "big": 12345678901234567890123, "e": "\\u00e9" }'
    found = execution.execute(msgspec.Raw(b'{"tool_path":"a:b","arguments":' + text + b"}"))
    assert bytes(found.arguments) == text


def test_an_error_names_the_keys_that_were_received_and_no_values() -> None:
    with pytest.raises(InvalidArguments) as caught:
        execution.execute(raw({"tol_path": PATH, "secret": "s3cr3t-value"}))
    assert "'tol_path' (string), 'secret' (string)" in caught.value.message
    assert "s3cr3t-value" not in caught.value.message


def test_where_several_may_stand_an_error_says_both_ways() -> None:
    with pytest.raises(InvalidArguments, match=r"'tool_path' must be a string such as .*, or 'calls' a list of calls"):
        execution.asked_calls(raw({"calls": []}))
    with pytest.raises(InvalidArguments, match=r"'query' must be a string that says .*, or 'queries' a list of such"):
        tools.discover(raw({"queries": []}), 50)


@pytest.mark.parametrize("server", [5, {"a": 1}, [5], True])
def test_a_server_that_is_no_name_is_refused(server: Any) -> None:
    with pytest.raises(InvalidArguments, match="list_mcp_resources: 'server' must be the name of a server"):
        tools.list_resources(raw({"server": server}))


@pytest.mark.parametrize("server", [None, "", [], {}])
def test_no_server_is_no_restriction(server: Any) -> None:
    assert tools.list_resources(raw({"server": server})).servers == frozenset()


def test_a_deep_nest_is_refused_and_does_not_crash() -> None:
    for depth in (10, 900, 100_000):
        text = b'{"tool_path":' * depth + b'"x"' + b"}" * depth
        with pytest.raises(InvalidArguments):
            execution.execute(msgspec.Raw(text))


@pytest.mark.case("Q03")
@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (-1, 1), (0, 1), (1, 1), (2.5, 2), (50, 50), (10**9, 50), (10**400, 50), (-(10**400), 1), ("10", 10),
        (" 7 ", 7), ("2.5", 2), ("-3", 1), ("9" * 5000, 50), ("inf", 50), (None, 10),
    ],
)  # fmt: skip
def test_limits_are_clamped(limit: Any, expected: int) -> None:
    assert tools.discover(raw({"query": "q", "limit": limit}), 50).limit == expected


@pytest.mark.case("Q03")
@pytest.mark.parametrize("limit", ["NaN", "nan", "many", "", "²", True, False, [5], {"n": 1}])
def test_a_limit_that_is_no_number_is_refused(limit: Any) -> None:
    with pytest.raises(InvalidArguments, match="number from 1 to 50"):
        tools.discover(raw({"query": "q", "limit": limit}), 50)


def test_the_default_limit_obeys_the_maximum() -> None:
    assert tools.discover(raw({"query": "q"}), 5).limit == 5
    assert tools.discover(raw({"query": "q"}), 50).limit == 10


@pytest.mark.parametrize("key", ["requires_confirmation", "requiresConfirmation"])
def test_a_confirmation_is_wanted_or_not_and_nothing_else(key: str) -> None:
    read = [tools.discover(raw({"query": "q", key: value}), 50) for value in (True, False, None)]
    assert [each.requires_confirmation for each in read] == [True, False, None]
    with pytest.raises(InvalidArguments, match="'requires_confirmation' must be true or false"):
        tools.discover(raw({"query": "q", key: "perhaps"}), 50)


def read(written: Any, most: int) -> tools.Discover | None:
    try:
        return tools.discover(raw(written), most)
    except InvalidArguments:
        return None


QUERIES = st.text(max_size=9) | st.sampled_from(['{"query":"x"}', ' {"q":1}', "{", " ", '"x"', "```{}```"])
LIMITS = st.none() | st.integers() | st.sampled_from([10**400, 2.0, 2.5, True])
KIND_LISTS = st.none() | st.lists(st.sampled_from([*KINDS, "tools"]), max_size=3)


@given(QUERIES, LIMITS, KIND_LISTS, st.integers(1, 50))
def test_a_query_as_the_schema_wants_it_is_read_as_any_other(query: str, limit: Any, kinds: Any, most: int) -> None:
    written = {"query": query, "limit": limit, "kinds": kinds}
    assert read(written, most) == read({**written, "beside": 0}, most)


def test_a_query_is_unwrapped_a_few_times_and_no_more() -> None:
    written: Any = {"query": "read"}
    for _ in range(lenient_json.MAX_NESTING):
        written = {"query": written}
    assert tools.discover(raw(written), 50).query == "read"
    with pytest.raises(InvalidArguments, match="'query' must be a string"):
        tools.discover(raw({"query": written}), 50)


def test_a_query_of_any_length_that_is_read_at_all_is_kept_whole() -> None:
    assert len(tools.discover(raw({"query": "x" * 200_000}), 50).query) == 200_000


def test_a_resource_of_one_server_with_another_beside_it_is_refused() -> None:
    assert tools.read_resource(raw({"uri": "docs|file:///a", "server": "Docs"})) == "docs|file:///a"
    assert tools.read_resource(raw({"uri": "http://a|b", "server": "docs"})) == "docs|http://a|b"
    with pytest.raises(InvalidArguments, match="'uri' is of server 'docs', and beside it stands another"):
        tools.read_resource(raw({"uri": "docs|file:///a", "server": "wiki"}))
    with pytest.raises(InvalidArguments, match=f"'uri' is of server '{'d' * 64}', and beside it stands another"):
        tools.read_resource(raw({"uri": f"{'d' * 65}|file:///a", "server": "wiki"}))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (" docs|file:///a\n", "docs|file:///a"),
        (" file:///a", "file:///a"),
        ({"uri": " file:///a ", "server": " docs "}, "docs|file:///a"),
        ({"uri": "file:///a", "servers": ["docs"]}, "docs|file:///a"),
        ({"uri": "docs|file:///a", "server": 3}, "docs|file:///a"),
        ({"uri": "docs|file:///a", "servers": ["wiki", "docs"]}, "docs|file:///a"),
        ({"uri": "urn:a|b", "server": "docs"}, "docs|urn:a|b"),
        ({"uri": "/a|b", "server": "docs"}, "docs|/a|b"),
    ],
)
def test_a_resource_is_understood_in_whichever_way_its_server_stands_there(written: Any, meant: str) -> None:
    assert tools.read_resource(raw(written)) == meant


@pytest.mark.parametrize("written", ["read me the notes", {"uri": "  ", "server": "docs"}])
def test_a_sentence_is_no_resource_and_nor_is_nothing(written: Any) -> None:
    with pytest.raises(InvalidArguments):
        tools.read_resource(raw(written))


@pytest.mark.parametrize(
    "written",
    [
        {"uri": "file:///a", "server": "docs", "server_name": "wiki"},
        {"server": "wiki", "arguments": {"uri": "file:///a", "server": "docs"}},
        {"server": "wiki", "arguments": {"uri": "docs|file:///a"}},
        {"servers": ["wiki"], "uri": "docs|file:///a"},
    ],
)
def test_a_resource_of_two_servers_is_read_from_none(written: Any) -> None:
    with pytest.raises(InvalidArguments, match=r"'server' is there with different values|beside it stands another"):
        tools.read_resource(raw(written))


def test_a_search_among_two_servers_under_two_keys_is_refused() -> None:
    with pytest.raises(InvalidArguments, match="'server' is there with different values"):
        tools.discover(raw({"query": "x", "server": "docs", "servers": ["wiki"]}), 50)
    assert tools.discover(raw({"query": "x", "server": "docs", "server_name": "docs"}), 50).servers == {"docs"}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        [*tools.PATH_KEYS, *tools.ARGUMENT_KEYS, "query", "limit", "kinds", "uri", "x"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(values)
def test_nothing_but_an_understood_call_or_a_typed_error_comes_out(value: Any) -> None:
    text = raw(value)
    for read in (execution.execute, tools.read_resource, lambda given: tools.discover(given, 50)):
        try:
            understood = read(text)
        except InvalidArguments as error:
            json.loads(jsonrpc.encode(error.data()))
        else:
            if isinstance(understood, execution.Execute):
                assert isinstance(json.loads(bytes(understood.arguments)), dict)
                assert understood.tool_path.strip()


def test_json_that_python_cannot_hold_is_no_bug() -> None:
    with pytest.raises(InvalidArguments):
        tools.discover(msgspec.Raw(b'{"query": "\\ud800"}'), 50)
    assert tools.discover(msgspec.Raw(b'{"limit": 1e999, "query": "a b"}'), 50).limit == 10


# Bounds ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"query": "x", "servers": [f"s{number}" for number in range(101)]}, "101 servers at once, 100 are the most"),
        ({"query": "x", "servers": ["s" * 1001]}, "one of the servers is over 1000 characters"),
        ({"query": ["x"] * 101}, "101 queries at once, 100 are the most"),
        ({"query": "x", "kinds": ["tool"] * 101}, "101 kinds at once, 100 are the most"),
        ({"query": "x", "kinds": "tool " * 101}, "101 kinds at once, 100 are the most"),
        ({"query": "x" * 300_000}, "262144 are the most"),
        ({"query": "x", **{f"k{number}": 0 for number in range(1001)}}, "over 1000 members"),
    ],
)
def test_a_discover_that_names_too_much_is_told_the_limit(asked: Any, said: str) -> None:
    with pytest.raises(InvalidArguments, match=said):
        tools.discover(raw(asked), 50)


@pytest.mark.parametrize(("sign", "limit"), [("", 50), ("-", 1)])
def test_a_limit_of_5000_digits_is_only_a_large_number(sign: str, limit: int) -> None:
    asked = tools.discover(msgspec.Raw(b'{"query":"x","limit":%b%b}' % (sign.encode(), b"9" * 5000)), 50)
    assert asked.limit == limit


MANY = b",".join(b'"k%06d":0' % number for number in range(30_000))
LISTS = b",".join([b"[]"] * 100_000)


@pytest.mark.parametrize("arguments", [b"{%b}" % MANY, b'{"rows":[%b]}' % LISTS, b'{"text":"%b"}' % (b"x" * 10**6)])
def test_large_arguments_written_as_the_schema_wants_them_are_not_touched(arguments: bytes) -> None:
    found = execution.execute(msgspec.Raw(b'{"tool_path":"a:b","arguments":%b}' % arguments))
    assert bytes(found.arguments) == arguments


@pytest.mark.parametrize(
    "written",
    [
        b'{"tool_path":"a:b",%b}' % MANY,
        b'{"tool_path":{%b}}' % MANY,
        b'{"arguments":{"tool_path":"a:b",%b}}' % MANY,
        b"{%b}" % MANY,
    ],
)
def test_a_call_that_is_written_otherwise_and_is_that_large_is_told_so(written: bytes) -> None:
    with pytest.raises(InvalidArguments, match="over 1000 members are read in no place but 'arguments'"):
        execution.execute(msgspec.Raw(written))


def test_a_large_text_beside_the_path_is_understood() -> None:
    text = "x" * 500_000
    assert execute({"tool_path": PATH, "content": text}) == (PATH, {"content": text})
    assert execute({"tool_path": PATH, "args": json.dumps({"content": text})}) == (PATH, {"content": text})


@pytest.mark.parametrize("written", [b'{"uri":[%b]}' % LISTS, b'{"uri":"%b"}' % (b"x" * 300_000)])
def test_a_resource_that_nobody_could_mean_is_refused(written: bytes) -> None:
    with pytest.raises(InvalidArguments):
        tools.read_resource(msgspec.Raw(written))
