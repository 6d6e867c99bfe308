"""What is found for which query, on a small catalogue of this file's invention."""

from __future__ import annotations

import re
import warnings

import pytest

from actors.search.document import KINDS, Document, Kind
from actors.search.index import Index
from actors.search.query import weighted_words, with_marks, with_nouns
from actors.search.search import find
from actors.search.segment import analyse
from actors.search.words.tables import SHAPES

CATALOGUE: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {
    "github": {
        "create_issue": ("Create a new issue in a repository.", ("title", "body", "labels")),
        "list_issues": ("List issues of a repository. Filter by state and label.", ("state", "label")),
        "create_pull_request": ("Open a new pull request.", ("head", "base")),
        "search_repositories": ("Search for repositories on GitHub.", ("query",)),
        "get_file_contents": ("Get the contents of a file or directory in a repository.", ("path", "ref")),
    },
    "filesystem": {
        "read_file": ("Read the complete contents of a file.", ("path",)),
        "write_file": ("Create a new file or overwrite an existing one.", ("path", "content")),
        "list_directory": ("List files and directories at a path.", ("path",)),
        "move_file": ("Move or rename files and directories.", ("source", "destination")),
    },
    "postgres-mcp": {
        "run_query": ("Run a read-only SQL query against the database.", ("sql",)),
        "describe_table": ("Show the columns and types of a table.", ("table",)),
    },
    "calendar": {
        "create_event": ("Add an event with attendees to the calendar.", ("start", "end", "attendees")),
        "list_events": ("List upcoming events.", ("time_min", "time_max")),
        "deleteEvent": ("Delete an event.", ("event_id",)),
    },
    "weather": {
        "get_forecast": ("Weather forecast for a place, up to seven days.", ("latitude", "longitude")),
        "get_alerts": ("Severe weather alerts for a region.", ("region",)),
    },
    "kubernetes": {
        "list_pods": ("List pods in a namespace of the cluster.", ("namespace",)),
        "delete_pod": ("Delete a pod.", ("name", "namespace")),
        "get_pod_logs": ("Fetch the logs of a pod.", ("name", "tail_lines")),
    },
    "weibo": {
        "热搜": ("获取微博热搜榜单, 实时热门话题", ()),
        "搜索用户": ("根据关键词搜索微博用户", ("关键词",)),
    },
    "keyvault": {"secret_get": ("Get a secret from Key Vault.", ("vault",))},
}


def document(server: str, name: str, description: str = "", *, kind: Kind = "tool", **more: object) -> Document:
    return Document(key=f"{server}:{name}", kind=kind, server=server, name=name, described=description, **more)  # type: ignore[arg-type]  # fields of Document


def documents(server: str) -> list[Document]:
    return [
        document(server, name, text, parameters=tuple((parameter, "") for parameter in parameters))
        for name, (text, parameters) in CATALOGUE[server].items()
    ]


@pytest.fixture(scope="module")
def index() -> Index:
    return Index.empty().rebuild(analyse(server, documents(server)) for server in CATALOGUE)


def keys(index: Index, query: str, limit: int = 10) -> list[str]:
    return [hit.document.key for hit in find(index, query, limit=limit).hits]


