"""`questions`: what waits for an answer is listed, and answered or declined from a terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from supervisor.host.datadir import DataDir
from tests.fakes.whole_server import WholeServer
from tests.scenario.daemon import World, world
from tests.supervisor.commands.test_cli import ask

SERVERS: dict[str, Any] = {"one": {"command": "x", "confirm": ["*"], "ask": "everyone"}}


async def call(at: World) -> None:
    """Call a tool that asks first, as a client that cannot be asked."""
    told = await at.executed("one:tool1")
    assert "questions" in told["structuredContent"], told


async def test_questions_are_listed_answered_and_declined(tmp_path: Path, data: DataDir) -> None:
    async with world(tmp_path, data, SERVERS, {"one": WholeServer()}) as at:
        assert (await ask(at.url, "questions")).stderr == "Nobody asks anything.\n"
        await call(at)
        shown = (await ask(at.url, "questions")).stdout.splitlines()
        assert shown[0].split()[:5] == ["ID", "ASKED", "BY", "ABOUT", "KIND"]
        id_ = shown[1].split()[0]
        assert "Run one:tool1 with" in shown[1]
        assert "a client" in shown[1]
        (listed,) = json.loads((await ask(at.url, "questions", "--json")).stdout)["questions"]
        assert listed["id"].startswith(id_)
        unanswered = await ask(at.url, "questions", id_, stdin="")
        assert unanswered.exit_code == 1
        assert unanswered.stderr.endswith("Error: nothing was answered: the question still waits\n")
        answered = await ask(at.url, "questions", id_, stdin="y\n")
        assert answered.exit_code == 0
        assert answered.stderr.endswith("you said yes; tell the model to go on: it repeats the call\n")
        await call(at)
        other = json.loads((await ask(at.url, "questions", "--json")).stdout)["questions"][-1]["id"]
        declined = await ask(at.url, "questions", other, "--decline")
        assert declined.stderr == "you said no: the tool does not run\n"
