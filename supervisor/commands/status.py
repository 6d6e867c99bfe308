"""`status`: how the servers of a running daemon are doing.

- What needs attention comes last, next to the prompt.
- A server is a line of numbers, and under it, over the whole width, what is wrong with it. From 120 columns on there
  are more numbers.
- What is wrong is said once, also if the daemon tells it of the configuration and of the server.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.text import Text

from actors.command_line import command
from actors.installation import DISABLED, DOWN, PER_USER, shown
from supervisor import operations
from supervisor.commands.common import (
    STATE_STYLES,
    below,
    console,
    daemon_options,
    duration,
    node_option,
    number,
    perform,
    plain,
    print_json,
    size_text,
    state_text,
)

CARD_COLUMNS = (("PROCESS", 11), ("SINCE", 5), ("TOOLS", 5), ("TOKENS", 7), ("CALLS", 5), ("RESTARTS", 8))
"""What a card has after the status and how wide it is; the name has the rest, up to what the longest needs."""
WIDE_COLUMNS = (*CARD_COLUMNS[:2], ("PID", 7), ("MEMORY", 6), ("CPU", 5), *CARD_COLUMNS[2:])
WIDE = 120
MIN_NAME = 12
MAX_PROBLEMS = 3
MAX_NODES = 3
"""Other nodes that are named."""
SILENT_S = 120.0
"""A server that is asked now and then for a sign of life was mostly heard later than that."""
_RANKS = {
    "online": 0,
    DISABLED: 0,
    PER_USER: 0,
    "error": 2,
    "offline": 2,
    "requires_reauth": 2,
    "permanently_failed": 3,
}
"""Servers that are fine come first, then those on their way, then those that are tried again, then those given up."""
_ON_ITS_WAY = 1
_DOWN = ("respawning", "failed")

Row = dict[str, Any]


@click.command()
@node_option
@daemon_options
def status(*, as_json: bool, url: str) -> None:
    """Show all servers of the running daemon, and the tokens saved.

    What needs your attention comes last.
    """
    overview = perform(url, operations.STATUS, warns=as_json)
    if as_json:
        print_json(overview)
        return
    out = console()
    out.print(render_servers(overview["servers"], time.time(), out))
    out.print(f"\nmcpvisor {overview['version']} at {url}, up {duration(overview['uptime_s'])}", markup=False)
    out.print(savings_line(overview["totals"], overview["tokens"]), markup=False)
    for line in list_node(overview.get("fleet") or {}):
        out.print(line)
    for line in list_degraded(overview.get("degraded", ()), time.time()):
        out.print(line)
    for line in list_damage(overview.get("store") or {}):
        out.print(line)
    for line in list_plugins(overview.get("plugins") or ()):
        out.print(line)
    for line in list_configuration(overview.get("configuration") or {}, time.time()):
        out.print(line)
    for line in list_lost(overview.get("audit") or {}):
        out.print(line)
    told = {row.get("last_error") for row in overview["servers"]}
    for problem in overview["configuration_problems"]:
        if problem not in told:
            out.print(plain(f"problem: {problem}"))
    for line in attention(sort_by_need(overview["servers"])):
        out.print(line)
    if waiting := overview.get("questions"):
        out.print(plain(f"questions that wait for you: {waiting}, see {overview['questions_at']}"))


def list_node(fleet: Row) -> Iterator[Text]:
    """Yield of which node of a fleet this is, and how to ask another one; nothing of a daemon that is alone."""
    if others := fleet.get("others"):
        few = " or ".join([command("status", "--node", others[0]), *others[1:MAX_NODES]]) + (
            "; all: mcpvisor nodes" if others[MAX_NODES:] else ""
        )
        yield plain(f"node {fleet['node']}: what other nodes run is dormant here; {few}")


def list_degraded(rows: Sequence[Row], now: float) -> list[Text]:
    return [plain(f"degraded for {duration(now - row['since'])}: {row['what']}: {row['why']}") for row in rows]


def list_damage(store: Row) -> Iterator[Text]:
    """Yield that the database is a fresh one, if the one before was damaged."""
    if copy := store.get("damaged"):
        yield plain(f"the database was damaged: it is {copy} now, and a fresh one was made; see mcpvisor doctor")


def list_plugins(rows: Sequence[Row]) -> Iterator[Text]:
    """Yield what each plugin is and does, and what it failed at last; `degraded` tells of those that are off."""
    for row in rows:
        guards = ", guards" if row["guards"] else ""
        failed = "".join(f"; {hook} {why}" for hook, why in row["failures"].items())
        yield plain(f"plugin {row['name']} ({row['version']}{guards}): {', '.join(row['hooks'])}{failed}")


def list_configuration(source: Row, now: float) -> Iterator[Text]:
    """Yield what is to be known of the daemon's file; nothing if all of it is in force."""
    for fault in source.get("refused") or ():
        yield plain(f"configuration refused {duration(now - source['refused_at'])} ago, all runs as before: {fault}")
    if waiting := source.get("restart"):
        yield plain(f"these settings take effect when the daemon is started again: {', '.join(waiting)}")