@pytest.mark.parametrize(
    "query",
    [
        "create_issue",
        "create-issue",
        "createIssue",
        "CREATE ISSUE",
        "github:create_issue",
        "mcp__github__create_issue",
        "github.create_issue",
        "github create issue",
        " github/create-issue ",
    ],
)
def test_a_name_or_path_in_any_spelling_is_the_first_hit_and_exact(index: Index, query: str) -> None:
    hit = find(index, query).hits[0]
    assert (hit.document.key, hit.exact, hit.distance) == ("github:create_issue", True, 0.0)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("open a PR", "github:create_pull_request"),  # abbreviation
        ("pull request", "github:create_pull_request"),
        ("file a bug report", "github:create_issue"),  # synonym
        ("k8s pods", "kubernetes:list_pods"),
        ("db query", "postgres-mcp:run_query"),
        ("creat isue", "github:create_issue"),  # typing errors
        ("wether forcast", "weather:get_forecast"),
        ("ubernetes pods", "kubernetes:list_pods"),  # first letter lost
        ("kubernets pod lgos", "kubernetes:get_pod_logs"),
        ("key vault secret", "keyvault:secret_get"),  # glued and apart
        ("listdirectory", "filesystem:list_directory"),
        ("listing directories", "filesystem:list_directory"),  # word forms
        ("forec", "weather:get_forecast"),  # still being typed
        ("what files are in this folder", "filesystem:list_directory"),
        ("get rid of a pod", "kubernetes:delete_pod"),  # turn of phrase
        ("delete event", "calendar:deleteEvent"),  # camelCase in the catalogue
        ("ＬＩＳＴ　ｐｏｄｓ", "kubernetes:list_pods"),  # noqa: RUF001  full width
        ("prévisions weathér forecâst", "weather:get_forecast"),  # accents
        ("fore\u200bcast", "weather:get_forecast"),  # invisible characters
        ("list%20pods", "kubernetes:list_pods"),
        ("微博热搜", "weibo:热搜"),
        ("搜索微博用户", "weibo:搜索用户"),
        ("read /etc/hosts", "filesystem:read_file"),
    ],
)
def test_a_sentence_finds_the_tool_it_means(index: Index, query: str, wanted: str) -> None:
    assert keys(index, query)[0] == wanted


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ('search "list the pods and delete the pod" in repositories', "github:search_repositories"),
        ("read the text in /weather/region.txt", "filesystem:read_file"),
        ("what is at https://www.example.com/kubernetes/pods ? add it to my calendar", "calendar:create_event"),
        ("add an event with weather@forecast.example", "calendar:create_event"),
        ("list pods " + "QWxhZGRpbjpvcGVuIHNlc2FtZQ" * 4, "kubernetes:list_pods"),
        ("write notes.md", "filesystem:write_file"),
    ],
)
def test_what_is_quoted_or_an_address_says_less_than_the_words_around_it(index: Index, query: str, wanted: str) -> None:
    assert keys(index, query)[0] == wanted


def small(*descriptions: tuple[str, str]) -> Index:
    """Return an index of one server `s` with tools of these names and descriptions."""
    return Index.empty().rebuild([analyse("s", [document("s", name, text) for name, text in descriptions])])


def test_a_glued_word_nobody_wrote_is_taken_apart() -> None:
    index = small(("show_invoice", "Show an invoice."), ("show_reminder", "Show a reminder."))
    assert keys(index, "invoicereminder zz") == ["s:show_invoice", "s:show_reminder"]


def test_a_glued_word_with_a_short_part_is_taken_apart_unless_it_is_nearly_a_known_one() -> None:
    index = small(("show_map", "Show a map."), ("show_reminder", "Show a reminder."))
    assert set(keys(index, "mapreminder zz")) == {"s:show_map", "s:show_reminder"}


def test_a_glued_word_is_taken_apart_into_the_fewest_words() -> None:
    index = small(("show_notebook", "Show a notebook."), ("show_sale", "Show a sale."), ("note", "Note a book."))
    assert set(keys(index, "notebooksale zz")) == {"s:show_notebook", "s:show_sale"}


def test_a_likely_typing_error_is_not_taken_apart() -> None:
    index = small(("forecast", "Look ahead."), ("cast", "Assign an actor."), ("fox", "Not a word for it: fore."))
    assert keys(index, "forcast")[0] == "s:forecast"
    assert keys(small(("pod_cast", "Listen."), ("podiast", "Something else.")), "podxast")[0] == "s:podiast"


def test_what_is_far_from_a_word_is_not_taken_for_its_synonyms() -> None:
    index = small(("duplicate_page", "Duplicate a page."), ("copy_sheet", "Copy a sheet."), ("unrelated", "A fox."))
    assert keys(index, "duplicaate zz") == ["s:duplicate_page", "s:copy_sheet"]
    assert keys(index, "dupllicaate zz") == ["s:duplicate_page"]


def test_a_known_glued_word_also_means_the_name_it_begins_with() -> None:
    index = small(("postgres", "Run SQL."), ("mirror", "Copy from a postgresdb or another db."))
    assert set(keys(index, "postgresdb")) == {"s:postgres", "s:mirror"}


def test_a_hyphenated_word_with_a_stop_word_is_one_word() -> None:
    index = small(("signup", "Register an account."), ("sign_document", "Sign a document."))
    assert keys(index, "sign-up")[0] == "s:signup"


def test_a_number_nobody_knows_is_no_reason_to_find_less(index: Index) -> None:
    with_number, without = find(index, "list pods 987654"), find(index, "list pods")
    assert [hit.document for hit in with_number.hits] == [hit.document for hit in without.hits]


def test_words_of_servers_that_went_are_forgotten() -> None:
    index = small(("forecast", "Weather."))
    for turn in "abcdefghijkl":
        texts = [
            " ".join(f"{turn * 9}{tool * 3}{n}{m}" for n in "uvwxyz" for m in "klmnopqrstuvwxyz") for tool in "mnopqr"
        ]
        index = index.replace(analyse("churn", [document("churn", f"t{n}", text) for n, text in enumerate(texts)]))
        assert keys(index, f"{turn * 9}oooyk") == ["churn:t2"]
    assert keys(index, "aaaaaaaaaoooyk") == keys(index, "bbbbbbbbboooyk") == []
    assert keys(index, "forecast") == ["s:forecast"]
    assert keys(index.remove("churn"), "forecast") == ["s:forecast"]


