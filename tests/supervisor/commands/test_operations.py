"""`operations`: whoever asks sees what they may ask for, and by which command."""

from __future__ import annotations

import json

import pytest

from supervisor.front.application import application
from supervisor.front.pages.requests import REQUESTER
from supervisor.identity.people import Person
from supervisor.identity.requester import Requester
from supervisor.operations import ROLES, Role
from tests.fakes.tool_view import view_of
from tests.supervisor.commands.test_tools import invoke


async def test_a_table_has_a_row_for_each_with_its_command() -> None:
    result = await invoke("operations")
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["DELETE", "/api/consents/<id_>", "member", "consents"] in [row[:4] for row in rows]
    assert ["GET", "/healthz", "anybody", "-"] in [row[:4] for row in rows]
    written = json.loads((await invoke("operations --json")).stdout)
    assert len(written) == len(rows) - 1


@pytest.mark.parametrize("role", ROLES)
async def test_nobody_is_told_of_what_they_may_not_ask_for(role: Role) -> None:
    app = application(view_of())
    token = REQUESTER.set(Requester(person=Person(user="ben", role=role)))
    try:
        answer = await app.test_client().get("/api/operations")
        told = json.loads(await answer.get_data())["operations"]
    finally:
        REQUESTER.reset(token)
    allowed = ROLES[: ROLES.index(role) + 1]
    assert {row["role"] for row in told} == {None, *allowed}
    usage = next(row for row in told if row["path"] == "/api/usage")
    assert (usage["method"], usage["command"], usage["parameters"][0]) == ("GET", "usage", "window")
