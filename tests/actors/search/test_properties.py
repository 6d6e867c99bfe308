"""What holds for every text and every history of an index."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from actors.search.document import KINDS, TOOLS, Document, Found
from actors.search.index import Index
from actors.search.search import find
from actors.search.segment import analyse

TEXT = "create list delete issue file pod event weather forecast query table mail logs userId k8s 图像 naïve"
WORDS = TEXT.split()
SERVERS = ("alpha", "beta-mcp", "gammaServer", "delta_4")

sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
anything = st.one_of(st.text(max_size=200), sentences, st.text(alphabet=st.characters(), max_size=20))
names = st.one_of(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map("_".join), st.text(max_size=12))


@st.composite
def servers(draw: st.DrawFn) -> list[Document]:
    server = draw(st.sampled_from(SERVERS))
    return [
        Document(
            key=f"{server}:{name}",
            kind=draw(st.sampled_from(KINDS)),
            server=server,
            name=name,
            title=draw(st.one_of(st.just(""), anything)),
            described=draw(anything),
            parameters=tuple(draw(st.lists(st.tuples(names, anything), max_size=2))),
            instructions=draw(st.one_of(st.just(""), sentences)),
            said=tuple(draw(st.one_of(st.just([]), st.lists(anything, max_size=3)))),
        )
        for name in draw(st.lists(names, min_size=1, max_size=4, unique=True))
    ]


def build(catalogue: dict[str, list[Document]]) -> Index:
    return Index.empty().rebuild(analyse(server, documents) for server, documents in catalogue.items())


def everything(index: Index, query: str) -> Found:
    return find(index, query, limit=100, kinds=frozenset(KINDS))


@pytest.mark.case("Q02")
@given(st.lists(servers(), max_size=3), anything, st.integers(-1, 30))
def test_any_text_may_be_searched_in_any_documents(catalogue: list[list[Document]], query: str, limit: int) -> None:
    index = build({documents[0].server: documents for documents in catalogue})
    found = find(index, query, limit=limit)
    assert len(found.hits) <= max(0, limit)
    assert found.total >= len(found.hits)
    assert all(0.0 <= hit.distance <= 1.0 and hit.document.kind in TOOLS for hit in found.hits)
    assert len({hit.document.key for hit in found.hits}) == len(found.hits)


@given(st.lists(st.one_of(servers(), st.sampled_from(SERVERS)), max_size=8), st.lists(sentences, max_size=4))
def test_an_index_changed_step_by_step_answers_like_one_built_at_once(
    history: Sequence[list[Document] | str], queries: list[str]
) -> None:
    index = Index.empty()
    catalogue: dict[str, list[Document]] = {}
    for change in history:
        if isinstance(change, str):
            index = index.remove(change)
            catalogue.pop(change, None)
        else:
            catalogue[change[0].server] = change
            index = index.replace(analyse(change[0].server, change))
    rebuilt = build(catalogue)
    assert len(index) == len(rebuilt)
    assert index.servers == rebuilt.servers
    for query in [*queries, *WORDS, "*", "creat isue", "wether", "lis"]:
        assert everything(index, query) == everything(rebuilt, query)


@given(st.lists(servers(), min_size=1, max_size=3), st.lists(sentences, min_size=1, max_size=4))
def test_sentences_that_are_taken_back_leave_nothing_behind(
    catalogue: list[list[Document]], queries: list[str]
) -> None:
    latest = {documents[0].server: documents for documents in catalogue}
    silent = {server: [replace(each, said=()) for each in documents] for server, documents in latest.items()}
    index = build(latest)
    for server, documents in silent.items():
        index = index.replace(analyse(server, documents))
    for query in queries:
        assert everything(index, query) == everything(build(silent), query)


@pytest.mark.case("Q08")
@given(st.lists(servers(), min_size=1, max_size=4), anything)
def test_the_order_in_which_servers_come_changes_nothing(catalogue: list[list[Document]], query: str) -> None:
    latest = {documents[0].server: documents for documents in catalogue}
    backwards = dict(reversed(latest.items()))
    assert everything(build(latest), query) == everything(build(backwards), query)
    assert everything(build(latest), query) == everything(build(latest), query)


@given(
    st.lists(servers(), min_size=1, max_size=4),
    st.one_of(sentences, st.just("*")),
    st.frozensets(st.sampled_from(SERVERS)),
    st.frozensets(st.sampled_from(KINDS)),
)
def test_nothing_filtered_out_is_found_or_counted(
    catalogue: list[list[Document]], query: str, visible: frozenset[str], kinds: frozenset[str]
) -> None:
    index = build({documents[0].server: documents for documents in catalogue})
    found = find(index, query, limit=100, servers=visible, kinds=kinds)
    assert found.total == len(found.hits)
    for hit in found.hits:
        assert hit.document.server in visible
        assert hit.document.kind in kinds


@given(st.lists(servers(), min_size=1, max_size=4), st.data())
def test_a_document_asked_for_by_path_is_the_first_hit(catalogue: list[list[Document]], data: st.DataObject) -> None:
    latest = {documents[0].server: documents for documents in catalogue}
    every = [document for documents in latest.values() for document in documents]
    wanted = data.draw(st.sampled_from([document for document in every if document.name.strip().isascii()] or every))
    hits = everything(build(latest), wanted.key).hits
    if not any(char.isalnum() for char in wanted.name):
        return
    same = {document.key for document in every if document.key.casefold().strip() == wanted.key.casefold().strip()}
    assert hits[0].exact
    assert len(same) > 1 or hits[0].document.key == wanted.key


@pytest.mark.parametrize("count", [3, 255, 256, 257, 700])
def test_of_however_many_tools_of_a_server_each_is_found_beside_those_of_another(count: int) -> None:
    """Numbers are kept in as few bytes as hold them: the last of a byte, and the first beyond it, are as others."""
    documents = {
        server: [
            Document(
                key=f"{server}:t{number}", kind="tool", server=server, name=f"t{number}", described=f"word{number}x"
            )
            for number in range(count)
        ]
        for server in ("alpha", "omega")
    }
    index = Index.empty().rebuild(analyse(server, texts) for server, texts in documents.items())
    for number in {0, min(255, count - 1), count // 2, count - 1}:
        found = find(index, f"word{number}x", limit=5)
        assert {hit.document.key for hit in found.hits[:2]} == {f"alpha:t{number}", f"omega:t{number}"}