def test_a_long_polite_message_is_read_by_its_request(index: Index) -> None:
    query = (
        "Good morning! I'm sorry to bother you again, we had a long meeting about the events of last week. "
        "Please fetch the logs of the pod that crashed. "
        "Thanks a lot in advance, and let me know if anything is unclear about the calendar or the files."
    )
    assert keys(index, query)[0] == "kubernetes:get_pod_logs"


@pytest.mark.parametrize("query", ["", " ", "\n\t", "a", "?", "图", "\u200b", " x ", "\u0301"])
def test_a_query_of_at_most_one_character_finds_nothing(index: Index, query: str) -> None:
    found = find(index, query)
    assert found.hits == ()
    assert found.total == 0


@pytest.mark.parametrize("query", ["zzqxv wkjjq", "%00%ff%fe", "!!!???", "qwzx" * 40, "0xdeadbeefdeadbeef"])
def test_garbage_finds_nothing(index: Index, query: str) -> None:
    assert find(index, query).hits == ()


def test_a_star_lists_everything_in_path_order(index: Index) -> None:
    found = find(index, "*", limit=1000)
    listed = [hit.document.key for hit in found.hits]
    assert listed == sorted(listed)
    assert found.total == len(index) == sum(len(tools) for tools in CATALOGUE.values())
    assert find(index, " * ", limit=3).hits == found.hits[:3]


def test_total_counts_all_that_match_and_not_only_the_page(index: Index) -> None:
    page = find(index, "list", limit=1)
    assert len(page.hits) == 1
    assert page.total == find(index, "list", limit=100).total == len(find(index, "list", limit=100).hits) > 1


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_of_nothing_still_counts(index: Index, limit: int) -> None:
    found = find(index, "list pods", limit=limit)
    assert found.hits == ()
    assert found.total > 0


def test_the_distance_never_falls_and_tells_a_good_match_from_a_poor_one(index: Index) -> None:
    distances = [hit.distance for hit in find(index, "list pods in a namespace").hits]
    assert distances == sorted(distances)
    poor = find(index, "something about a region with unheardof zebrafish requirements").hits
    assert 0 < distances[0] < 0.3 < poor[0].distance < 1


@pytest.mark.case("Q08")
def test_equal_documents_come_in_path_order() -> None:
    index = Index.empty().rebuild(
        analyse(server, [document(server, f"tool_{n}", "Frobnicate the widget.") for n in (2, 1)])
        for server in ("zeta", "beta", "alpha")
    )
    assert keys(index, "frobnicate widget") == [
        f"{server}:tool_{n}" for server in ("alpha", "beta", "zeta") for n in (1, 2)
    ]


def test_other_kinds_are_found_only_when_asked_for() -> None:
    manuals = [document("docs", f"manual_{kind}", "The manual", kind=kind) for kind in KINDS]
    index = Index.empty().rebuild([analyse("docs", manuals)])
    assert keys(index, "manual") == ["docs:manual_tool"]
    found = find(index, "manual", kinds=frozenset({"resource", "prompt"}))
    assert {hit.document.kind for hit in found.hits} == {"resource", "prompt"}
    assert found.total == 2
    assert not any(hit.exact for hit in find(index, "manual_resource").hits)
    assert find(index, "*", kinds=frozenset({"template"})).total == 1
    assert find(index, "manual", kinds=frozenset()).hits == ()


def test_filters_work_before_limit_and_total(index: Index) -> None:
    visible = frozenset({"calendar", "kubernetes"})
    found = find(index, "list", limit=2, servers=visible)
    assert {hit.document.server for hit in found.hits} <= visible
    assert len(found.hits) == 2
    assert found.total == find(index, "list", limit=50, servers=visible).total
    assert {hit.document.server for hit in find(index, "github:create_issue", servers=visible).hits} == {"calendar"}
    assert find(index, "list", servers=frozenset()).total == 0


def test_title_parameters_and_instructions_are_searched_too() -> None:
    documents = [
        document("crm", "op_17", title="Merge duplicate customers"),
        document("crm", "op_18", parameters=(("warehouse_code", "Which depot to ship from"),)),
        document("crm", "op_19", instructions="This server talks to Zephyrcrm."),
    ]
    index = Index.empty().rebuild([analyse("crm", documents)])
    assert keys(index, "duplicate customers") == ["crm:op_17"]
    assert keys(index, "warehouse") == ["crm:op_18"]
    assert keys(index, "depot") == ["crm:op_18"]
    assert keys(index, "zephyrcrm") == ["crm:op_19"]


