"""What turns of phrase are taken to mean, several wishes in one query, and how sure a hit is."""

from __future__ import annotations

import pytest

from actors.search.document import Document
from actors.search.index import Index
from actors.search.paraphrase import NOTHING_MEANT, compile_rules, interpret
from actors.search.query import Clause, clauses, named_words, topic_words
from actors.search.search import find
from actors.search.segment import analyse
from actors.search.words.tables import PRODUCTS, RULES, WEAK

CATALOGUE: dict[str, dict[str, str]] = {
    "calendar": {
        "create_event": "Add an event with attendees to the calendar.",
        "list_events": "List upcoming events.",
        "query_freebusy": "Find out when people are available.",
    },
    "chat": {
        "post_message": "Post a message to a channel.",
        "list_channels": "List the channels of a workspace.",
        "get_channel_history": "Read the latest messages of a channel.",
    },
    "git": {
        "git_diff": "Show changes between commits and the working tree.",
        "git_log": "Show the commit log.",
        "git_blame": "Show who last modified each line of a file.",
    },
    "playwright": {
        "playwright_put": "Perform an HTTP PUT request.",
        "playwright_screenshot": "Take a screenshot of the page.",
    },
    "boards": {"create_card": "Create a card on a board.", "move_card": "Move a card to another list."},
    "speech": {"text_to_speech": "Convert text to speech.", "speech_to_text": "Transcribe speech to text."},
    "places": {"search_places": "Search for places nearby.", "get_directions": "Get directions between two places."},
}


def searched(query: str) -> list[tuple[str, float]]:
    index = Index.empty().rebuild(
        [
            analyse(
                server,
                [
                    Document(key=f"{server}:{name}", kind="tool", server=server, name=name, described=text)
                    for name, text in tools.items()
                ],
            )
            for server, tools in CATALOGUE.items()
        ],
    )
    return [(hit.document.key, hit.distance) for hit in find(index, query).hits]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("put me down for the dentist next Tuesday at 4", "calendar:create_event"),
        ("am I free on Thursday afternoon?", "calendar:query_freebusy"),
        ("what did I miss in the design channel today?", "chat:get_channel_history"),
        ("who wrote line 120 of parser.py? I want to ask them something", "git:git_blame"),
        ("what have I changed since I last committed?", "git:git_diff"),
        ("read this poem out loud for me", "speech:text_to_speech"),
        ("I've got an mp3 of yesterday's interview, can I have it as text?", "speech:speech_to_text"),
        ("any decent ramen around here?", "places:search_places"),
    ],
)
def test_what_people_say_finds_what_they_want_done(query: str, wanted: str) -> None:
    assert searched(query)[0][0] == wanted


@pytest.mark.parametrize(
    ("cue", "text", "meant"),
    [
        ("put me down for => create / event", "Put me down for the dentist", ["create", "event"]),
        ("put me down for => create / event", "put it down for me", []),
        ("who .. wrote|changed .. line => blame", "who was it that changed this line?", ["blame"]),
        ("who .. wrote|changed .. line => blame", "who is it that, as you all know, changed line 3?", []),
        ("who ... wrote => blame", "who is it that, as you all know, wrote line 3?", ["blame"]),
        ("^ ping => send", "ping Ann", ["send"]),
        ("^ ping => send", "I ping Ann", []),
        ("over $ => done", "it is over", ["done"]),
        ("over $ => done", "over there", []),
        ("on #time => event", "on Tuesday", ["event"]),
        ("at #time => event", "at 5pm", ["event"]),
        ("#number plus #number => sum", "what's 48193 plus 7720?", ["sum"]),
        ("rename #file => move", "rename holiday.txt to x", ["move"]),
        ("tell #who => send", "tell my wife", ["send"]),
        ("tell #who => send", "tell me", []),
        ("delete it => remove", 'find "delete it" in the notes', []),
        ("read page => fetch", "read https://a.example/read/page", []),
        ("put twice => repeat", "put /home/ana/guests.xlsx twice", ["repeat"]),
    ],
)
def test_a_cue_is_met_word_by_word(cue: str, text: str, meant: list[str]) -> None:
    assert [need[0] for need in interpret(text, compile_rules([cue])).needs] == meant


def test_of_two_rules_about_the_same_words_the_longer_cue_counts() -> None:
    rules = compile_rules(["put => insert", "put me down => event", "down => below"])
    assert interpret("put me down", rules).needs == (("event",),)


def test_words_of_a_cue_are_explained_unless_the_meaning_has_them() -> None:
    found = interpret("text the job is over", compile_rules(["text .. job => send text"]))
    assert found.taken == {"job"}


def test_who_retrieves_information_does_not_ask_what_is_remembered() -> None:
    needs = interpret("retrieve all information about seismic activity in London").needs
    assert not [need for need in needs if "memory" in need]


def test_who_orders_something_to_be_deleted_does_not_tell_that_it_was() -> None:
    rules = compile_rules(["deleted .. branch => recover", "delete .. file => remove"])
    assert interpret("I deleted the branch", rules).needs == (("recover",),)
    assert interpret("delete the branch", rules) is NOTHING_MEANT
    assert interpret("files were deleted, deleting a file", rules).needs == (("remove",),)
    assert not [need for need in interpret("delete a git branch").needs if "recover" in need]


def test_a_text_in_other_words_means_no_more_than_it_says() -> None:
    assert interpret("zebra crossing", compile_rules(["put me down => event"])) is NOTHING_MEANT


