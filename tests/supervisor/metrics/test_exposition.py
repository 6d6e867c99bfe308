"""What is written is what the parsers of Prometheus read: every label and every number, in both formats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from supervisor.metrics.exposition import FamilyValues, Format, expose, format_of
from supervisor.metrics.families import Family
from supervisor.metrics.tables import Counts, Durations, Exemplar, Labels

COUNTER = Family("mcpvisor_things_total", "counter", ("name", "kind"), 'Counts "things",\nby \\ kind.')
GAUGE = Family("mcpvisor_size_bytes", "gauge", ("name",), "A size.")
PLAIN = Family("mcpvisor_now", "gauge", (), "No label.")
TIMES = Family("mcpvisor_wait_seconds", "histogram", ("cause",), "Times.", (0.1, 1.0, 10.0))
NOW: dict[Labels, float] = {(): 1}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


def parsed(page: bytes, written_as: Format) -> list[Metric]:
    text = page.decode()
    if written_as == "openmetrics":
        return list(openmetrics.text_string_to_metric_families(text))
    return list(text_string_to_metric_families(text))


def samples(page: bytes, written_as: Format) -> list[Sample]:
    return [sample for metric in parsed(page, written_as) for sample in metric.samples]


@pytest.mark.parametrize("written_as", ["text", "openmetrics"])
@given(
    counts=st.dictionaries(st.tuples(TEXTS, TEXTS), st.integers(0, 10**15), max_size=5),
    sizes=st.dictionaries(st.tuples(TEXTS), st.floats(allow_nan=False, allow_infinity=False), max_size=5),
)
def test_every_label_and_number_is_read_again(
    written_as: Format, counts: dict[Labels, int], sizes: dict[Labels, float]
) -> None:
    page = expose([FamilyValues(COUNTER, counts), FamilyValues(GAUGE, sizes), FamilyValues(PLAIN, NOW)], written_as)
    read = samples(page, written_as)
    told = {(each.labels["name"], each.labels["kind"]): each.value for each in read if each.name == COUNTER.name}
    assert told == counts
    assert {(each.labels["name"],): each.value for each in read if each.name == GAUGE.name} == sizes
    assert [each.value for each in read if each.name == PLAIN.name] == [1]


@pytest.mark.parametrize("written_as", ["text", "openmetrics"])
@given(times=st.lists(st.floats(0, 100), max_size=30))
def test_a_histogram_counts_each_time_in_every_bucket_that_has_room_for_it(
    written_as: Format, times: list[float]
) -> None:
    table = Durations(TIMES, [("wake",)])
    for each in times:
        table.add(("wake",), each)
    read = samples(expose([FamilyValues(TIMES, table.values)], written_as), written_as)
    buckets = {float(each.labels["le"]): each.value for each in read if each.name.endswith("_bucket")}
    assert buckets == {bound: sum(each <= bound for each in times) for bound in (0.1, 1.0, 10.0, float("inf"))}
    (count,) = (each.value for each in read if each.name.endswith("_count"))
    (total,) = (each.value for each in read if each.name.endswith("_sum"))
    assert count == len(times)
    assert total == pytest.approx(sum(times))


def test_an_exemplar_is_told_in_openmetrics_alone() -> None:
    table = Durations(TIMES)
    table.add(("wake",), 0.5)
    table.note(("wake",), Exemplar("0af7651916cd43dd8448eb211c80319c", 0.5, 1_700_000_000.5))
    with_it = {
        each.labels["le"]: each.exemplar
        for each in samples(expose([FamilyValues(TIMES, table.values)], "openmetrics"), "openmetrics")
        if each.exemplar is not None
    }
    (exemplar,) = with_it.values()
    assert with_it.keys() == {"1.0"}
    assert exemplar.labels == {"trace_id": "0af7651916cd43dd8448eb211c80319c"}
    assert (exemplar.value, f"{exemplar.timestamp}") == (0.5, "1700000000.500000000")

    assert b"trace_id" not in expose([FamilyValues(TIMES, table.values)], "text")


def test_help_type_and_unit_are_read_again() -> None:
    counted = Counts(COUNTER)
    for written_as in ("text", "openmetrics"):
        page = expose([FamilyValues(COUNTER, counted.values), FamilyValues(GAUGE, {})], written_as)
        things, size = parsed(page, written_as)
        assert (things.name, things.type, size.type) == ("mcpvisor_things", "counter", "gauge")
        assert things.documentation == COUNTER.help
        assert size.unit == ("bytes" if written_as == "openmetrics" else "")


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", "text"),
        ("*/*", "text"),
        ("text/plain;version=0.0.4", "text"),
        ("application/openmetrics-text", "openmetrics"),
        ("application/openmetrics-text; version=1.0.0; charset=utf-8", "openmetrics"),
        ("application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5", "text"),
        (
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
            "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.2",
            "openmetrics",
        ),
        ("application/openmetrics-text;version=2.0.0,text/plain", "text"),
        ("application/openmetrics-text;q=0", "text"),
    ],
)
def test_the_format_is_that_which_is_asked_for(accept: str, expected: Format) -> None:
    assert format_of(accept) == expected
