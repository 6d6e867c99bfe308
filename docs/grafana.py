"""The dashboard for Grafana in `examples/`, made here so that it names only metrics that there are.

`python -m docs.grafana` writes it, in the root of a checkout; a test compares.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from supervisor.metrics import families as of
from supervisor.metrics.families import Family

FILE: Final = "examples/grafana/dashboard.json"
SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
WIDTH, HEIGHT = 24, 8
PER: Final = "$__rate_interval"
ONLY: Final = '{mcp_server=~"$server"}'

Panel = dict[str, Any]
Query = tuple[str, str]
"""An expression, and what its lines are called."""


def rate(family: Family, by: str = "", only: str = "") -> str:
    """Return how often something happens in a second, summed up by labels."""
    return f"sum{f' by ({by})' if by else ''} (rate({family.name}{only}[{PER}]))"


def quantile(share: float, family: Family, by: str = "", only: str = "") -> str:
    """Return the seconds within which so much of all was done."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({family.name}_bucket{only}[{PER}])))"


def panel(title: str, unit: str, *queries: Query, kind: str = "timeseries", width: int = 8) -> Panel:
    targets = [
        {"refId": chr(ord("A") + at), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
        for at, (expression, legend) in enumerate(queries)
    ]
    return {
        "title": title,
        "type": kind,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": targets,
        "gridPos": {"w": width, "h": HEIGHT if kind == "timeseries" else HEIGHT // 2},
    }


def number(title: str, unit: str, expression: str) -> Panel:
    """Return a panel with the newest value alone."""
    return panel(title, unit, (expression, ""), kind="stat", width=4)


def tokens(surface: str) -> str:
    return f'sum({of.TOKENS.name}{{surface="{surface}"}})'


def panels() -> list[Panel]:
    failed = rate(of.CALLS, only='{mcp_server=~"$server",outcome!~"ok|cancelled"}')
    return [
        number("Servers that take calls", "none", f"sum({of.USABLE.name}{ONLY})"),
        number("Servers that failed", "none", f'sum({of.SERVERS.name}{{state="failed"}})'),
        number("Calls a second", "reqps", rate(of.CALLS, only=ONLY)),
        number("Share of calls that failed", "percentunit", f"{failed} / ({rate(of.CALLS, only=ONLY)} > 0)"),
        number("Tools known", "none", f'sum({of.ENTRIES.name}{{kind="tool"}})'),
        number("Tokens spared", "none", f"{tokens('all')} - {tokens('meta')}"),
        panel("Calls by outcome", "reqps", (rate(of.CALLS, "outcome", ONLY), "{{outcome}}")),
        panel("Calls by server", "reqps", (rate(of.CALLS, "mcp_server", ONLY), "{{mcp_server}}")),
        panel(
            "How long servers take",
            "s",
            *((quantile(share, of.CLIENT_OPERATIONS, only=ONLY), f"p{share * 100:g}") for share in (0.5, 0.95, 0.99)),
        ),
        panel(
            "How long clients wait",
            "s",
            *((quantile(share, of.SERVER_OPERATIONS), f"p{share * 100:g}") for share in (0.5, 0.95, 0.99)),
        ),
        panel("Waits before a call is sent, p95", "s", (quantile(0.95, of.WAITS, "cause"), "{{cause}}")),
        panel(
            "Calls now",
            "none",
            (f"sum({of.IN_FLIGHT.name}{ONLY})", "at a server"),
            (f"sum({of.WAITING.name}{ONLY})", "waiting"),
        ),
        panel("Servers by state", "none", (f"sum by (state) ({of.SERVERS.name})", "{{state}}")),
        panel(
            "Starts and ends of servers",
            "ops",
            (rate(of.RESTARTS, "mcp_server", ONLY), "started again: {{mcp_server}}"),
            (rate(of.EXITS, "reason", ONLY), "ended: {{reason}}"),
        ),
        panel("Memory", "bytes", (f"{of.SERVER_MEMORY.name}{ONLY}", "{{mcp_server}}"), (of.MEMORY.name, "the daemon")),
        panel("Searches", "ops", (rate(of.SEARCHES, "result"), "{{result}}")),
        panel("How long a search takes, p95", "s", (quantile(0.95, of.SEARCH_TIMES), "p95")),
        panel("Changes of tools", "ops", (rate(of.CHANGES, "change"), "{{change}}")),
        panel(
            "Clients",
            "none",
            (f"sum by (transport) ({of.SESSIONS.name})", "{{transport}}"),
            (of.CONNECTIONS.name, "connections"),
        ),
        panel("Requests refused", "reqps", (rate(of.REFUSED, "reason"), "{{reason}}")),
        panel("The loop of the daemon is late by", "s", (of.LOOP_LAG.name, "late by")),
        panel("Tasks of the daemon", "none", (of.TASKS.name, "tasks")),
        panel("Processor time of the daemon", "percentunit", (rate(of.CPU), "of one processor")),
        panel(
            "Lost in a second",
            "ops",
            (rate(of.LOG_RECORDS_DROPPED), "log records"),
            (rate(of.SPANS_DROPPED), "spans"),
        ),
        panel("Questions of servers", "none", (of.QUESTIONS.name, "open")),
    ]


def laid_out(every: list[Panel]) -> list[Panel]:
    """Return the panels one beside another, in rows."""
    x = y = row = 0
    placed = []
    for at, each in enumerate(every):
        place = each["gridPos"]
        if x + place["w"] > WIDTH:
            x, y, row = 0, y + row, 0
        placed.append({"id": at + 1, **each, "gridPos": {**place, "x": x, "y": y}})
        x, row = x + place["w"], max(row, place["h"])
    return placed


def dashboard() -> str:
    variables = [
        {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        {
            "name": "server",
            "label": "Server",
            "type": "query",
            "datasource": SOURCE,
            "query": f"label_values({of.USABLE.name}, mcp_server)",
            "includeAll": True,
            "allValue": ".*",
            "multi": True,
            "refresh": 2,
        },
    ]
    document = {
        "title": "mcpvisor",
        "uid": "mcpvisor",
        "schemaVersion": 39,
        "tags": ["mcp"],
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": variables},
        "panels": laid_out(panels()),
    }
    return json.dumps(document, indent=1) + "\n"


if __name__ == "__main__":
    Path(FILE).write_text(dashboard(), encoding="utf-8")
