"""What real servers do, before one daemon: each ends ready and usable, to clients of both eras, at every door."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import trio

from tests.fakes.behaviours import BEHAVIOURS, RICH
from tests.supervisor.behaviour_tour import ERAS, FAILED, NAMES, ROOT, USABLE, Seen, look

pytestmark = pytest.mark.process

PROBLEMS = {
    "same-name-twice": ["tool 3 ('echo') left out: a second tool of the name 'echo'"],
    "lists-missing": [
        "resources/list: -32602 Invalid request parameters",
        "prompts/list: -32602 Invalid request parameters",
    ],
}
"""What an operator is told of the others."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    return trio.run(look, tmp_path_factory.mktemp("behaviours"))


@pytest.mark.case("S01", "S11", "S22", "L02")
@pytest.mark.parametrize("name", USABLE)
def test_it_is_ready_and_usable_by_clients_of_both_eras_at_every_door(seen: dict[str, Seen], name: str) -> None:
    each = seen[name]
    assert (each.row["state"], each.row["tools"], each.row["last_error"]) == ("ready", len(NAMES[name]), None)
    assert each.row["problems"] == PROBLEMS.get(name, [])
    assert each.wrong == []
    places = [f"{era}{door}" for era in ERAS for door in ("", " at /mcp", " at /mcp/all", " asleep")]
    assert {place: sorted(each.names.get(place, [])) for place in places} == dict.fromkeys(places, sorted(NAMES[name]))
    assert each.texts == dict.fromkeys(places if NAMES[name] else (), "hello")


@pytest.mark.case("P15")
def test_it_ends_without_a_failure(seen: dict[str, Seen]) -> None:
    ends = {name: (seen[name].asleep["state"], seen[name].asleep["last_error"]) for name in USABLE}
    assert ends == dict.fromkeys(USABLE, ("dormant", None))


@pytest.mark.case("P19")
@pytest.mark.parametrize("name", FAILED)
def test_it_is_said_why_it_cannot_be_used(seen: dict[str, Seen], name: str) -> None:
    assert seen[name].row["state"] == "failed"
    assert FAILED[name] in seen[name].row["last_error"]


@pytest.mark.case("S29")
def test_its_questions_are_answered(seen: dict[str, Seen]) -> None:
    for era in ERAS:
        assert json.loads(seen["asks-for-roots"].answers[f"heard {era}"]) == {"0": {"roots": []}}
        heard = json.loads(seen["asks-outside-of-calls"].answers[f"heard {era}"])
        assert heard == {"ping-1": {}, "sample": -32601, "2": -32601}
        assert json.loads(seen["tells-before-it-greets"].answers[f"heard {era}"]) == {"ping-1": {}}
        assert json.loads(seen["modern-asks"].answers[f"heard {era}"]) == {}


@pytest.mark.parametrize("era", ERAS)
def test_what_it_says_of_unknown_tools_is_passed_on(seen: dict[str, Seen], era: str) -> None:
    assert seen["plain"].answers[f"unknown tool {era}"]["error"]["code"] == -32602
    assert seen["unknown-tool-is-a-result"].answers[f"unknown tool {era}"]["result"]["isError"]


@pytest.mark.parametrize("name", ["not-found-is-0", "not-found-is-32002", "not-found-is-32602"])
def test_modern_clients_are_told_of_missing_resources_by_their_code(seen: dict[str, Seen], name: str) -> None:
    assert seen[name].answers["no resource modern"]["error"]["code"] == -32602
    direct = int(name.rpartition("-")[2])
    assert seen[name].answers["no resource legacy"]["error"]["code"] == -direct


def test_a_greeting_says_who_and_what_there_is(seen: dict[str, Seen]) -> None:
    for era in ERAS:
        assert seen["not-announced"].answers[f"greeting {era}"]["capabilities"] == {"tools": {}}
        assert ("tasks" in seen["execution"].answers[f"greeting {era}"]["capabilities"]) is (era == "legacy")
    assert seen["bare-greeting"].answers["greeting legacy"]["serverInfo"]["name"] == "bare-greeting"


