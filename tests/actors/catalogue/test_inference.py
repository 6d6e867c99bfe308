"""What the words of a tool say about it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from actors.catalogue.inference import (
    AUTH_DESCRIPTION,
    AUTH_NAME,
    CATEGORIES,
    WORDS,
    Effects,
    category,
    complexity,
    deprecated,
    effects,
    requires_auth,
)


def effects_of(words: Iterable[str], shape: str, description: str = "") -> dict[str, Effects]:
    """The effects of a name of that shape for each word."""
    return {word: effects(shape.format(word), description) for word in words}


@pytest.mark.parametrize("shape", ["{}", "{}_thing", "thing-{}", "{}Thing"])
def test_a_name_that_reads_is_read_only(shape: str) -> None:
    found = {
        word: (each.read_only, each.destructive, each.why) for word, each in effects_of(WORDS["read"], shape).items()
    }
    assert found == {word: (True, False, word) for word in WORDS["read"]}


@pytest.mark.parametrize("shape", ["{}", "get_and_{}_thing", "thing-{}", "{}Thing", "list_{}_x"])
def test_a_name_that_destroys_is_destructive_whatever_else_it_says(shape: str) -> None:
    effects_by_word = effects_of(WORDS["destroy"], shape, "Reads a thing.")
    found = {word: (each.read_only, each.destructive, each.why) for word, each in effects_by_word.items()}
    assert found == {word: (False, True, word) for word in WORDS["destroy"]}


def test_a_name_that_replaces_is_idempotent() -> None:
    alone, deleting = (effects_of(WORDS["replace"], shape) for shape in ("{}_thing", "{}_and_delete_thing"))
    found = {word: (each.read_only, each.destructive, each.idempotent) for word, each in alone.items()}
    assert found == dict.fromkeys(WORDS["replace"], (False, None, True))
    assert [word for word, each in deleting.items() if each.idempotent is not None] == []


def test_a_name_that_writes_is_not_read_only() -> None:
    effects_by_word = effects_of(WORDS["write"], "{}_list")
    found = {word: (each.read_only, each.destructive, each.idempotent) for word, each in effects_by_word.items()}
    assert found == dict.fromkeys(WORDS["write"], (False, None, None))


@pytest.mark.parametrize("name", ["forget", "together", "target", "playlist", "breadth", "undeletable", "offset"])
def test_a_word_inside_another_word_means_nothing(name: str) -> None:
    assert effects(name, "") == Effects()


@pytest.mark.parametrize(
    ("name", "description", "expected"),
    [
        ("deleteRepository", "Permanently remove the repository.", (False, True)),
        ("nuke", "Permanently deletes the repository.", (False, True)),
        ("nuke", "Ends it. Then deletes the rest.", (None, None)),
        ("browse", "Searches the web.", (True, False)),
        ("browse", "Queries the web.", (True, False)),
        ("browse", "Fetches a page.", (True, False)),
        ("browse", "A way to search the web.", (None, None)),
        ("get_queue", "Gets the queue and clears it.", (None, None)),
        ("get_or_create_user", "", (None, None)),
        ("get_build_logs", "", (True, False)),
        ("list_deleted_files", "Lists deleted files.", (True, False)),
        ("create_list", "Lists are made by this.", (False, None)),
        ("touch", "Updates the time of a file.", (False, None)),
        ("", "", (None, None)),
    ],
)
def test_name_and_first_sentence_decide(name: str, description: str, expected: tuple[bool | None, bool | None]) -> None:
    found = effects(name, description)
    assert (found.read_only, found.destructive) == expected


@pytest.mark.parametrize(
    ("server", "name", "description", "expected"),
    [
        ("x", "git_status", "", "version-control"),
        ("github", "create_issue", "", "version-control"),
        ("x", "clone", "Clones a git repository.", "version-control"),
        ("x", "digital_clock", "Digital.", "general"),
        ("x", "readFile", "", "file-system"),
        ("filesystem", "move", "", "file-system"),
        ("x", "read_text", "Reads a file as text.", "file-system"),
        ("x", "read_graph", "Reads the graph.", "general"),
        ("x", "http_get", "", "api"),
        ("x", "run_query", "", "data"),
        ("x", "searches", "", "data"),
        ("x", "search_files", "", "file-system"),
        ("x", "auth_user", "", "authentication"),
        ("x", "run_ci", "", "deployment"),
        ("x", "recipe", "", "general"),
        ("postgres-database", "vacuum", "", "data"),
    ],
)
def test_the_first_category_that_fits_is_taken(server: str, name: str, description: str, expected: str) -> None:
    assert category(server, name, description) == expected


@pytest.mark.parametrize(("name", "nouns"), CATEGORIES)
def test_each_noun_leads_to_its_category(name: str, nouns: tuple[str, ...]) -> None:
    for noun in nouns:
        assert category("x", f"the_{noun}", "") == name
        assert category(f"my-{noun}", "the_thing", "") == name


@pytest.mark.parametrize(
    ("properties", "expected"),
    [(0, "simple"), (2, "simple"), (3, "moderate"), (5, "moderate"), (6, "complex"), (60, "complex")],
)
def test_complexity_grows_with_the_properties(properties: int, expected: str) -> None:
    assert complexity("thing", properties) == expected


def test_some_verbs_are_complex_by_themselves() -> None:
    assert {word: complexity(f"{word}_it", 0) for word in WORDS["complex"]} == dict.fromkeys(
        WORDS["complex"], "complex"
    )


def test_a_name_about_logins_needs_one() -> None:
    found = {word: (requires_auth(f"check_{word}", ""), requires_auth(f"check{word}ed", "")) for word in AUTH_NAME}
    assert found == dict.fromkeys(AUTH_NAME, (True, False))


def test_a_description_about_logins_needs_one_unless_it_denies_it() -> None:
    texts = ("It needs {} of the owner.", "It works without {}.", "No special {} needed.")
    found = {word: tuple(requires_auth("x", text.format(word)) for text in texts) for word in AUTH_DESCRIPTION}
    assert found == dict.fromkeys(AUTH_DESCRIPTION, (True, False, False))


@pytest.mark.parametrize(
    ("name", "title", "description", "expected"),
    [
        ("old_deprecated", "", "", True),
        ("x", "Read (deprecated)", "", True),
        ("x", "", "DEPRECATED: use y.", True),
        ("x", "", "Reads. Deprecated: use y.", True),
        ("x", "", "[Deprecated] Reads.", True),
        ("x", "", "This tool is deprecated.", True),
        ("x", "", "The old tool has been deprecated in favour of y.", True),
        ("x", "", "This MCP server (acme/tools) is now deprecated and will go.", True),
        ("x", "", "Lists APIs; some may be deprecated.", False),
        ("x", "", "Finds uses of deprecated functions.", False),
        ("undeprecated", "", "", False),
    ],
)
def test_only_what_is_said_of_the_tool_itself_deprecates_it(
    name: str, title: str, description: str, expected: bool
) -> None:
    assert deprecated(name, title, description) is expected
