"""Every number on every page of the dashboard is that of the calls that were made; one more number fails here."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from supervisor.front.ui.words import clock, number, setting, share
from supervisor.host.datadir import DataDir
from supervisor.host.version import VERSION
from supervisor.tokens.counting import META_TOKENS, count_tool, load_tokenizer
from supervisor.usage.periods import NAMES, WINDOWS, begin_of
from supervisor.usage.records import FAILED, OUTCOMES, UNHEARD
from tests.fakes.mcp_server import FakeServer
from tests.fakes.page_figures import Element, figures_of, read
from tests.scenario.daemon import world
from tests.supervisor import dashboard_figures as wanted
from tests.supervisor.commands.test_cli import ask as command
from tests.supervisor.dashboard_figures import LABELS, Row, Table
from tests.supervisor.dashboard_script import ANY_SIZE, TOOLS, Script, played

pytestmark = pytest.mark.process


class Shown:
    """A daemon at which all calls were made. `rows` is what `/api/calls` says of all but two, which have not ended."""

    def __init__(self, script: Script, rows: list[Row], tokens: dict[str, int]) -> None:
        self.script = script
        self.meta = [row for row in rows if not row["server"]]
        self.rows = [row for row in rows if row["server"]]
        self.tokens = tokens

    def of(self, **members: str) -> list[Row]:
        return [row for row in self.rows if members.items() <= row.items()]

    async def page(self, path: str, user: str = "ana") -> tuple[Element, float]:
        """Return a page, and when it was made."""
        page = read(await self.script.at[user].text(path))
        return page, float(page.one("body").attributes["data-now"])


def check(page: Element, expected: Table, labels_of_it: Collection[str] = ()) -> None:
    """Hold each number of a page against what is expected there, and nothing else. Raises AssertionError."""
    found: dict[str, list[str]] = {}
    for figure in figures_of(page):
        found.setdefault(figure.place, []).append(figure.text)
    labels = set(found.pop("label", []))
    assert labels <= {*LABELS, *labels_of_it}, "a figure has a name that nobody knows"
    assert sorted(found.keys() - expected.keys()) == [], "nobody says what these should be"
    assert sorted(expected.keys() - found.keys()) == [], "the page does not have these"
    for place, texts in found.items():
        right = expected[place]
        if isinstance(right, list):
            assert texts == right, place
        elif isinstance(right, str):
            assert set(texts) == {right}, place
        else:
            assert all(map(right, texts)), (place, texts)


@pytest.mark.parametrize(
    "more", ["<p>7 more</p>", '<a href="/ui?x=7">more</a>', "<dl><div><dt>More</dt><dd>none</dd></div></dl>"]
)
def test_one_more_number_fails(more: str) -> None:
    shown = f"<section id='tools'><h2>10 tools</h2>{more}</section>"
    check(read(shown.replace(more, "")), {"/tools/h2": "10 tools"})
    with pytest.raises(AssertionError, match="nobody says"):
        check(read(shown), {"/tools/h2": "10 tools"})
    with pytest.raises(AssertionError, match="does not have"):
        check(read(shown.replace(more, "")), {"/tools/h2": "10 tools", "/tools/p": "7"})


@asynccontextmanager
async def shown(directory: Path, data: DataDir) -> AsyncIterator[Shown]:
    async with played(directory, data) as script, script.hanging("ben", "stand:hang"):
        calls = (await script.ana.page("/api/calls", limit=500, meta_tools="true"))["calls"]
        await script.ana.until("/api/status", lambda told: all(map(is_measured, told["servers"])))
        yield Shown(script, calls, await tokens_of(script, directory))


def is_measured(row: Row) -> bool:
    return row["server"] != "stand" or row["memory_bytes"] is not None


async def tokens_of(script: Script, directory: Path) -> dict[str, int]:
    """Return what the definition of each tool costs, counted again."""
    tokenizer = await load_tokenizer(directory, 30)
    listed = (await script.at["ana"].at("/mcp/all").rpc("tools/list"))["result"]["tools"]
    costs = {}
    for each in listed:
        server, _, name = each["name"].partition("__")
        costs[f"{server}:{name}"] = count_tool(
            tokenizer, name, each["description"], json.dumps(each["inputSchema"], separators=(",", ":")).encode()
        )
    return costs


def usage_of_process(pid: int) -> tuple[int, float]:
    """Return bytes of memory and seconds of processor time of a process and its children in the same session."""
    pages, ticks = 0, 0
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and (each / "stat").exists():
            fields = (each / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == pid:
                pages, ticks = pages + int(fields[21]), ticks + int(fields[11]) + int(fields[12])
    return pages * os.sysconf("SC_PAGE_SIZE"), ticks / os.sysconf("SC_CLK_TCK")


def servers_table(at: Shown) -> Table:
    """Return the figures of the table of servers. Only one has a process here, and its figures are those of /proc."""
    told: Table = {}
    for name, tools in TOOLS.items():
        figures: Table = {"memory": "-", "memory_sort": "0", "processor": "-"}
        if name == "stand":
            figures = {"memory": is_memory, "memory_sort": is_memory, "processor": matches(r"\d+(\.\d)? %")}
        status: Row = {
            "tools": len(tools),
            "tokens": sum(at.tokens[f"{name}:{tool}"] for tool in tools),
            "in_flight": int(name in ("shop", "stand")),
            "restarts": int(name == "stand"),
            **figures,
        }
        told |= wanted.server_row(name, status, at.of(server=name))
    return told


def is_memory(text: str) -> bool:
    """Tell whether that is the size of a process in Python."""
    if text.isdigit():
        return 2e6 < int(text) < 1e8
    return re.fullmatch(r"\d+(\.\d)? MB", text) is not None and 2 < float(text.split()[0]) < 100


def matches(pattern: str) -> Any:
    return wanted.matches(pattern)


def plots(section: str, rows: list[Row], window: str, now: float) -> Table:
    return wanted.plot_scale(f"/{section}", rows, window, now)


async def each_call_is_remembered_as_it_was_made(at: Shown) -> None:
    remembered = [
        (row["user"], row["client"], row["server"], row["tool"], row["outcome"], row["error"], row["bytes_in"])
        for row in reversed(at.rows + at.meta)
    ]
    made = [
        (call.user, call.client, call.server, call.tool, call.outcome, call.error, call.bytes_in)
        for call in at.script.calls + at.script.meta
    ]
    assert sorted(remembered) == sorted(made)
    assert remembered[len(at.meta) :] == made[: len(at.rows)], "in their order"
    assert [call.bytes_out for call in at.script.calls] == [row["bytes_out"] for row in reversed(at.rows)]
    for row, call in zip(reversed(at.rows), at.script.calls, strict=True):
        assert (row["waited_ms"] > 0) == call.waited
        assert (row["took_ms"] > 0) == (call.outcome != "rejected")
        if (longest := at.script.longest_ms.get(f"{row['server']}:{row['tool']}")) is not None:
            assert row["took_ms"] + row["waited_ms"] <= longest
    (timeout,) = at.of(outcome="timeout")
    assert timeout["took_ms"] >= 290, "its deadline is 300 ms after it came"
    for row, call in zip(reversed(at.meta), at.script.meta, strict=True):
        assert (row["bytes_out"] > 0) == (call.bytes_out == ANY_SIZE)
        assert (row["tokens_shown"] > 0) == (call.bytes_out == ANY_SIZE)


async def every_number_on_the_overview_and_of_servers(at: Shown) -> None:
    every, tools_cost = at.rows, sum(at.tokens.values())
    for window in WINDOWS:
        page, now = await at.page(f"/ui?window={window}")
        tiles: Table = {
            "/tiles/Calls, last hour": number(len(every)),
            "/tiles/Failed, last hour": f"{wanted.failed(every)} {share(wanted.failed(every), len(every))}",
            "/tiles/Not sent, last hour": f"{wanted.not_sent(every)} {share(wanted.not_sent(every), len(every))}",
            "/tiles/Half within, last hour": wanted.near(wanted.percentile(every, 50)),
            "/tiles/95 in 100 within, last hour": wanted.near(wanted.percentile(every, 95)),
            "/tiles/In flight": "2",
            "/tiles/Tokens of all tools": f"{number(tools_cost)} shown: {META_TOKENS}",
        }
        context: Table = {}
        for size in (32_000, 128_000, 200_000, 1_000_000):
            place = f"/tokens/{number(size)} tokens"
            context |= {
                f"{place}/Of a window of": f"{number(size)} tokens",
                f"{place}/all tools take": share(tools_cost, size),
                f"{place}/four meta-tools": share(META_TOKENS, size),
                f"{place}/left for work": number(size - META_TOKENS),
            }
        expected = {
            **wanted.frame(VERSION),
            "/needs/span": "1 question waits for an answer",
            "/title": "(1) Overview · mcpvisor",
            "/h1": "All 3 servers are usable, but the daemon needs you.",
            **tiles,
            **servers_table(at),
            **wanted.windows("/calls", "/ui"),
            **plots("calls", every, window, now),
            **wanted.call_rows("newest", every[:10]),
            **context,
        }
        check(page, expected)
        wanted.check_plots(page.all("figure"), every, window, now)
    page, _ = await at.page("/ui/servers")
    check(page, {**wanted.frame(VERSION), **servers_table(at)})


async def every_number_on_the_page_of_a_server(at: Shown) -> None:
    table = servers_table(at)
    for name, tools in TOOLS.items():
        page, now = await at.page(f"/ui/servers/{name}")
        rows, row = at.of(server=name), await at.script.ana.row(name)
        cost = sum(at.tokens[f"{name}:{tool}"] for tool in tools)
        part = round(cost / sum(at.tokens.values()) * 100, 2)
        of_stand: Table = {
            "/tiles/Processor": matches(r"\d+(\.\d)? % of one, [\d.]+ m?s in all"),
            "/life/li": "killed by signal 9",
            "/log/span": matches(
                r"(started, pid \d+|(recovered, )?ready after .*|died while .* 9|started again in .*)"
            ),
        }
        of_others: Table = {"/tiles/Processor": "-", "/log/span": matches("ready after .*")}
        expected: Table = {
            **wanted.frame(VERSION),
            **dict.fromkeys(("/state/time @title", "/state/time @datetime"), wanted.lately),
            "/state/time": matches(wanted.SPAN.pattern),
            "/tiles/Speaks": f"stdio {'2025-06-18' if name == 'stand' else '2025-11-25'}",
            "/tiles/Version": row["server_version"],
            "/tiles/Tools": str(len(tools)),
            "/tiles/Tokens": f"{cost} {part} % of all",
            "/tiles/Calls, last hour": wanted.calls_tile(rows),
            "/tiles/95 in 100 within, last hour": table[f"/servers/{name}/95 % within"],
            "/tiles/Memory": table[f"/servers/{name}/Memory"],
            "/tiles/Restarts": table[f"/servers/{name}/Restarts"],
            "/tiles/Process": str(row["pid"]) if name == "stand" else "-",
            **dict.fromkeys(("/life/time @title", "/life/time @datetime", "/log/time @datetime"), wanted.lately),
            **dict.fromkeys(("/life/time", "/log/time"), wanted.just_now),
            **dict.fromkeys(("/tiles/Last heard @title", "/tiles/Last heard @datetime"), wanted.lately),
            "/tiles/Last heard": matches(wanted.SPAN.pattern),
            **wanted.windows("/times", f"/ui/servers/{name}"),
            **plots("times", rows, "1h", now),
            "/times/plot life-plot/span": begin_of_hour(now),
            **wanted.call_rows("calls", rows[:10]),
            **tool_rows(at, *(f"{name}:{tool}" for tool in tools)),
            **(of_stand if name == "stand" else of_others),
        }
        values = (await at.script.ana.page("/api/configuration", server=name))["values"]
        for each in values:
            place = f"/configuration/{each['key']}"
            told = {f"{place}/Value": setting(each["value"]), f"{place}/From": each["from"]}
            expected |= {column: text for column, text in told.items() if re.search(r"\d", text)}
        defaults = f"{sum(each['source'] == 'default' for each in values)} defaults"
        times, life, calls = page.all("figure")
        check(page, expected, (defaults, life.one("figcaption").text))
        check_life(life, crashes=int(name == "stand"))
        wanted.check_plots((calls, times), rows, "1h", now)


def begin_of_hour(now: float) -> str:
    return clock(begin_of(WINDOWS["1h"], now), now)


def check_life(figure: Element, *, crashes: int) -> None:
    """Hold the times of all states against the window, and the marks against what was done to the server."""
    caption = figure.one("figcaption").text
    times = [int(value) * wanted.UNITS[unit] / 1000 for value, unit in re.findall(r"(\d+) (s|min)\b", caption)]
    assert 3600 - 60 * len(times) <= sum(times) <= 3660, caption
    assert [int(found) for found in re.findall(r"(\d+) crash", caption)] == [crashes] * bool(crashes)
    marks = [each.attributes["class"] for each in figure.all("path") if each.attributes["class"] != "not-known"]
    wakes = sum(map(int, re.findall(r"(\d+) wakes?\b", caption)))
    assert (marks.count("crash"), marks.count("wake"), len(marks)) == (crashes, wakes, crashes + wakes)


async def test_of_a_server_that_never_came_up_nothing_was_measured(tmp_path: Path, data: DataDir) -> None:
    lost = {"command": "x", "backoff_initial_s": 3600}
    fakes = {"lost": FakeServer(exits_at="initialize")}
    async with world(tmp_path, data, {"lost": lost}, fakes, waits=False) as at:
        await at.until_state("lost", "respawning")
        page = read(await at.text("/ui/servers/lost"))
        tiles = {each.children[0].text: each.children[1].text for each in page.one("dl").children}
        unknown = ("Tools", "Tokens", "95 in 100 within, last hour", "Memory", "Processor", "Process")
        assert {name: tiles[name] for name in unknown} == dict.fromkeys(unknown, "-")
        assert tiles["Calls, last hour"] == "0 0 failed, 0 not sent"


async def memory_and_processor_of_a_process_are_what_the_system_says(at: Shown) -> None:
    page, _ = await at.page("/ui/servers/stand")
    tiles = {each.children[0].text: each.children[1].text for each in page.one("dl").children}
    memory, seconds = usage_of_process(int(tiles["Process"]))
    shown_memory, unit = tiles["Memory"].split()
    assert unit == "MB"
    assert 0.5 < float(shown_memory) * 1e6 / memory < 2
    share_of_one, all_of_it = tiles["Processor"].split(" % of one, ")
    assert 0 <= float(share_of_one) <= 100 * (os.cpu_count() or 1)
    # It may have been measured before its process had used a tick of the system's clock.
    assert 0 <= wanted.milliseconds_of(all_of_it.removesuffix(" in all")) <= seconds * 1000 + 10


async def every_number_of_tools(at: Shown) -> None:
    paths = sorted(at.tokens)
    whole: Table = {
        **wanted.frame(VERSION),
        "/tools/h2": f"{len(paths)} tools",
        "/tools/p": f"1-{len(paths)} of {len(paths)}",
        **tool_rows(at, *paths),
    }
    check((await at.page("/ui/tools"))[0], whole)
    answer = (await at.script.ask("ana", "discover_mcp_tools", '{"query":"echo"}')).json()["result"]
    hits = answer["structuredContent"]["tools"]
    size = len(json.dumps(answer["structuredContent"], separators=(",", ":"), ensure_ascii=False).encode())
    found: Table = {
        "/found/p": f", about {number(size / 4)} tokens.",
        "/found/small": [f"score {hit['relevance_score']}, 0 is best" for hit in hits],
        "/found/a @href": [f"/ui/tool?path={hit['tool_path'].replace(':', '%3A')}" for hit in hits],
    }
    check((await at.page("/ui/tools?query=echo"))[0], {**whole, **found})
    for path in paths:
        server, _, name = path.partition(":")
        page, _ = await at.page(f"/ui/tool?path={path}")
        heard = [row for row in at.of(server=server, tool=name) if row["outcome"] != "cancelled"]
        lost = sum(row["outcome"] in FAILED for row in heard)
        expected: Table = {
            **wanted.frame(VERSION),
            "/tiles/Safety": matches("[a-z]+"),
            "/tiles/Asks for a yes": "no",
            "/tiles/Tokens": number(at.tokens[path]),
            "/tiles/Calls, all time": f"{len(heard)} {lost} failed",
            "/tiles/Average, all time": wanted.tool_row(path, 0, heard)[f"/tools/{name} {server}/Average"],
        }
        check(page, expected | ({"/section/li": FINDING} if server != "stand" else {}))


FINDING = "the description has fewer than 3 words of 3 letters or more"


def tool_rows(at: Shown, *paths: str) -> Table:
    told: Table = {}
    for path in paths:
        server, _, name = path.partition(":")
        told |= wanted.tool_row(path, at.tokens[path], at.of(server=server, tool=name))
        if server != "stand":
            told[f"/tools/{name} {server}/Findings @title"] = FINDING
    return told


async def every_number_of_calls(at: Shown) -> None:
    every = sorted(at.rows + at.meta, key=lambda row: -row["number"])
    bad = [row for row in at.rows if row["outcome"] in ("error", "tool_error", "timeout")]
    for query, rows in {
        "": at.rows,
        "?meta_tools=true": every,
        "?outcome=failed": bad,
        "?outcome=not_sent": at.of(outcome="rejected"),
        "?server=stand": at.of(server="stand"),
        "?client=bot": at.of(user="ben"),
        "?tool=hang&outcome=timeout": at.of(tool="hang", outcome="timeout"),
    }.items():
        page, _ = await at.page(f"/ui/calls{query}")
        check(page, {**wanted.frame(VERSION), **wanted.call_rows("list", rows)})
        assert len(page.one("tbody").children) == len(rows)


async def every_number_of_usage(at: Shown) -> None:
    for window in WINDOWS:
        page, now = await at.page(f"/ui/usage?window={window}")
        expected: Table = {
            **wanted.frame(VERSION),
            **wanted.windows("", "/ui/usage"),
            **plots("plots", at.rows, window, now),
            **wanted.timeline_rows(at.rows, window),
        }
        for by, names in NAMES.items():
            for name, rows in wanted.grouped(at.rows, *names).items():
                expected |= wanted.usage_row(f"/by-{by}/{name}", rows)
        check(page, expected)
        wanted.check_plots(page.all("figure"), at.rows, window, now)


async def every_number_of_people_and_changes(at: Shown) -> None:
    page, _ = await at.page("/ui/people")
    tokens = (await at.script.ana.page("/api/access-tokens"))["tokens"]
    records = (await at.script.ana.page("/api/audit", limit="50"))["records"]
    told: Table = {"/users/p": matches(r"2 users: ana( \(\w+\))?, ben( \(\w+\))?"), **wanted.audit_rows(records)}
    for each in tokens:
        place = f"/tokens/{each['id']} -"
        told[f"{place}/Id"] = each["id"]
        assert each["expires_at"] is None, "it says never"
        told[f"{place}/Last used"] = matches(wanted.SPAN.pattern)
        told |= dict.fromkeys((f"{place}/Last used @title", f"{place}/Last used @datetime"), wanted.lately)
    check(page, {**wanted.frame(VERSION), **told})
    check((await at.page("/ui/changes"))[0], wanted.frame(VERSION))


async def a_member_is_shown_the_numbers_of_their_own_calls(at: Shown) -> None:
    told = (await at.script.at["ben"].ask("GET", "/api/calls?limit=500")).json()["calls"]
    numbers = [row["number"] for row in told]  # their own, which no other figure goes by
    mine = [{**row, "number": number} for row, number in zip(at.of(user="ben"), numbers, strict=True)]
    page, now = await at.page("/ui", "ben")
    servers: Table = {}
    for name, tools in TOOLS.items():
        heard = [row for row in mine if row["server"] == name and row["outcome"] not in UNHEARD]
        servers[f"/servers/{name}/Tools"] = str(len(tools))
        servers[f"/servers/{name}/Calls, all time"] = str(len(heard))
    expected: Table = {
        **wanted.frame(VERSION, questions=0),
        "/h1": "Your 3 servers are there for you.",
        **servers,
        **wanted.windows("/calls", "/ui"),
        **plots("calls", mine, "1h", now),
        **wanted.call_rows("calls", mine),
    }
    base = at.script.at.url
    check(page, expected, (f"{base}/mcp", f"{base}/mcp/servers/desk"))
    wanted.check_plots(page.all("figure"), mine, "1h", now)
    page, _ = await at.page("/ui/calls", "ben")
    check(page, {**wanted.frame(VERSION, questions=0), **wanted.call_rows("list", mine)})


async def pages_programs_and_commands_agree(at: Shown) -> None:
    counted = {outcome: len(rows) for outcome, rows in wanted.grouped(at.rows, "outcome").items()}
    calls, bad = len(at.rows), wanted.failed(at.rows)
    whole = {"calls": calls, "failed": bad, "outcomes": counted}
    whole |= {name: sum(row[name] for row in at.rows) for name in ("bytes_in", "bytes_out")}
    for window in WINDOWS:
        for by in NAMES:
            told = await at.script.ana.page("/api/usage", window=window, by=by)
            assert whole.items() <= told["total"].items()
            assert sum(row["calls"] for row in told["rows"]) == calls
        line = await at.script.ana.page("/api/usage/timeline", window=window)
        assert sum(bucket["calls"] for bucket in line["buckets"]) == calls
        assert sum(bucket["failed"] for bucket in line["buckets"]) == bad
        as_json = json.loads((await command(at.script.at.url, "usage", "--window", window, "--json")).stdout)
        assert whole.items() <= as_json["total"].items()
        assert sum(bucket["calls"] for bucket in as_json["timeline"]) == calls
    said = f"{calls} calls in the last hour, {bad} failed ({bad / calls:.1%})"
    by_tool = {
        name: (len(rows), wanted.failed(rows)) for name, rows in wanted.grouped(at.rows, "server", "tool").items()
    }
    usage = await command(at.script.at.url, "usage")
    assert usage.stderr.startswith(said)
    top = (await command(at.script.at.url, "top")).stdout.splitlines()
    assert top[0].startswith(said)
    for lines in (usage.stdout.splitlines()[1:], top[4:]):
        assert {f"{c[0]} {c[1]}": (int(c[2]), int(c[3])) for c in map(str.split, lines)} == by_tool
    assert await metrics_of(at) == {
        (server, outcome): len(at.of(server=server, outcome=outcome))
        for server in TOOLS
        for outcome in OUTCOMES
        if at.of(server=server, outcome=outcome)
    }


async def metrics_of(at: Shown) -> Mapping[tuple[str, str], float]:
    """Return the calls that `/metrics` has, by server and outcome."""
    text = await at.script.at["ana"].text("/metrics")
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    assert {sample.value for sample in samples if sample.name == "mcpvisor_questions_open"} == {1}
    return {
        (sample.labels["mcp_server"], sample.labels["outcome"]): sample.value
        for sample in samples
        if sample.name == "mcpvisor_calls_total" and sample.value
    }


READS = (
    *(each_call_is_remembered_as_it_was_made, every_number_on_the_overview_and_of_servers),
    *(every_number_on_the_page_of_a_server, memory_and_processor_of_a_process_are_what_the_system_says),
    *(every_number_of_calls, every_number_of_usage, every_number_of_people_and_changes),
    *(a_member_is_shown_the_numbers_of_their_own_calls, pages_programs_and_commands_agree),
    every_number_of_tools,  # the last one: it searches
)


@pytest.mark.case("I24")
async def test_every_number_is_that_of_the_calls_that_were_made(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong: list[AssertionError] = []
    async with shown(tmp_path, data) as at:
        monkeypatch.setenv("MCPVISOR_TOKEN", at.script.at.keys["ana"])
        for reads in READS:
            try:
                await reads(at)
            except AssertionError as error:
                error.add_note(reads.__name__)
                wrong.append(error)
    if wrong:
        raise ExceptionGroup("not what was done", wrong)
