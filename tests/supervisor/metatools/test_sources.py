"""Where an id comes from: told where names say it plainly, and never else."""

from __future__ import annotations

from typing import Any

import pytest

from actors.catalogue.snapshot import Catalogue
from supervisor.metatools.lean import lean
from supervisor.metatools.page import MAX_IDS, MAX_WANTED, sources_of_ids
from supervisor.metatools.slips import MAX_NAME_CHARS
from tests.supervisor.metatools.test_discovery import ask, catalogue


def needing(name: str, *required: str) -> dict[str, Any]:
    properties = {each: {"type": "string"} for each in required}
    schema = {"type": "object", "properties": properties, "required": [*required]}
    return {"name": name, "description": f"To {name.replace('_', ' ')}.", "inputSchema": schema}


def told(name: str, parameter: str, *others: str | dict[str, Any], server: str = "s") -> str:
    """The tool that is named for a parameter of a tool beside which there are others; empty for none."""
    listed = [needing(name, parameter), *(needing(each) if isinstance(each, str) else each for each in others)]
    entry = catalogue(**{server: listed}).entries[server]
    return sources_of_ids(entry, entry.tools[name]).get(parameter, "")


@pytest.mark.parametrize(
    ("name", "parameter", "others", "source"),
    [
        ("get_message", "message_id", ["list_messages", "send_message"], "list_messages"),
        ("getMessage", "messageId", ["listMessages"], "listMessages"),
        ("get-message", "id_of_it", ["list-messages"], ""),
        ("read_paper", "paper_ids", ["list_papers", "search_papers"], "search_papers"),
        ("get_mail_message", "message_id", ["list_messages", "list_mail_messages"], "list_mail_messages"),
        ("get_chat_message", "message_id", ["list_mail_messages"], ""),
        ("get_user", "user_id", ["get_users"], "get_users"),
        ("get_user", "user_id", ["get_user_profile", "get_user_status"], ""),
        ("query_docs", "context7CompatibleLibraryID", ["resolve-library-id"], "resolve-library-id"),
        ("delete_task", "task_id", ["delete_task_list", "get_task_list", "create_task"], ""),
        ("get_task", "task", ["list_tasks"], ""),
        ("get_task", "task_id", [needing("list_tasks", "task_id")], ""),
        ("list_tasks", "task_id", [], ""),
        ("add_member", "channel_id", ["list_channel_members", "channels_list"], "channels_list"),
    ],
)
def test_a_tool_that_lists_just_that_kind_of_thing_is_the_source(
    name: str, parameter: str, others: list[Any], source: str
) -> None:
    assert told(name, parameter, *others) == source


def test_a_name_that_hides_something_is_told_without_it() -> None:
    hidden = f"{'x' * (MAX_NAME_CHARS - 7)}_dog_id\u202e\x1b[2J"
    entry = catalogue(s=[needing("get_it", hidden), needing("find_dog_id")]).entries["s"]
    assert sources_of_ids(entry, entry.tools["get_it"]) == {hidden[:MAX_NAME_CHARS]: "find_dog_id"}


def test_the_name_of_the_server_is_no_word_of_the_thing() -> None:
    assert told("slack_post", "channel_id", "slack_list_channels", server="slack") == "slack_list_channels"


def test_an_optional_id_is_not_told_of_and_many_are_bounded() -> None:
    things = ["dog", "cat", "cow", "pig", "hen"]
    wanting = needing("compare", *(f"{thing}_id" for thing in things))
    entry = catalogue(s=[wanting, *(needing(f"list_{thing}s") for thing in things)]).entries["s"]
    assert len(sources_of_ids(entry, entry.tools["compare"])) == MAX_IDS
    late = needing("compare", *(f"{'x' * number}ray_id" for number in range(MAX_WANTED)), "dog_id")
    entry = catalogue(s=[late, needing("list_dogs")]).entries["s"]
    assert sources_of_ids(entry, entry.tools["compare"]) == {}
    optional = {**wanting, "inputSchema": {**wanting["inputSchema"], "required": []}}
    entry = catalogue(s=[optional, needing("list_dogs")]).entries["s"]
    assert sources_of_ids(entry, entry.tools["compare"]) == {}


SEEN: Catalogue = catalogue(
    chat=[
        needing("post_message", "channel_id"),
        needing("pin_message", "channel_id"),
        needing("list_channels"),
    ]
)


def test_a_program_reads_it_in_each_row_and_a_model_once() -> None:
    whole = ask("message", SEEN)
    sources = {"channel_id": "list_channels"}
    assert [row.get("ids_from") for row in whole["tools"] if "message" in row["tool_path"]] == [sources, sources]
    assert [row["ids_from"] for row in lean(whole)["tools"] if "ids_from" in row] == [sources]