def list_lost(audit: Row) -> Iterator[Text]:
    """Yield what is missing in the audit; nothing if all was written."""
    if lost := audit.get("lost"):
        yield plain(f"{lost} records of the audit could not be written; mcpvisor audit shows where they are missing")


def sort_by_need(servers: list[Row]) -> list[Row]:
    return sorted(servers, key=lambda row: (_RANKS.get(shown(row), _ON_ITS_WAY), row["server"]))


def render_servers(servers: list[Row], now: float, out: Console) -> RenderableType:
    """Return the rows of `/api/status`; `now` is unix time in seconds. A pipe has the columns of a narrow terminal."""
    return servers_cards(servers, now, out.width, WIDE_COLUMNS if out.is_terminal else CARD_COLUMNS)


def servers_cards(
    servers: list[Row], now: float, width: int, wanted: Sequence[tuple[str, int]] = CARD_COLUMNS
) -> RenderableType:
    """Return a line of numbers for each server, and below it, over the whole width, what is to be known of it."""
    widest = max((len(shown(row)) for row in servers), default=0)
    columns = _columns_for(width, max(len("STATUS"), widest), wanted if width >= WIDE else CARD_COLUMNS)
    longest = max((len(plain(row["server"])) for row in servers), default=0)
    size = max(MIN_NAME, min(width - _width_of(columns), longest))
    head = _card_line(Text("SERVER"), [Text(name) for name, _ in columns], columns, size)
    head.stylize("bold")
    lines: list[RenderableType] = [head]
    for row in sort_by_need(servers):
        facts = [state_text(shown(row)), plain(row["state"]), Text(duration(now - row["since"]))]
        facts += [Text(_number(row, name)) for name, _ in columns[len(facts) :]]
        lines.append(_card_line(plain(row["server"]), facts, columns, size))
        lines += map(below, _details(row, now))
    return Group(*lines)


def _number(row: Row, column: str) -> str:
    if column == "MEMORY":
        return size_text(row.get("memory_bytes"))
    if column == "CPU":
        share = row.get("cpu_percent")
        return "-" if share is None else f"{share:.0f} %"
    return number(row.get(column.lower()))


def _columns_for(width: int, status: int, others: Sequence[tuple[str, int]]) -> Sequence[tuple[str, int]]:
    """Return the columns that have room; status, process and age always do."""
    columns: Sequence[tuple[str, int]] = (("STATUS", status), *others)
    while len(columns) > 3 and width - _width_of(columns) < MIN_NAME:
        columns = columns[:-1]
    return columns


def _width_of(columns: Sequence[tuple[str, int]]) -> int:
    return sum(size + 2 for _, size in columns)


def _card_line(name: Text, facts: list[Text], columns: Sequence[tuple[str, int]], size: int) -> Text:
    # A name that has no room stands alone: it must be there whole, to be copied.
    line = Text.assemble(name, "\n" + " " * size if len(name) > size else " " * (size - len(name)))
    for place, (fact, (_, width)) in enumerate(zip(facts, columns, strict=True)):
        space = " " * (width - len(fact))
        line.append("  ").append_text(Text.assemble(*((fact, space) if place < 2 else (space, fact))))
    return line


