"""Questions about servers that cannot be used: they are answered about them, never with others in silence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.catalogue.names import ServerNames
from actors.catalogue.snapshot import Catalogue
from actors.life.states import State
from actors.messages import ServerStatus
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.arguments import Discover
from supervisor.metatools.discovery import DiscoverySettings, build_answer, search
from supervisor.metatools.servers import named_in
from tests.supervisor.metatools.test_discovery import catalogue, named

DESCRIBED = {"gdrive": "Documents and spreadsheets in the cloud"}


def down(reason: str = "", **more: Any) -> ServerStatus:
    return ServerStatus(server="", state=State.FAILED, wanted="up", since=0.0, reason=reason, restarts=1, **more)


STATUSES = {
    "slack": down("it is switched off in the configuration", disabled=True),
    "google-drive": down("npm error 404"),
    "gdrive": down("no such file"),
    "terminal": down("exit code 1"),
}
OTHERS = catalogue(
    "terminal",
    github=named("create_issue", "list_issues"),
    files=named("create_directory", "read_file"),
    mail=named("send_message", "list_messages"),
    terminal=named("run_command"),
)
SEEN = Catalogue(
    entries=OTHERS.entries,
    index=OTHERS.index,
    indexed=True,
    names=ServerNames({}).with_servers([*STATUSES, *OTHERS.entries]),
)


def ask(query: str, seen: Catalogue = SEEN, **more: Any) -> Any:
    done = search(seen, Discover(query=query, **more), lambda: 0.0, DESCRIBED)
    return json.loads(encode(build_answer(seen, STATUSES, [done], DiscoverySettings(), 0.0, lambda: "github; files")))


def paths(answer: Any) -> list[str]:
    return [row["tool_path"] for row in answer["tools"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("send a message on slack", {"slack"}),
        ("Slack!", {"slack"}),
        ("slackers", set()),
        ("put it into google drive please", {"google-drive"}),
        ("GoogleDrive files", {"google-drive"}),
        ("google the drive", set()),
        ("use slack/terminal", {"slack", "terminal"}),
    ],
)
def test_a_name_in_a_query_is_a_word_or_a_phrase(query: str, expected: set[str]) -> None:
    assert named_in(query, STATUSES) == expected


def test_a_query_that_names_a_server_is_told_of_it_before_others_are_shown() -> None:
    answer = ask("send a message on slack")
    assert next(iter(answer)) == "notice"
    assert answer["notice"].startswith(
        "slack is not available (it is switched off in the configuration); tell the user."
    )
    assert paths(answer)[0] == "mail:send_message"


@pytest.mark.parametrize("query", ["post in #general", "send a chat message", "read the messages of a channel"])
def test_what_a_service_is_known_for_tells_of_it_first_though_it_never_said_so(query: str) -> None:
    answer = ask(query)
    assert answer["notice"].startswith("slack is not available (it is switched off in the configuration)")


def test_what_another_server_may_stand_for_need_not_stop_a_model() -> None:
    said = "slack is not available (it is switched off in the configuration); "
    assert ask("list messages of a channel")["notice"] == f"{said}if that is what is meant, tell the user."
    assert ask("list messages of a slack channel")["notice"].startswith(f"{said}tell the user.")


@pytest.mark.parametrize("query", ["send an email", "post a letter", "read issue #42", "create an issue"])
def test_one_word_in_common_with_a_service_is_not_enough(query: str) -> None:
    assert "slack is not" not in ask(query).get("notice", "").partition("Not usable now")[0]


@pytest.mark.parametrize(
    "query", ["slack:*", "server:slack", "slack:send_message", "slack__send_message", "slack", "Slack/"]
)
def test_what_names_a_server_that_is_down_is_never_answered_with_other_servers_tools(query: str) -> None:
    answer = ask(query)
    assert answer["tools"] == []
    assert "slack is not available" in answer["notice"]


def test_a_path_of_a_server_that_is_there_is_answered_about_that_server() -> None:
    answer = ask("github:create_directory")
    assert answer["notice"].startswith("Server 'github' has no tool 'create_directory'.")
    assert {row["server_name"] for row in answer["tools"]} <= {"github"}
    assert paths(ask("github:create_issue")) == ["github:create_issue"]
    assert paths(ask("github: list the issues"))[0] == "github:list_issues"
    assert {row["server_name"] for row in ask("github: read a file")["tools"]} <= {"github"}


def test_words_that_the_search_passes_over_tell_of_no_server() -> None:
    seen, described = SEEN, {"gdrive": "Here you should be able to have everything between these"}
    done = search(seen, Discover(query="should everything be here"), lambda: 0.0, described)
    assert "gdrive" not in done.servers


def test_a_word_with_a_hyphen_is_no_path() -> None:
    assert "files:read_file" in paths(ask("mail-like file reading"))


def test_words_of_a_description_and_tools_known_from_before_tell_of_a_server() -> None:
    assert "gdrive could not be started (no such file)" in ask("edit spreadsheets and documents")["notice"]
    notice = ask("run a terminal command")["notice"]
    assert "terminal could not be started (exit code 1)" in notice
    assert "terminal could" in ask("run command")["notice"]
    assert "notice" not in ask("create an issue")


def test_where_nothing_fits_the_servers_that_failed_are_named_a_few_of_them() -> None:
    notice = ask("zzzz qqqq")["notice"]
    assert notice.startswith("No description matches. Servers: github; files. Not usable now: ")
    assert all(name in notice for name, status in STATUSES.items() if not status.disabled)
    assert "Ask for what a tool should do" in notice
    many = SEEN.names.with_servers(f"down{number}" for number in range(50))
    statuses = {**STATUSES, **{f"down{number}": down("exit code 1") for number in range(50)}}
    seen = Catalogue(entries=SEEN.entries, index=SEEN.index, indexed=True, names=many)
    done = search(seen, Discover(query="zzzz qqqq"), lambda: 0.0)
    notice = build_answer(seen, statuses, [done], DiscoverySettings(), 0.0)["notice"]
    assert notice.count("could not be started") <= 5
    assert "48 more" in notice


@pytest.mark.parametrize("query", ["zzzz qqqq", "post a letter"])
def test_an_unsure_answer_does_not_tell_what_the_operator_switched_off(query: str) -> None:
    answer = ask(query)
    assert answer["notice"].startswith(("No description matches", "Not sure"))
    assert "slack" not in answer["notice"]


def test_a_server_that_is_switched_off_is_told_of_where_it_is_named() -> None:
    assert ask("read my slack messages")["notice"].startswith("slack is not available (it is switched off")


def test_an_unknown_server_is_said_to_be_unknown() -> None:
    answer = ask("server:jira create issue")
    assert answer["notice"].startswith("There is no server 'jira'.")
    assert "github:create_issue" in paths(answer)
