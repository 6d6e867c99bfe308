"""What twenty tasks cost a model: `python -m benchmarks.tasks CATALOG.jsonl`.

The catalogue is that of `benchmarks.search`, with the servers that `tasks.toml` names among others. A daemon runs
before a server for each; those that the tasks call answer with the texts of `answers.json`. Each task is played in two
manners, see `player`: one thing a turn and all of it, and with `queries`, `calls` and `pick`. The table has turns, and
tokens read (cl100k, the texts of the answers), of discovers and of results.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks import client as mcp
from benchmarks.needs import publish, until_at_rest
from benchmarks.running import Place, daemon
from benchmarks.search import Tool
from benchmarks.tasks.player import Cost, Player
from benchmarks.tasks.script import Task, load_answers, load_tasks
from supervisor.tokens.counting import Tiktoken, load_encoding

Manner = str
PLAIN, JOINED = "one by one", "joined"


def play(tools: Sequence[Tool], tasks: Sequence[Task], directory: Path) -> Mapping[Manner, list[Cost]]:
    """Run a daemon in a directory before servers with these tools; return by manner what each task costs."""
    count = Tiktoken(load_encoding()).count
    with daemon(Place(directory), publish(tools, directory, load_answers())) as running:
        until_at_rest(running)
        with mcp.Client(running.port) as client:
            players = {name: Player(client.answer, count, joined=name == JOINED) for name in (PLAIN, JOINED)}
            return {name: [player.play(task) for task in tasks] for name, player in players.items()}


def report(tasks: Sequence[Task], costs: Mapping[Manner, Sequence[Cost]]) -> str:
    """Return the table as a list of Markdown, and the whole with its ratios."""
    lines = ["- task: turns, tokens of discovers, tokens of results; one by one -> joined"]
    for task, plain, joined in zip(tasks, costs[PLAIN], costs[JOINED], strict=True):
        pairs = ((plain.turns, joined.turns), (plain.discovery, joined.discovery), (plain.results, joined.results))
        lines.append(f"  - {task.asked} {'; '.join(f'{one:,} -> {other:,}' for one, other in pairs)}")
    plain, joined = total(costs[PLAIN]), total(costs[JOINED])
    for name, one, other in (
        ("turns", plain.turns, joined.turns),
        ("tokens of discovers", plain.discovery, joined.discovery),
        ("tokens of results", plain.results, joined.results),
    ):
        lines.append(f"- {name}: {one:,} -> {other:,} ({100 * (other - one) / one:+.0f} %)")
    lines.append(f"- tools that were asked for again by their path: {plain.again} -> {joined.again}")
    lines += [f"- failed: {why}" for why in (*plain.failed, *joined.failed)]
    return "\n".join(lines)


def total(costs: Sequence[Cost]) -> Cost:
    """Return the sum."""
    whole = Cost()
    for cost in costs:
        whole.add(cost)
    return whole


def main() -> int:
    """Play, print. Return 1 if a call failed."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.tasks", description=__doc__)
    options.add_argument("catalog", type=Path, metavar="CATALOG.jsonl")
    tools = msgspec.json.Decoder(Tool).decode_lines(options.parse_args().catalog.read_bytes())
    tasks = load_tasks()
    with tempfile.TemporaryDirectory(prefix="tasks-") as directory:
        costs = play(tools, tasks, Path(directory))
    print(report(tasks, costs))
    return 1 if any(cost.failed for some in costs.values() for cost in some) else 0


if __name__ == "__main__":
    raise SystemExit(main())
