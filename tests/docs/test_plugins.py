"""The pages about plugins: their code runs as it is written, and the reference has what the contract has."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from actors.catalogue.offer import Tool
from actors.errors import CallRefused
from supervisor.commands.status import list_plugins
from supervisor.config import Configuration, Settings, load
from supervisor.plugins import questions
from supervisor.plugins.answers import PluginQuestion
from supervisor.plugins.contract import Plugin, Viewer
from supervisor.plugins.hooks import Nobody, PluginTable
from supervisor.plugins.loading import HOOKS
from supervisor.plugins.questions import GivenAnswer, QuestionInput
from tests.fakes.plugins import install, install_example

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "plugins.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference" / "plugins.md").read_text(encoding="utf-8")
MODULE, HIDING, ASKING, TRIAL = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
STATUS, TOLD = re.findall(r"```text\n(.*?)\n```", GUIDE, re.DOTALL)


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = set(sys.modules)
    ((name, point),) = re.findall(r'^([a-z-]+) = "(.*)"$', GUIDE, re.MULTILINE)
    module, _, kind = point.partition(":")
    install(tmp_path, module, MODULE, {name: kind}, "office-hours")
    for example in ("access", "redaction"):
        install_example(example, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for imported in set(sys.modules) - before:
        if imported.startswith(("office_hours", "mcpvisor_")):
            del sys.modules[imported]


def read(page: str, directory: Path) -> Configuration:
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    file = directory / "mcp.json"
    file.write_text(example, encoding="utf-8")
    return load(file, {})


def test_the_test_of_the_guide_passes() -> None:
    sides: dict[str, Any] = {}
    exec(MODULE, sides)
    exec(TRIAL, sides)
    assert sides["closed"].guards


async def test_the_plugin_of_the_guide_is_shown_and_refuses_as_the_guide_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = read(GUIDE, tmp_path)
    table = PluginTable()
    options = {name: {**entry.options, "until": 0} for name, entry in configuration.settings.plugins.items()}
    table.use(table.prepare(options, {}, 1), Settings())
    (status,) = table.statuses()
    row = {name: getattr(status, name) for name in status.__struct_fields__}
    assert [line.plain for line in list_plugins([row])] == [STATUS.replace("0.1.0", "1.2.3")]
    sides: dict[str, Any] = {}
    exec(MODULE + TRIAL.partition("closed = ")[0], sides)
    with pytest.raises(CallRefused) as caught:
        await table.before_call(sides["call"], Nobody())
    assert caught.value.message == TOLD.replace("17:00", "0:00")


def test_the_example_of_the_reference_is_one_for_the_example_plugins(tmp_path: Path) -> None:
    assert [*read(REFERENCE, tmp_path).settings.plugins] == ["access", "redaction"]


def test_every_hook_has_its_item_and_every_item_is_a_hook() -> None:
    section = REFERENCE.partition("## Hooks")[2].partition("## Deadlines")[0]
    assert re.findall(r"^- \*\*`(\w+)\(", section, re.MULTILINE) == [*HOOKS]
    assert all(getattr(Plugin, name) is hook for name, hook in HOOKS.items())


class Answer:
    """Implements `Asker`: a person who answers so."""

    most = 1

    def __init__(self, answer: GivenAnswer) -> None:
        self._answer = answer
        self.asked: dict[str, PluginQuestion] = {}

    def answers(self, plugin: str) -> dict[str, GivenAnswer]:
        return dict.fromkeys(self.asked, self._answer)

    async def ask(self, plugin: str, question: PluginQuestion) -> None:
        self.asked[question.key] = question
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        (GivenAnswer("accept", b'{"answer":"a birthday"}'), b'{"to":"x","reason":"a birthday"}'),
        (GivenAnswer("decline"), None),
        (GivenAnswer("accept", b'{"answer":7}'), None),
    ],
)
async def test_the_plugin_of_the_guide_that_asks_passes_the_answer_on(
    tmp_path: Path, answer: GivenAnswer, sent: bytes | None
) -> None:
    install(tmp_path, "office_reasons", ASKING, {"reasons": "Reasons"})
    table, asker = PluginTable(), Answer(answer)
    table.use(table.prepare({"reasons": {}}, {}, 1), Settings())
    sides: dict[str, Any] = {}
    exec(MODULE + TRIAL.partition("closed = ")[0], sides)
    call = replace(sides["call"], arguments=b'{"to":"x"}')
    if sent is None:
        with pytest.raises(CallRefused, match="nobody said why"):
            await table.before_call(call, asker)
    else:
        assert (await table.before_call(call, asker)).arguments == sent
    assert b"Why is this mail needed?" in bytes(asker.asked["reason"].params)


async def test_the_plugin_of_the_guide_that_hides_goes_by_who_asks(tmp_path: Path) -> None:
    install(tmp_path, "office_careful", HIDING, {"careful": "Careful"})
    table, drop = PluginTable(), Tool(name="drop_table")
    table.use(table.prepare({"careful": {}}, {}, 1), Settings())
    for viewer, sees in ((Viewer(user="ann"), False), (Viewer(role="admin"), True)):
        assert (not (await table.hidden(viewer, {"db": (drop,)}))["db"].why) is sees


def test_every_kind_of_question_has_its_row() -> None:
    section = REFERENCE.partition("## What a plugin asks")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    kinds = {name for name, each in vars(questions).items() if name.endswith("Input") and each is not QuestionInput}
    assert sorted(named) == sorted(kinds)
