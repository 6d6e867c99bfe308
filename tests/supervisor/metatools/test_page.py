"""Pages of hits: what a row shows, what fits the budget, and what is said beside it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.catalogue.documents import documents
from actors.catalogue.names import ServerNames
from actors.catalogue.offer import Offer, Prompt, Resource, Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.life.states import State
from actors.messages import ServerStatus
from actors.protocol.wire.json import quoted
from actors.protocol.wire.jsonrpc import encode
from actors.search.document import Document, Found, Hit
from actors.search.index import Index
from actors.search.segment import analyse
from benchmarks.discovery import discover_at_once
from supervisor.metatools.arguments import Discover
from supervisor.metatools.discovery import DiscoverySettings
from supervisor.metatools.inventory import META_BYTES
from supervisor.metatools.page import KEPT, Context, build_page, fitting_hits
from supervisor.metatools.servers import FITS, NOTHING
from supervisor.tokens.counting import Tiktoken, load_encoding

KINDS = frozenset({"tool", "resource", "template", "prompt"})


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value, ensure_ascii=False).encode())


def tool(name: str, description: str = "", parameters: int = 2, **more: Any) -> Tool:
    properties = {f"parameter_{n}": {"type": "string", "description": f"The value of {n}"} for n in range(parameters)}
    schema = {"type": "object", "properties": properties, "required": ["parameter_0"]}
    fields: dict[str, Any] = {"input_schema": raw(schema), "required": ("parameter_0",), **more}
    return Tool(name=name, described=quoted(description or f"Does {name.replace('_', ' ')} for you."), **fields)


def catalogue(**offers: Offer) -> Catalogue:
    index = Index.empty().rebuild(analyse(name, documents(name, offer)) for name, offer in offers.items())
    entries = {name: Entry.make(name, "stdio", offer) for name, offer in sorted(offers.items())}
    return Catalogue(revision=7, entries=entries, index=index, indexed=True)


def search(seen: Catalogue, query: str, budget: int = 2000, limit: int = 10, **statuses: ServerStatus) -> Any:
    wanted = Discover(query=query, limit=limit, limited=True, kinds=KINDS)
    clock = iter([0.0, 0.001234])
    settings = DiscoverySettings(discover_token_budget=budget)
    return json.loads(encode(discover_at_once(seen, statuses, wanted, settings, lambda: next(clock))))


FILES = catalogue(files=Offer(tools=(tool("read_file", "Read a file."), tool("write_file", "Write a file."))))


def test_an_answer_has_the_documented_fields() -> None:
    answer = search(FILES, "read a file")
    assert answer["query"] == "read a file"
    assert answer["search_time_ms"] == 1.23
    assert answer["catalog_revision"] == 7
    assert answer["total_found"] == len(answer["tools"]) == 2
    row = answer["tools"][0]
    assert row["tool_path"] == "files:read_file"
    assert row["description"] == "Read a file."
    assert row["server_name"] == "files"
    assert row["transport"] == "stdio"
    assert 0 <= row["relevance_score"] <= answer["tools"][1]["relevance_score"] <= 1
    assert "notice" not in answer


def test_complete_schemas_replace_signatures_where_they_fit() -> None:
    rows = search(FILES, "read a file")["tools"]
    assert "inputSchema" in rows[0]
    assert not any("required" in row or ("inputSchema" in row and "signature" in row) for row in rows)
    tight = search(FILES, "read a file", budget=260)["tools"]
    assert tight[0]["inputSchema"]["required"] == ["parameter_0"]
    assert tight[1]["signature"] == "write_file(parameter_0: string, parameter_1?: string)"


def test_the_exact_path_is_complete_whatever_it_costs() -> None:
    seen = catalogue(big=Offer(tools=(tool("giant", parameters=3000), tool("small"))))
    for spelling in ("big:giant", "big-giant", "mcp__big__giant"):
        row = search(seen, spelling, budget=300)["tools"][0]
        assert row["tool_path"] == "big:giant"
        assert len(row["inputSchema"]["properties"]) == 3000
    assert "inputSchema" not in search(seen, "giant", budget=300)["tools"][0]


def test_a_best_hit_whose_schema_is_too_long_says_how_to_get_it() -> None:
    seen = catalogue(big=Offer(tools=(tool("draw_giant", parameters=3000), tool("draw_small"))))
    answer = search(seen, "draw giant things", budget=400)
    assert answer["notice"] == "big:draw_giant has a long inputSchema: that path as query gives it."
    assert "inputSchema" not in answer["tools"][0]
    assert len(search(seen, "big:draw_giant", budget=400)["tools"][0]["inputSchema"]["properties"]) == 3000
    assert "notice" not in search(seen, "big:draw_giant", budget=400)
    assert "notice" not in search(FILES, "read a file")
    name = "draw_" + "x" * 120
    seen = catalogue(big=Offer(tools=(tool(name, parameters=3000), tool("small"))))
    assert search(seen, "draw", budget=400)["notice"] == "Long inputSchema: the first path as query gives it."


HOSTILE = {
    "english": "Create and update issues, labels and milestones of a repository. " * 300,
    "chinese": "数据库查询工具可以读取所有的表格和索引" * 300,
    "emoji": "🔥🎉🚀👍" * 2000,
    "base64": "qZ7xK9vB3nM1pL5wR8tY2uJ6hG4fD0sA" * 300,
    "punctuation": "!@#$%^&*()_+-=[]{}|;:,.<>?/~`\\\"'" * 300,
    "newlines": "a\n\n\tb\n" * 2000,
    "quotes": '"\\' * 4000,
}


@pytest.mark.parametrize("budget", [400, 1000, 2000, 8000])
@pytest.mark.parametrize("text", HOSTILE)
def test_no_page_costs_more_than_its_budget(text: str, budget: int) -> None:
    described = HOSTILE[text]
    tools = tuple(
        tool(f"issue_tool_{n}", described, parameters=n % 12, title=described[:200], meta=raw({"x": described[:3000]}))
        for n in range(60)
    )
    seen = catalogue(tracker=Offer(tools=tools), other=Offer(tools=tools[:20]))
    tokenizer = Tiktoken(load_encoding())
    for query in ("issue tool", "*", described[:500], "tracker"):
        answer = search(seen, query, budget=budget, limit=50)
        assert answer["tools"] or query not in ("issue tool", "*")
        assert tokenizer.count(encode(answer).decode()) <= budget


def test_a_budget_is_used_and_not_only_kept() -> None:
    seen = catalogue(a=Offer(tools=tuple(tool(f"task_{n}", parameters=5) for n in range(50))))
    answer = search(seen, "task", budget=2000, limit=50)
    assert len(answer["tools"]) > 15
    assert Tiktoken(load_encoding()).count(encode(answer).decode()) > 1000


def test_a_list_of_everything_says_what_is_missing() -> None:
    seen = catalogue(a=Offer(tools=tuple(tool(f"task_{n}") for n in range(100))))
    assert search(seen, "*", limit=5)["notice"] == (
        "1 to 5 of 100; for the rest ask the same again with 'cursor' set to next_cursor."
    )
    answer = search(seen, "*", limit=50, budget=1000)
    assert f"1 to {len(answer['tools'])} of 100" in answer["notice"]
    assert "notice" not in search(FILES, "*")


@pytest.mark.parametrize(
    ("query", "text"), [("", "in a few words"), ("x", "in a few words"), ("qqqq zzzz", "Servers: files")]
)
def test_nothing_found_is_answered_with_help(query: str, text: str) -> None:
    answer = search(FILES, query)
    assert answer["tools"] == []
    assert answer["total_found"] == 0
    assert text in answer["notice"]


def test_no_server_at_all_is_said() -> None:
    assert search(catalogue(), "read")["notice"] == "No server is configured."


def test_servers_without_tools_are_told_with_the_reason() -> None:
    def status(state: State, **more: Any) -> ServerStatus:
        return ServerStatus(server="", state=state, wanted="up", since=0.0, **more)

    statuses = {
        "off": status(State.STOPPED, disabled=True),
        "bad": status(State.FAILED, reason="program not found", restarts=1),
        "slow": status(State.SPAWNING, incarnation=1),
    }
    names = ServerNames({}).with_servers(["off", "bad", "slow", "new"])
    nothing = Catalogue(index=Index.empty(), names=names)
    notice = search(nothing, "read", 2000, 10, **statuses)["notice"]
    assert notice.startswith("Still being discovered, ask again: new, slow. No tool can be used: ")
    assert (
        "bad could not be started (program not found); off is not available (it is switched off); tell the user."
        in notice
    )
    asked = search(nothing, "use bad, or what is off", 2000, 10, **statuses)["notice"]
    assert asked.count("bad could not be started") == 1
    assert asked.endswith("ask again: new, slow. No tool can be used.")
    with_files = Catalogue(entries=FILES.entries, index=FILES.index, indexed=True, names=names)
    answer = search(with_files, "read a file", 2000, 10, **statuses)
    assert answer["notice"] == "Still being discovered, ask again: new, slow."
    assert answer["tools"][0]["tool_path"] == "files:read_file"


def test_a_long_query_is_not_repeated_whole() -> None:
    assert len(search(FILES, "read " * 20_000)["query"]) <= 204


def test_hidden_text_is_nowhere() -> None:
    evil = "\x1b[31m\u200b\u202e\U000e0041"
    schema = raw({"type": "object", "properties": {f"a{evil}": {"description": f"x{evil}", "enum": [evil]}}})
    hostile = Tool(
        name="read_file",
        title=evil,
        described=quoted(f"Read{evil} a file"),
        input_schema=schema,
        required=(f"a{evil}",),
        annotations=raw({"readOnlyHint": True, "title": evil, "destructiveHint": "yes", "x": evil}),
        meta=raw({"ui": {"resourceUri": "ui://x"}, "note": evil}),
    )
    other = Offer(
        resources=(Resource(uri="file:///read", name=f"read{evil}", description=f"file{evil}"),),
        prompts=(Prompt(name="read_prompt", description=f"file{evil}"),),
    )
    for query in ("read file", "files:read_file", "*", f"read{evil} file"):
        for budget in (300, 2000):
            text = json.dumps(
                search(catalogue(files=Offer(tools=(hostile,)), more=other), query, budget), ensure_ascii=False
            )
            assert not any(hidden in text for hidden in ("\\u001b", "\u200b", "\u202e", "\U000e0041"))


def test_hints_are_booleans_and_nothing_else() -> None:
    annotations = raw({"readOnlyHint": True, "openWorldHint": False, "title": "x", "idempotentHint": "yes"})
    seen = catalogue(files=Offer(tools=(tool("read_file", annotations=annotations),)))
    assert search(seen, "read file")["tools"][0]["annotations"] == {"readOnlyHint": True, "openWorldHint": False}


@pytest.mark.parametrize("annotations", [b"5", b"[]", b"broken"])
def test_hints_of_another_shape_are_left_out(annotations: bytes) -> None:
    seen = catalogue(files=Offer(tools=(tool("read_file", annotations=msgspec.Raw(annotations)),)))
    assert "annotations" not in search(seen, "read file")["tools"][0]


def test_the_resource_of_a_user_interface_has_its_path() -> None:
    meta = raw({"ui": {"resourceUri": "ui://a", "x": 1}, "ui/resourceUri": "ui://b", "other": 1.5})
    seen = catalogue(files=Offer(tools=(tool("read_file", meta=meta),)))
    expected = {"ui": {"resourceUri": "files|ui://a", "x": 1}, "ui/resourceUri": "files|ui://b"}
    assert search(seen, "read file")["tools"][0]["_meta"] == expected


def test_the_vendor_meta_of_a_tool_is_shown_where_it_is_asked_for_by_path_and_nowhere_else() -> None:
    meta = {"vendor.example/price": {"cents": 5}, "ui": {"resourceUri": "ui://a"}, "note": "a\u001b[31m\u200bb"}
    seen = catalogue(files=Offer(tools=(tool("read_file", meta=raw(meta)), tool("read_dir"))))
    asked = search(seen, "files:read_file")["tools"][0]
    assert asked["_meta"] == {**meta, "ui": {"resourceUri": "files|ui://a"}, "note": "ab"}
    assert search(seen, "read a file")["tools"][0]["_meta"] == {"ui": {"resourceUri": "files|ui://a"}}


def test_a_meta_that_is_too_large_for_a_model_is_left_out_whole() -> None:
    for chars, shown in ((META_BYTES - 30, True), (META_BYTES + 1, False)):
        meta = raw({"vendor.example/text": "x" * chars})
        seen = catalogue(files=Offer(tools=(tool("read_file", meta=meta),)))
        assert ("_meta" in search(seen, "files:read_file")["tools"][0]) is shown


def test_a_server_that_is_down_says_so() -> None:
    down = ServerStatus(server="files", state=State.RESPAWNING, wanted="up", since=0.0, retry_at=1.0, down="error")
    rows = search(FILES, "read file", files=down)["tools"]
    assert [(row["available"], row["retry_after_ms"]) for row in rows] == [(False, 1000)] * 2
    up = ServerStatus(server="files", state=State.DORMANT, wanted="dormant", since=0.0)
    assert "available" not in search(FILES, "read file", files=up)["tools"][0]


def test_other_kinds_are_found_with_what_names_them() -> None:
    offer = Offer(
        resources=(Resource(uri="file:///notes", name="notes", description="All notes"),),
        templates=(Resource(uri="file:///{day}", name="notes of a day", template=True),),
        prompts=(Prompt(name="notes_summary", description="Summarise notes"),),
    )
    rows = {row["kind"]: row for row in search(catalogue(desk=offer), "notes")["tools"]}
    assert rows["resource"]["uri"] == "desk|file:///notes"
    assert rows["template"]["uri"] == "desk|file:///{day}"
    assert rows["prompt"]["prompt"] == "desk-notes_summary"


# Where the fit ends ---------------------------------------------------------------------------------------------------

TASKS = catalogue(a=Offer(tools=tuple(tool(f"task_{n}") for n in range(20))))


def page(*distances: float, ends: bool = True, query: str = "do a task") -> Any:
    """Return the page of hits with these distances."""
    hits = tuple(
        Hit(document=Document(key="", kind="tool", server="a", name=f"task_{n}"), score=1.0, distance=d, exact=False)
        for n, d in enumerate(distances)
    )
    context = Context(seen=TASKS, statuses={}, budget=2000, now=0.0, servers=lambda: 'a "Tasks"')
    return build_page(context, query, Found(hits=hits, total=20), 0.0, ends=ends)


@pytest.mark.parametrize(
    ("distances", "shown"),
    [
        ((0.1, *[0.9] * 9), KEPT),
        ((*[0.1] * 8, 0.9, 0.99), 8),
        ((0.1, 0.9), 2),
        ([FITS] * 10, KEPT),
        ([NOTHING] * 10, KEPT),
        ((), 0),
    ],
)
def test_a_page_ends_where_the_fit_ends_but_not_before_five_rows(distances: Any, shown: int) -> None:
    assert len(page(*distances)["tools"]) == shown
    assert len(page(*distances, ends=False)["tools"]) == len(distances)


def test_a_schema_is_earned_by_a_good_hit() -> None:
    good = page(0.49, 0.6)["tools"]
    assert ["inputSchema" in row for row in good] == [True, False]
    weak = page(0.5, 0.6)
    assert not any("inputSchema" in row for row in weak["tools"])
    assert all("signature" in row for row in weak["tools"])


@pytest.mark.parametrize("best", [FITS, 0.7, 0.79])
def test_a_weak_page_says_so_first_and_how_to_ask(best: float) -> None:
    weak = page(best, *[0.9] * 9)
    assert next(iter(weak)) == "notice"
    assert weak["notice"].startswith("Not sure that anything fits; nearest first. Ask for what a tool should do")
    assert "Servers:" not in weak["notice"]
    assert len(weak["tools"]) == KEPT
    assert "notice" not in page(0.49, 0.6)


@pytest.mark.parametrize("best", [NOTHING, 0.98])
def test_a_page_on_which_nothing_fits_is_short_and_says_what_there_is(best: float) -> None:
    nothing = page(best, *[0.99] * 9)
    assert next(iter(nothing)) == "notice"
    assert nothing["notice"].startswith("No description matches well; nearest servers: a. ")
    assert 'Servers: a "Tasks".' in nothing["notice"]
    assert "Ask for what a tool should do" in nothing["notice"]
    assert len(nothing["tools"]) == KEPT
    shown = {"tool_path", "description", "server_name", "transport", "relevance_score"}
    assert all(row.keys() == shown for row in nothing["tools"])
    assert Tiktoken(load_encoding()).count(encode(nothing).decode()) < 500
    assert len(page(best, *[0.99] * 9, ends=False)["tools"]) == 10


def test_servers_of_other_names_do_not_lengthen_a_page_that_hardly_fits() -> None:
    hits = tuple(
        Hit(document=Document(key="", kind="tool", server=server, name="x"), score=1.0, distance=0.6, exact=False)
        for server in "aaaaabbb"
    )
    assert len(fitting_hits(hits)) == KEPT


def test_an_exact_path_is_answered_with_its_row_alone() -> None:
    answer = search(TASKS, "a:task_7")
    assert [row["tool_path"] for row in answer["tools"]] == ["a:task_7"]
    assert (answer["total_found"], answer["tools"][0]["relevance_score"]) == (1, 0.0)
    assert "inputSchema" in answer["tools"][0]


def test_frameworks_say_nothing_in_a_row() -> None:
    seen = catalogue(files=Offer(tools=(tool("read_file", meta=raw({"_fastmcp": {"tags": ["x"]}, "anthropic/x": 1})),)))
    assert "_meta" not in search(seen, "read file")["tools"][0]


def test_a_short_page_is_no_more_of_one_server_than_half() -> None:
    seen = catalogue(
        a=Offer(tools=tuple(tool(f"task_{n}") for n in range(9))),
        b=Offer(tools=tuple(tool(f"task_{n}") for n in range(9))),
    )
    servers = "aaaabaabbb"
    hits = tuple(
        Hit(
            document=Document(key="", kind="tool", server=server, name=f"task_{servers[:n].count(server)}"),
            score=1.0,
            distance=0.1 if n == 0 else 0.9,
            exact=False,
        )
        for n, server in enumerate(servers)
    )
    shown = build_page(Context(seen=seen, statuses={}, budget=2000, now=0.0), "do", Found(hits=hits, total=10), 0.0)[
        "tools"
    ]
    assert "".join(row["server_name"] for row in shown) == "aaaabbbb"