@pytest.mark.parametrize(
    "line",
    ["put me down", "put => ", "=> event", "put => a / ", "put the => a", "put #thing => a", "put => a set|lay => b"],
)
def test_a_line_that_is_no_rule_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not a rule"):
        compile_rules([line])


def _sentence(cue: str) -> str:
    examples = {"#time": "tuesday", "#number": "7", "#file": "a.txt", "#who": "somebody"}
    words = [element for element in cue.split() if element not in ("..", "...", "^", "$")]
    return " ".join(examples.get(first, first) for first in (word.split("|")[0] for word in words))


LINES = [line for line in RULES if line.strip() and not line.startswith("# ")]


def test_each_rule_is_met_by_its_own_cue() -> None:
    unmet = [line for line in LINES if not interpret(_sentence(line.partition("=>")[0]), compile_rules([line])).needs]
    assert unmet == []


def test_no_rule_is_there_twice() -> None:
    assert len(LINES) == len(set(LINES))


@pytest.mark.parametrize(
    ("query", "wishes"),
    [
        ("find the venue and tell the team", [("find the venue", False), ("tell the team", False)]),
        (
            "look for the venue, then leave a comment there",
            [("look for the venue", False), ("leave a comment there", True)],
        ),
        (
            "is main green? if it is, let the others know",
            [("is main green", False), ("if it is, let the others know", True)],
        ),
        ("create a table with name and age", []),
        ("show pods and their status", []),
        ("list the pods, please", []),
        ('search for "find it and tell them" in the notes', []),
        ("and", []),
        ("", []),
        ("find it and tell them " * 60, []),
    ],
)
def test_a_query_is_divided_where_another_request_begins(query: str, wishes: list[tuple[str, bool]]) -> None:
    assert list(clauses(query)) == [Clause(text, refers) for text, refers in wishes]


def test_each_of_two_wishes_has_its_tool_among_the_first() -> None:
    keys = [key for key, _ in searched("who wrote this line? post a message to the channel about it")][:3]
    assert {"git:git_blame", "chat:post_message"} <= set(keys)


def test_who_names_a_product_is_not_helped_by_a_tool_that_does_not_know_it() -> None:
    with_product, without = searched("create a Trello card")[0], searched("create a card on a board")[0]
    assert with_product[0] == without[0] == "boards:create_card"
    assert with_product[1] > 10 * without[1]


@pytest.mark.parametrize("query", ["list zebras", "get the zebra", "create a zebra"])
def test_a_verb_alone_is_no_ground(query: str) -> None:
    assert all(distance >= 0.5 for _, distance in searched(query))


@pytest.mark.parametrize(
    ("query", "arguments"),
    [
        ("write a note about Ann for the team", {"ann"}),
        ("what time is it in Tokyo", {"tokyo"}),
        ("start a page called kitchen remodel in notes", {"kitchen", "remodel"}),
        ("search the web for trio nurseries", {"trio", "nurseries"}),
        ("create a spreadsheet with my expenses", {"expenses"}),
        ("Find the page", set()),
        ("list events", set()),
    ],
)
def test_names_and_topics_are_arguments(query: str, arguments: set[str]) -> None:
    assert named_words(query) | topic_words(query) == arguments


def test_a_name_that_no_tool_has_is_not_missed() -> None:
    assert searched("create an event in Tokyo")[0][1] < 0.5


def test_a_product_of_two_words_is_one_name() -> None:
    assert searched("create a card in Power BI")[0][1] >= 0.5


def test_another_word_for_what_a_product_does_is_not_its_name() -> None:
    def distance(text: str) -> float:
        document = Document(key="run:list_all", kind="tool", server="run", name="list_all", described=text)
        return find(Index.empty().rebuild([analyse("run", [document])]), "list docker boxes").hits[0].distance

    assert distance("List every container.") > distance("List every container of docker.")


def test_a_fair_second_hit_is_far_from_the_worst() -> None:
    first, second = searched("list the messages of a channel")[:2]
    assert first[1] <= second[1] < 0.9


def test_everyday_words_are_not_taken_for_misspelt_ones() -> None:
    hits = searched("my aunt walks")
    assert hits == []


def test_a_word_of_our_lists_is_no_misspelling() -> None:
    text = "Say whether the build is done."
    index = Index.empty().rebuild(
        [analyse("ci", [Document(key="ci:get_state", kind="tool", server="ci", name="get_state", described=text)])]
    )
    assert find(index, "is it wether").hits
    assert not [hit for hit in find(index, "get the weather").hits if hit.distance < 0.5]


def test_word_lists_are_words_in_lower_case() -> None:
    assert all(word == word.lower() and word.isalnum() for word in WEAK | PRODUCTS)


@pytest.mark.parametrize("query", ["what pods are running", "which containers are down"])
def test_who_asks_to_see_pods_wants_a_tool_that_gets_not_one_that_executes(query: str) -> None:
    tools = {
        "exec_in_pod": "Execute a command in a Kubernetes pod or container and return the output.",
        "kubectl_get": "Get or list Kubernetes resources by resource type, name, and optionally namespace.",
    }
    documents = [
        Document(key=name, kind="tool", server="kubernetes", name=name, described=text) for name, text in tools.items()
    ]
    index = Index.empty().rebuild([analyse("kubernetes", documents)])
    assert [hit.document.key for hit in find(index, query).hits] == ["kubectl_get", "exec_in_pod"]