NO_OBJECT = "answered with a result that is no object; the tool has run"
NO_ERROR = "answered with an error without a proper code or message"
OUTCOMES: dict[str, dict[str, tuple[Any, Any]]] = {
    "odd-results": {
        **dict.fromkeys(("text", "nothing", "list"), (NO_OBJECT, NO_OBJECT)),
        "neither": ("neither a result nor an error", "neither a result nor an error"),
    },
    "odd-errors": {
        **dict.fromkeys(("text", "no-code", "code-is-text"), (NO_ERROR, NO_ERROR)),
        "code-0": (0, -32603),
        "cancelled": (-32800, -32800),
        "wants-a-url": (-32042, -32603),
        "not-found": (-32002, -32603),
        "vendor": (-32000, -32000),
        "needs-a-task": (-32601, -32601),
    },
    "modern-errors": {
        "headers": (-32603, -32603),
        "capability": ("Sampling needed", -32021),
        "version": (-32603, -32603),
        "vendor": (-31000, -31000),
    },
    "modern-tasks": {"task": ('a result of type "task"',) * 2, "odd": ("a result of type 7",) * 2},
}
"""What clients of the two eras get at the door of a server: the code of an error, or words of a failed call."""


@pytest.mark.case("S26")
@pytest.mark.parametrize(("name", "tool"), [(name, tool) for name, tools in OUTCOMES.items() for tool in tools])
def test_a_call_that_is_answered_oddly_fails_and_says_why(seen: dict[str, Seen], name: str, tool: str) -> None:
    for era, outcome in zip(ERAS, OUTCOMES[name][tool], strict=True):
        answer, at_meta = (seen[name].answers[f"{tool} {era}{door}"] for door in ("", " at /mcp"))
        if isinstance(outcome, str):
            assert outcome in answer["result"]["content"][0]["text"]
            assert answer["result"]["isError"]
        else:
            assert answer["error"]["code"] == outcome
        assert at_meta["result"]["isError"] if tool != "wants-a-url" else at_meta


def test_every_outcome_is_told_for_every_odd_call() -> None:
    assert {name: set(tools) for name, tools in OUTCOMES.items()} == {
        name: set(behaviour.calls) for name, behaviour in BEHAVIOURS.items() if len(behaviour.calls) > 1
    }


@pytest.mark.parametrize("era", ERAS)
def test_what_is_not_wrong_arrives_as_it_was_written(seen: dict[str, Seen], era: str) -> None:
    definition = seen["rich-definitions"].answers[f"tools {era}"][-1]
    assert json.dumps(definition) == json.dumps(RICH)
    result = seen["more-members"].answers[f"echo {era}"]["result"]
    assert result["x-own"] == {"big": 123456789012345678901234567890, "a": [None]}
    assert result["_meta"] == {"x-own/a": 1}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("name", "method", "shown"),
    [
        ("null-members-of-all", "resources/list", {"uri": "test://a", "name": "a", "annotations": {"priority": 1}}),
        ("null-members-of-all", "resources/templates/list", {"uriTemplate": "test://{a}", "name": "t"}),
        ("prompts", "prompts/list", {"name": "a", "arguments": [{"name": "x"}]}),
    ],
)
def test_definitions_of_every_kind_have_nothing_that_is_null(
    seen: dict[str, Seen], era: str, name: str, method: str, shown: dict[str, Any]
) -> None:
    for door in ("own", "/mcp", "/mcp/all"):
        result = seen[name].answers[f"{method} {era} {door}"]["result"]
        listed = [each for member in ("resources", "resourceTemplates", "prompts") for each in result.get(member, ())]
        same = shown.keys() - {"uri", "uriTemplate", "name"}
        assert {key: listed[0].get(key) for key in same} == {key: shown[key] for key in same}
        assert listed[0].keys() - {"_meta"} == shown.keys()


@pytest.mark.parametrize("era", ERAS)
def test_a_status_of_http_is_not_what_an_error_means(seen: dict[str, Seen], era: str) -> None:
    answers = seen["http-modern-statuses"].answers
    assert answers[f"unknown tool {era}"]["error"] == {"code": -32602, "message": "Unknown tool: nothing"}
    assert answers[f"no resource {era}"]["error"] == {"code": -32601, "message": "Method not found"}


def test_every_behaviour_is_on_its_page_of_the_documentation() -> None:
    page = (ROOT / "docs" / "background" / "behaviours.md").read_text()
    part = page.partition("<!-- behaviours -->")[2].partition("<!-- end of behaviours -->")[0]
    items = re.findall(r"^- \*\*.+?\*\* \((`.+?)\)[:.]", re.sub(r"\n +", " ", part), re.MULTILINE)
    named = [name for item in items for name in re.findall("`([a-z0-9-]+)`", item)]
    assert sorted(set(named) & NAMES.keys()) == sorted(NAMES)
