"""What `/metrics` of a daemon says is what happened there; who may read it; and what `promtool` thinks of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from supervisor.front.pages.metrics import STATES
from supervisor.host.datadir import DataDir
from supervisor.metrics.families import FAMILIES
from tests.e2e import environments
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.client import Client
from tests.scenario.daemon import World, world

SERVERS: dict[str, Any] = {"desk": {"command": "x", "call_timeout_s": 2}, "shop": {"command": "x"}}
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def promtool() -> str:
    return environments.prometheus("promtool")


def metered(directory: Path, data: DataDir, **settings: Any) -> AbstractAsyncContextManager[World]:
    tools = [tool(name) for name in ("echo", "refuse", "hang", "crash")]
    return world(directory, data, SERVERS, {name: FakeServer(tools=tools) for name in SERVERS}, **settings)


async def scrape(client: Client) -> Samples:
    """Return all samples, which both formats must agree on but for what moves by itself."""
    answer = await client.ask("GET", "/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == CONTENT_TYPE_PLAIN_0_0_4
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def total(samples: Samples, name: str, **labels: str) -> float:
    """Return the sum over all other labels."""
    wanted = set(labels.items())
    return sum(number for (found, told), number in samples.items() if found == name and wanted <= told)


async def test_every_figure_is_that_of_the_calls_that_were_made(tmp_path: Path, data: DataDir) -> None:
    async with metered(tmp_path, data, metrics_tools=True) as at:
        before = await scrape(at)
        assert total(before, "mcpvisor_calls_total") == 0
        assert value(before, "mcpvisor_calls_total", mcp_server="shop", outcome="timeout") == 0
        for _ in range(3):
            await at.execute("desk:echo")
        for _ in range(2):
            await at.execute("desk:refuse")
        await at.execute("desk:hang")
        await at.execute("shop:echo")
        await at.execute("shop:none")
        await at.call("discover_mcp_tools", query="echo")
        await at.call("discover_mcp_tools", query="zzzz qqqq xxxx")
        after = await scrape(at)

    counted = {
        (server, outcome): value(after, "mcpvisor_calls_total", mcp_server=server, outcome=outcome)
        for server in ("desk", "shop")
        for outcome in ("ok", "error", "timeout", "rejected")
    }
    assert {key: number for key, number in counted.items() if number} == {
        ("desk", "ok"): 3,
        ("desk", "error"): 2,
        ("desk", "timeout"): 1,
        ("shop", "ok"): 1,
        ("shop", "rejected"): 1,
    }
    assert value(after, "mcpvisor_tool_calls_total", mcp_server="desk", tool="echo", outcome="ok") == 3

    operations = "mcp_client_operation_duration_seconds_count"
    labels = {"mcp_method_name": "tools/call", "network_transport": "pipe"}
    assert value(after, operations, mcp_server="desk", error_type="", **labels) == 3
    assert value(after, operations, mcp_server="desk", error_type="-32602", **labels) == 2
    assert value(after, operations, mcp_server="desk", error_type="timeout", **labels) == 1

    requests = "mcp_server_operation_duration_seconds_count"
    assert total(after, requests, gen_ai_tool_name="execute_mcp_tool") == 8
    assert total(after, requests, gen_ai_tool_name="execute_mcp_tool", error_type="tool_error") >= 2
    assert total(after, requests, gen_ai_tool_name="discover_mcp_tools", error_type="") == 2
    assert total(after, "mcpvisor_searches_total") == 2
    assert total(after, "mcpvisor_search_duration_seconds_count") == 2
    assert total(after, "http_server_request_duration_seconds_count", http_route="/mcp") == 10


class TaskCounts(trio.abc.Instrument):
    """How many tasks there were, at each step of one: the daemon's end and begin while the page is asked for."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.seen.add(trio.lowlevel.current_statistics().tasks_living)


async def test_the_page_tells_of_servers_catalogue_clients_and_the_process(tmp_path: Path, data: DataDir) -> None:
    async with metered(tmp_path, data) as at:
        tasks = TaskCounts()
        trio.lowlevel.add_instrument(tasks)
        samples = await scrape(at)
        trio.lowlevel.remove_instrument(tasks)
        assert {state: value(samples, "mcpvisor_servers", state=state) for state in STATES} == {
            **dict.fromkeys(STATES, 0),
            "ready": 2,
        }
        assert value(samples, "mcpvisor_server_usable", mcp_server="desk") == 1
        assert value(samples, "mcpvisor_catalogue_entries", kind="tool") == 8
        assert value(samples, "mcpvisor_catalogue_tokens", surface="meta") > 0
        assert value(samples, "mcpvisor_discoveries_total", result="ok") == 2
        assert value(samples, "mcpvisor_server_start_duration_seconds_count", result="ok") == 2
        assert value(samples, "process_resident_memory_bytes") > 1e6
        assert value(samples, "process_open_fds") > 3
        assert total(samples, "mcpvisor_build_info") == 1
        assert total(samples, "mcpvisor_tasks") in tasks.seen
        assert not [name for name, _ in samples if name.startswith("mcpvisor_tool_calls")]