def _details(row: Row, now: float) -> Iterator[Text]:
    if row.get("awaits"):
        yield plain(row["reason"])
    if row.get("users"):
        yield plain(f"for {', '.join(row['users'])}")
    if count := row.get("launches"):
        yield plain(f"{count} launch{'es' if count > 1 else ''} for people, of which those that ran are listed")
    if denial := row.get("sandbox"):
        yield plain(f"in a sandbox: {denial}")
    if row.get("activity"):
        yield plain(row["activity"])
    if len(instances := row.get("instances") or ()) > 1:
        yield plain(instances_text(instances))
    if (asked := row.get("asked_since")) is not None:
        yield plain(f"calls wait for their turn: somebody has been asked a question for {duration(now - asked)}")
    sign = row.get("last_sign_at")
    if sign is not None and now - sign >= SILENT_S:
        yield plain(f"last heard {duration(now - sign)} ago")
    for breaker in (row.get("breakers") or ())[:MAX_PROBLEMS]:
        yield plain(breaker_text(breaker, now))
    error = row.get("last_error")
    if error:
        at = row.get("last_error_at")
        ago = f" ({duration(now - at)} ago)" if at is not None else ""
        yield plain(f"error{ago}: {error}")
    again = row.get("next_start")
    if again is not None and again > now:
        yield plain(f"it is tried again in {duration(again - now)}")
    if hidden := row.get("hidden_tools"):
        yield plain(f"{hidden} more tool{'s' if hidden > 1 else ''}, which the configuration hides")
    if waiting := row.get("unapproved_tools"):
        so = "held" if row.get("held_tools") else "usable"
        what = "tools not approved, which are" if waiting > 1 else "tool not approved, which is"
        yield plain(f"{waiting} {what} {so}: {command('approve', row['server'])}")
    problems = [problem for problem in row.get("problems") or () if problem != error]
    for problem in problems[:MAX_PROBLEMS]:
        yield plain(f"problem: {problem}")
    if len(problems) > MAX_PROBLEMS:
        yield Text(f"and {len(problems) - MAX_PROBLEMS} more problems; --json has all")


def breaker_text(breaker: Row, now: float) -> str:
    """Return which calls are refused, for how long, and why."""
    what = {"tool": f"tool {breaker['tool']}", "discovery": "its lists"}.get(breaker["breaker"], "all calls")
    left_s = breaker["until"] - now
    when = f"for {duration(left_s)} more" if left_s > 0 else "until a call has succeeded"
    return f"left alone {when}: {what}; failed the last time: {breaker['reason']}"


def instances_text(instances: Sequence[Row]) -> str:
    """Return how many instances are up, how many are not needed now, and which are down."""
    up = sum(each["state"] == "ready" for each in instances)
    down = ", ".join(f"{each['number']} is {each['state']}" for each in instances if each["state"] in _DOWN)
    asleep = sum(each["state"] == "dormant" for each in instances)
    return f"{up} of {len(instances)} instances up" + f", {asleep} asleep" * bool(asleep) + f": {down}" * bool(down)


def attention(servers: list[Row]) -> Iterator[Text]:
    barred = [row for row in servers if shown(row) == "requires_reauth"]
    if barred:
        yield _advise("wants a login", barred, "`mcpvisor login SERVER`")
    troubled = [row for row in servers if shown(row) in DOWN]
    misconfigured = [row for row in troubled if row.get("wanted") == "stopped"]
    failing = [row for row in troubled if row.get("wanted") != "stopped"]
    failing += [row for row in servers if shown(row) not in _RANKS and row.get("last_error")]
    if misconfigured:
        yield _advise("cannot run as configured", misconfigured, "correct that in the configuration")
    if failing:
        yield _advise("failing", failing, "see `mcpvisor logs SERVER`, then `mcpvisor restart SERVER`")


def _advise(what: str, servers: list[Row], advice: str) -> Text:
    names = Text(", ").join(plain(row["server"]) for row in servers)
    return Text.assemble((what, STATE_STYLES["error"]), ": ", names, "; ", advice)


def savings_line(totals: dict[str, Any], tokens: dict[str, Any]) -> str:
    about = "" if tokens["exact"] else ("about " if tokens["counted"] else "so far about ")
    exposed, cost = tokens["exposed_tokens"], tokens["meta_tokens"]
    of = {what: f"{totals[what]} {what if totals[what] != 1 else what[:-1]}" for what in ("tools", "servers")}
    offered = f"{of['tools']} of {of['servers']}"
    if totals["tools"] and not exposed:
        return f"the tokens of {offered} are being counted; the four meta-tools cost {cost:,}"
    told = f"would cost a model {about}{exposed:,} tokens; the four meta-tools cost {cost:,}: {tokens['summary']}"
    return f"{offered} {told}"
