"""A real Prometheus reads the metrics of a real daemon: what it then says is what was called.

The programs are those of Debian's package `prometheus`; without them the tests say so and are not run.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import ROOT, Daemon, client, running, stand_in
from tests.fakes.otlp_collector import OtlpCollector, collecting
from tests.scenario.client import PATIENCE_S, Json

pytestmark = pytest.mark.e2e

SCRAPED_S = 60.0
"""Longer than it takes until what was counted is scraped, which is done every second."""
EXAMPLE = ROOT / "examples" / "prometheus.yml"
DASHBOARD: Json = json.loads((ROOT / "examples" / "grafana" / "dashboard.json").read_text(encoding="utf-8"))
EXPRESSIONS: list[str] = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
GUIDE = ROOT / "docs" / "guides" / "observing.md"
OF_CALLS = re.compile("mcpvisor_calls_total|mcp_client_operation|mcp_server_operation")
SERVERS = {"canvas": stand_in("excalidraw"), "deaf": stand_in("growing", call_timeout_s=0.5)}
GOOD, LATE, ROUNDS = 5, 1, 2
"""Calls of a round that succeed, and that are not answered in time. One round is made before the first scrape, so that
every series of calls is there then, and one after it, so that they grow."""


def promtool(*arguments: str) -> str:
    """What `promtool` says, which has to end well."""
    command = [environments.prometheus("promtool"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_is_a_configuration_for_prometheus(tmp_path: Path) -> None:
    assert "SUCCESS" in promtool("check", "config", str(EXAMPLE))


def test_the_example_with_a_token_is_one_too(tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    token, config = tmp_path / "token", tmp_path / "prometheus.yml"
    token.write_text("t")
    asking = re.sub(r"^(\s+)# (authorization:|  credentials_file: ).*$", r"\1\2", text, flags=re.MULTILINE)
    asking = asking.replace("credentials_file: ", f"credentials_file: {token}")
    assert asking.count(str(token)) == 1
    config.write_text(asking, encoding="utf-8")
    assert "SUCCESS" in promtool("check", "config", str(config))


def test_the_alerts_of_the_guide_are_rules_for_prometheus(tmp_path: Path) -> None:
    (rules,) = re.findall(r"```yaml\n(groups:.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path / "rules.yml"
    file.write_text(rules, encoding="utf-8")
    assert "3 rules found" in promtool("check", "rules", str(file))


class Prometheus:
    """A running one, asked by its HTTP API."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def until_ready(self) -> None:
        """Poll, as nothing tells when it has read its data: until then it answers in words."""
        with trio.fail_after(PATIENCE_S):
            while (await self._http.get("/-/ready")).status_code != 200:  # noqa: ASYNC110
                await trio.sleep(0.05)

    async def get(self, path: str, **parameters: Any) -> Any:
        """Return the data of an answer, which has to be a success."""
        answer = (await self._http.get(f"/api/v1/{path}", params=parameters)).json()
        assert answer["status"] == "success", (parameters, answer)
        return answer["data"]

    async def query(self, expression: str) -> list[float]:
        """Return the value of each series now."""
        result = (await self.get("query", query=expression))["result"]
        return [float(row["value"][1]) for row in result]

    async def until(self, expression: str, wanted: Callable[[list[float]], bool]) -> None:
        """Poll, as nothing tells when it has scraped."""
        values: list[float] = []
        with trio.move_on_after(SCRAPED_S):
            while not wanted(values := await self.query(expression)):  # noqa: ASYNC110
                await trio.sleep(0.1)
            return
        raise AssertionError(f"{expression} is {values}")


@contextmanager
def process(program: str, directory: Path, target: str) -> Iterator[Path]:
    """Run Prometheus for the block, with the example's configuration but for the address and the pace; give its log."""
    text = EXAMPLE.read_text(encoding="utf-8")
    assert text.count("127.0.0.1:3001") == text.count("scrape_interval: 30s") == 1
    config, log = directory / "prometheus.yml", directory / "prometheus.log"
    text = text.replace("127.0.0.1:3001", target).replace("scrape_interval: 30s", "scrape_interval: 1s")
    config.write_text(text, encoding="utf-8")
    command = [
        program,
        f"--config.file={config}",
        f"--storage.tsdb.path={directory / 'tsdb'}",
        "--web.listen-address=127.0.0.1:0",
        "--enable-feature=exemplar-storage",
    ]
    with log.open("wb") as errors, subprocess.Popen(command, stderr=errors, cwd=directory) as prometheus:
        try:
            yield log
            prometheus.terminate()
            assert prometheus.wait(PATIENCE_S) == 0, log.read_text(encoding="utf-8")
        finally:
            prometheus.kill()


def address_in(log: Path) -> str:
    """The address that the kernel gave, once it is in the log."""
    told = re.search(r'msg="Listening on".* address=(\S+)', log.read_text(encoding="utf-8"))
    return f"http://{told[1]}" if told else ""