def test_replacing_and_removing_a_server_leave_the_older_index_as_it_was(index: Index) -> None:
    changed = index.replace(analyse("weather", [document("weather", "get_tides", "Tide table of a harbour.")]))
    assert keys(changed, "tides") == ["weather:get_tides"]
    assert keys(changed, "severe weather alerts")[0] != "weather:get_alerts"
    assert keys(index, "tides") == []
    assert keys(index, "severe weather alerts")[0] == "weather:get_alerts"
    gone = changed.remove("weather")
    assert keys(gone, "tides") == []
    assert len(gone) == len(changed) - 1
    assert "weather" not in gone.servers
    assert gone.remove("weather") is gone
    assert len(gone.replace(analyse("empty", []))) == len(gone)


def test_of_documents_with_one_key_the_last_counts() -> None:
    index = Index.empty().rebuild(
        [analyse("s", [document("s", "tool", "first words"), document("s", "tool", "second meaning")])]
    )
    assert len(index) == 1
    assert keys(index, "meaning") == ["s:tool"]
    assert keys(index, "first words") == []


def test_an_empty_index_finds_nothing() -> None:
    assert len(Index.empty()) == 0
    assert find(Index.empty(), "create issue").hits == ()
    assert find(Index.empty(), "*").total == 0


def test_a_server_without_documents_does_no_harm() -> None:
    listed = Document(key="a:read_file", kind="tool", server="a", name="read_file", described="Read a file.")
    index = Index.empty().rebuild([analyse("a", [listed]), analyse("empty", [])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [hit.document.key for hit in find(index, "read a file").hits] == ["a:read_file"]


def test_of_very_many_words_a_few_are_enough() -> None:
    things = ["invoice", "ticket", "lamp", "garden", "piano", "bridge", "castle", "engine", "mirror", "pocket"]
    listed = [
        Document(key=f"a:make_{thing}", kind="tool", server="a", name=f"make_{thing}", described=f"Make a {thing}.")
        for thing in things
    ]
    index = Index.empty().rebuild([analyse("a", listed)])
    story = " ".join(f"qxz{chr(97 + number)}wv" for number in range(16))
    assert find(index, f"{' '.join(things)} {story}", limit=3).hits
    assert find(index, story).hits == ()


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_written_in_a_way_of_its_own_is_known_by_its_shape(name: str) -> None:
    shape = SHAPES[name]
    assert with_marks(f"what about {shape.example} since lunch?").split() == ["what", "about", "since", "lunch?"]
    assert shape.noun in with_nouns(f"what about {shape.example}")
    assert {word for word, _ in shape.hints} <= {word for word, _ in weighted_words(shape.example, ())}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_repeats_nothing_without_a_bound(name: str) -> None:
    """Else a query of thousands of the same character would hold the loop for tenths of a second."""
    assert not re.search(r"(?<!\\)[*+]|\{\d+,\}", re.sub(r"\[(?:\\.|[^\]])*\]", "c", SHAPES[name].pattern))


@pytest.mark.parametrize(
    "text",
    [
        "UTF-8 and SHA-256",
        "#ff00aa or #fff",
        "at 10:30",
        "at 10:30:15",
        "Base::Face",
        "walk 5 km to Berlin",
        "note: this",
        "$1234.5678",
        "github:create_issue",
        "Well! 3 of them",
    ],
)
def test_what_only_looks_like_a_key_is_none(text: str) -> None:
    assert with_nouns(text) == text


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("what is 85 fahrenheit in celsius", "s:convert_units"),
        ("how much is 12.5 miles in km", "s:convert_units"),
        ("does 2001:db8::/32 contain 2001:db8:1::1", "s:check_network"),
        ("is 10.1.2.3 inside 10.0.0.0/8", "s:check_network"),
    ],
)
def test_a_value_is_no_unknown_thing(query: str, first: str) -> None:
    found = small(
        ("convert_units", "Convert a value from one unit of measurement to another"),
        ("check_network", "Check whether an IP network contains an address"),
        ("write_file", "Write a file"),
    )
    (hit, *_) = find(found, query).hits
    assert hit.document.key == first
    assert hit.distance < 0.5


def test_a_key_means_the_thing_that_has_such_keys() -> None:
    found = small(("get_issue", "Get a Jira issue"), ("drag", "Drag an element"), ("list_channels", "List channels"))
    assert keys(found, "ACME-19 dragged on, who has it?")[0] == "s:get_issue"
