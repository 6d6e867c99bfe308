"""A small run of the suite of attacks; and what keeps copies from crowding out an original."""

from __future__ import annotations

from functools import cache

import pytest

from actors.search.document import Document
from actors.search.index import Index
from actors.search.search import find
from actors.search.segment import analyse
from benchmarks.adversaries import Outcome, outcomes, queries_for, targets_of
from benchmarks.honest import honest
from benchmarks.poison import FAMILIES, poisoned

TEXT = "Create an invoice for a customer from the open positions of an order."


@cache
def suite() -> dict[str, Outcome]:
    tools = honest(tools=250)
    return dict(outcomes(tools, targets_of(tools, 15)))


@pytest.mark.case("Q05")
@pytest.mark.parametrize("family", ["none", *FAMILIES, "all together"])
def test_an_attack_leaves_the_honest_tool_among_the_first_three(family: str) -> None:
    outcome = suite()[family]
    assert sum(outcome.asked.values()) == 75
    for kind in outcome.asked:
        assert outcome.per_cent(outcome.in_three, kind) >= 95, kind


@pytest.mark.case("Q05")
@pytest.mark.parametrize("family", ["stuffed description", "stuffed name", "stuffed title", "stuffed parameters"])
def test_a_server_that_stuffs_gets_no_more_than_half_of_a_page(family: str) -> None:
    assert max(suite()[family].shares) <= 0.5


def test_the_suite_is_as_large_as_it_says_and_the_same_each_time() -> None:
    tools = honest()
    targets = targets_of(tools, 100)
    assert (len(tools), len({(tool.server, tool.name) for tool in tools})) == (1500, 1500)
    assert len(queries_for(targets, tools)) == 500
    assert sum(len(poisoned(family, targets)) for family in FAMILIES) >= 5000
    few = targets_of(tools, 12)
    assert [poisoned(family, few) for family in FAMILIES] == [
        poisoned(family, targets_of(honest(), 12)) for family in FAMILIES
    ]


def tool(server: str, name: str, description: str = TEXT) -> Document:
    return Document(key=f"{server}:{name}", kind="tool", server=server, name=name, described=description)


def billing(*more: Document, server: str = "billing") -> Index:
    own = [tool(server, f"op{n}", f"Something else that nobody copies, number {n}.") for n in range(6)]
    documents = [*own, tool(server, "create_invoice"), *more]
    servers = {document.server for document in documents}
    return Index.empty().rebuild(analyse(name, [d for d in documents if d.server == name]) for name in servers)


def keys(index: Index, query: str) -> list[str]:
    return [hit.document.key for hit in find(index, query).hits]


@pytest.mark.parametrize("query", ["create_invoice", "create invoice", TEXT])
def test_the_original_comes_before_its_clones_of_servers_that_do_nothing_else(query: str) -> None:
    index = billing(*[tool(name, "create_invoice") for name in ("aaa", "bbb", "invoice-create", "customer", "order")])
    assert keys(index, query)[0] == "billing:create_invoice"


def test_a_clone_comes_first_when_its_server_is_asked_for() -> None:
    clones = [tool(name, "create_invoice") for name in ("aaa", "bbb", "ccc", "ddd")]
    assert keys(billing(*clones), "ccc: create_invoice")[0] == "ccc:create_invoice"
    assert keys(billing(*clones), "with ccc, create an invoice for a customer")[0] == "ccc:create_invoice"


def test_two_accounts_of_one_service_keep_their_order() -> None:
    twins = [tool("work", f"op{n}", f"Something else that nobody copies, number {n}.") for n in range(6)]
    index = billing(*twins, tool("work", "create_invoice"), server="home")
    assert keys(index, "create_invoice")[:2] == ["home:create_invoice", "work:create_invoice"]
    assert keys(index, "work create invoice")[0] == "work:create_invoice"


def test_a_server_that_ends_within_a_word_of_the_query_is_not_its_path() -> None:
    splits = [tool("create_invoice"[:cut], "create_invoice"[cut:]) for cut in range(2, 12)]
    found = keys(billing(*splits), "create_invoice")
    assert found[0] == "billing:create_invoice"
    assert not find(billing(*splits), "cr eate invoice", servers=frozenset({"crea"})).hits[0].exact


def test_exact_hits_by_path_and_by_name_take_turns() -> None:
    names = [tool(f"other{n}", "billing_create_invoice") for n in range(5)]
    assert "billing:create_invoice" in keys(billing(*names), "billing_create_invoice")[:2]
    assert "billing:create_invoice" in keys(billing(*names), "billing create invoice")[:2]