async def address_of(log: Path) -> str:
    with trio.fail_after(PATIENCE_S):
        while not (address := address_in(log)):  # noqa: ASYNC110 - nothing else tells of it
            await trio.sleep(0.05)
    return address


@asynccontextmanager
async def scraping(program: str, daemon: Daemon, directory: Path) -> AsyncIterator[Prometheus]:
    """Give a Prometheus that has scraped the daemon."""
    with process(program, directory, f"127.0.0.1:{daemon.port}") as log:
        async with client() as http:
            http.base_url = httpx2.URL(await address_of(log))
            prometheus = Prometheus(http)
            await prometheus.until_ready()
            await prometheus.until("up", [1].__eq__)
            yield prometheus


async def make_round(daemon: Daemon) -> None:
    for number in range(GOOD):
        assert "result" in await daemon.execute("canvas:draw", text=str(number))
    for _ in range(LATE):
        assert (await daemon.execute("deaf:hang"))["result"]["isError"]


def filled(expression: str) -> str:
    """An expression of the dashboard as Grafana asks for it."""
    return expression.replace("$__rate_interval", "1m").replace("$server", ".*")


async def check_calls(prometheus: Prometheus) -> None:
    counted = {
        'mcpvisor_calls_total{mcp_server="canvas",outcome="ok"}': GOOD,
        'mcpvisor_calls_total{mcp_server="deaf",outcome="timeout"}': LATE,
        "sum(mcpvisor_calls_total)": GOOD + LATE,
    }
    for expression, number in counted.items():
        await prometheus.until(expression, [number * ROUNDS].__eq__)


async def check_histogram(prometheus: Prometheus) -> None:
    labels = 'mcp_server="canvas",mcp_method_name="tools/call",error_type=""'
    histogram = "mcp_client_operation_duration_seconds"
    for name in (f"{histogram}_count{{{labels}}}", f'{histogram}_bucket{{{labels},le="+Inf"}}'):
        assert await prometheus.query(name) == [GOOD * ROUNDS]
    (middle,) = await prometheus.query(f"histogram_quantile(0.5, {histogram}_bucket{{{labels}}})")
    assert 0 < middle < PATIENCE_S
    # Only OpenMetrics tells units and exemplars.
    (told,) = (await prometheus.get("metadata", metric=histogram))[histogram]
    assert (told["type"], told["unit"]) == ("histogram", "seconds")


async def check_targets(prometheus: Prometheus, daemon: Daemon) -> None:
    (target,) = (await prometheus.get("targets"))["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    assert target["scrapeUrl"] == f"{daemon.url}/metrics"


async def check_dashboard(prometheus: Prometheus) -> None:
    """Every expression is understood and has data, and those of calls have figures."""
    for expression in EXPRESSIONS:
        of_calls = OF_CALLS.search(expression) is not None
        await prometheus.until(filled(expression), any_above_zero if of_calls else bool)
    servers = await prometheus.get("label/mcp_server/values", **{"match[]": "mcpvisor_server_usable"})
    assert servers == sorted(SERVERS)
    (query,) = (each["query"] for each in DASHBOARD["templating"]["list"] if each["name"] == "server")
    assert query == "label_values(mcpvisor_server_usable, mcp_server)"


def any_above_zero(values: list[float]) -> bool:
    return any(value > 0 for value in values)


async def traces_of(prometheus: Prometheus) -> set[str]:
    """The traces to which the buckets of calls lead."""
    query = 'mcp_client_operation_duration_seconds_bucket{mcp_server="canvas",mcp_method_name="tools/call"}'
    rows = await prometheus.get("query_exemplars", query=query, start=0, end=2**32)
    return {example["labels"]["trace_id"] for row in rows for example in row["exemplars"]}


@pytest.fixture
def program() -> str:
    return environments.prometheus()


async def test_what_prometheus_says_is_what_was_called(tmp_path: Path, program: str) -> None:
    with collecting() as collector:
        settings: Json = {"tracing": True, "trace_endpoint": f"{collector.url}/v1/traces", "metrics_tools": True}
        with running(tmp_path / "daemon", SERVERS, **settings) as daemon:
            await daemon.ready()
            await make_round(daemon)
            async with scraping(program, daemon, tmp_path) as prometheus:
                await make_round(daemon)
                await check_calls(prometheus)
                await check_histogram(prometheus)
                await check_dashboard(prometheus)
                await check_targets(prometheus, daemon)
                told = await traces_of(prometheus)
        check_traces(collector, told)


def check_traces(collector: OtlpCollector, told: set[str]) -> None:
    """The collector, which has all once the daemon has ended, knows what the points of histograms lead to."""
    assert told
    assert told <= {span.trace for span in collector.spans if span.name == "tools/call draw"}