async def test_a_server_that_dies_is_seen(tmp_path: Path, data: DataDir) -> None:
    async with metered(tmp_path, data) as at:
        await at.execute("shop:crash")
        await at.until_state("shop", "ready")
        samples = await scrape(at)
        assert value(samples, "mcpvisor_server_exits_total", mcp_server="shop", reason="exit") == 1
        assert value(samples, "mcpvisor_server_restarts_total", mcp_server="shop") == 1
        assert value(samples, "mcpvisor_calls_total", mcp_server="shop", outcome="unknown") == 1
        assert value(samples, "mcpvisor_server_exits_total", mcp_server="desk", reason="exit") == 0


async def test_a_call_that_woke_a_server_has_waited_for_that(tmp_path: Path, data: DataDir) -> None:
    async with metered(tmp_path, data) as at:
        await at.ordered("shop", "sleep")
        await at.execute("shop:echo")
        samples = await scrape(at)
        assert value(samples, "mcpvisor_call_wait_seconds_count", cause="wake") == 1
        assert value(samples, "mcpvisor_server_exits_total", mcp_server="shop", reason="idle") == 1


async def test_both_formats_have_every_family_and_the_same_samples(tmp_path: Path, data: DataDir) -> None:
    async with metered(tmp_path, data, metrics_tools=True) as at:
        await at.execute("desk:echo")
        await at.execute("desk:refuse")
        answer = await at.ask("GET", "/metrics", headers={"accept": OPENMETRICS})
        assert answer.headers["content-type"] == f"{OPENMETRICS}; escaping=underscores"
        families = list(openmetrics.text_string_to_metric_families(answer.text))  # type: ignore[no-untyped-call]
        names = {sample.name for family in families for sample in family.samples}
        plain = {name for name, _ in await scrape(at)}
    assert names == plain
    told = {family.name for part in FAMILIES.values() for family in part}
    declared = {f"{each.name}_total" if each.type == "counter" else each.name for each in families}
    assert told - declared == set()
    assert declared - told == set()


async def test_only_auditors_may_scrape_and_the_host_is_checked(tmp_path: Path, data: DataDir) -> None:
    people = {"ana": {"role": "admin"}, "ben": {"role": "member"}, "cem": {"role": "auditor"}}
    async with world(tmp_path, data, {}, people=people, auth="tokens") as at:
        statuses = {who: (await at[who].ask("GET", "/metrics")).status_code for who in (None, *people)}
        assert statuses == {None: 401, "ana": 200, "ben": 404, "cem": 200}
        foreign = await at["cem"].ask("GET", "/metrics", headers={"host": "evil.test"})
        assert foreign.status_code == 421
        page = (await at["cem"].ask("GET", "/metrics")).text
        refused = [line for line in page.splitlines() if line.startswith("mcpvisor_requests_refused_total")]
        assert 'mcpvisor_requests_refused_total{reason="host"} 1.0' in refused
        assert 'mcpvisor_requests_refused_total{reason="auth"} 1.0' in refused


@pytest.mark.case("I05")
async def test_nothing_of_people_is_in_it(tmp_path: Path, data: DataDir) -> None:
    identity = {"users": {"ana": {"role": "admin"}, "ben": {}}}
    servers = {"vault": {"command": "x", "users": ["ana"], "description": "canary of ana"}}
    async with world(tmp_path, data, servers, people={"ana": {}}, auth="tokens", identity=identity) as at:
        await at["ana"].executed("vault:echo", text="canary of ana")
        page = (await at.operator.ask("GET", "/metrics")).text
        labels = {text for line in page.splitlines() if not line.startswith("#") for text in line.split('"')[1::2]}
        assert "vault" in labels
        assert labels.isdisjoint({"canary of ana", "ana", "ben"})


async def test_two_hundred_servers_have_a_bounded_number_of_series(tmp_path: Path, data: DataDir) -> None:
    servers = {f"server-{number}": {"command": "x"} for number in range(200)}
    async with world(tmp_path, data, servers, starts_per_s=1000) as at:
        for server in servers:
            await at.execute(f"{server}:echo")
        samples = await scrape(at)
        assert total(samples, "mcpvisor_calls_total", outcome="ok") == 200
        assert len(samples) <= 20_000


@pytest.mark.process
async def test_promtool_finds_nothing_wrong(tmp_path: Path, data: DataDir, promtool: str) -> None:
    """OpenMetrics it does not take: the parser of the library and a real Prometheus do."""
    pages = {}
    async with metered(tmp_path, data, metrics_tools=True) as at:
        await at.execute("desk:echo")
        for version in ("0.0.4", "1.0.0"):
            pages[version] = await at.ask("GET", "/metrics", headers={"accept": f"text/plain; version={version}"})
    for version, answer in pages.items():
        assert f"version={version};" in answer.headers["content-type"]
        checked = await trio.run_process(
            [promtool, "check", "metrics"], stdin=answer.content, capture_stdout=True, capture_stderr=True, check=False
        )
        assert (checked.returncode, checked.stdout.decode(), checked.stderr.decode()) == (0, "", ""), version
