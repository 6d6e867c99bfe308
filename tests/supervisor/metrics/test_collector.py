"""Figures become families that the parsers of the library read again, and whatever is asked for gets a format."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, PROCESS_COLLECTOR, Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Exemplar, Sample

from supervisor.metrics.collector import (
    ENCODERS,
    Durations,
    FamilyValues,
    FigureCollector,
    Labels,
    content_type_for,
    metric_of,
)
from supervisor.metrics.families import PROCESS, Family

COUNTER = Family("mcpvisor_things_total", "counter", ("name", "kind"), 'Counts "things",\nby \\ kind.')
GAUGE = Family("mcpvisor_size_bytes", "gauge", ("name",), "A size.")
PLAIN = Family("mcpvisor_now", "gauge", (), "No label.")
TIMES = Family("mcpvisor_wait_seconds", "histogram", ("cause",), "Times.", (0.1, 1.0, 10.0))
NOW: dict[Labels, float] = {(): 1}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
NOTHING: Any = SimpleNamespace(collect=tuple)


def page(kind: str, *figures: FamilyValues, process: Any = NOTHING) -> str:
    return ENCODERS[kind](FigureCollector(figures, process)).decode()


def parsed(kind: str, *figures: FamilyValues) -> list[Metric]:
    text = page(kind, *figures)
    if kind.startswith("text/plain"):
        return list(text_string_to_metric_families(text))
    return list(openmetrics.text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


def samples(kind: str, *figures: FamilyValues) -> list[Sample]:
    return [sample for metric in parsed(kind, *figures) for sample in metric.samples]


@pytest.mark.parametrize("kind", ENCODERS)
@given(
    counts=st.dictionaries(st.tuples(TEXTS, TEXTS), st.integers(0, 10**15), max_size=5),
    sizes=st.dictionaries(st.tuples(TEXTS), st.floats(allow_nan=False, allow_infinity=False), max_size=5),
)
def test_every_label_and_number_is_read_again(kind: str, counts: dict[Labels, int], sizes: dict[Labels, float]) -> None:
    read = samples(kind, FamilyValues(COUNTER, counts), FamilyValues(GAUGE, sizes), FamilyValues(PLAIN, NOW))
    told = {(each.labels["name"], each.labels["kind"]): each.value for each in read if each.name == COUNTER.name}
    assert told == counts
    assert {(each.labels["name"],): each.value for each in read if each.name == GAUGE.name} == sizes
    assert [each.value for each in read if each.name == PLAIN.name] == [1]


@given(times=st.lists(st.floats(0, 100), max_size=30))
def test_a_histogram_counts_each_time_in_every_bucket_that_has_room_for_it(times: list[float]) -> None:
    table = Durations(TIMES, [("wake",)])
    for each in times:
        table.add(("wake",), each)
    read = metric_of(FamilyValues(TIMES, table.values)).samples
    buckets = {float(each.labels["le"]): each.value for each in read if each.name.endswith("_bucket")}
    assert buckets == {bound: sum(each <= bound for each in times) for bound in (0.1, 1.0, 10.0, float("inf"))}
    (count,) = (each.value for each in read if each.name.endswith("_count"))
    (total,) = (each.value for each in read if each.name.endswith("_sum"))
    assert count == len(times)
    assert total == pytest.approx(sum(times))


@pytest.mark.parametrize("kind", ENCODERS)
def test_an_exemplar_is_told_in_openmetrics_alone(kind: str) -> None:
    table = Durations(TIMES)
    table.add(("wake",), 0.5)
    table.note(("wake",), Exemplar({"trace_id": "0af7651916cd43dd8448eb211c80319c"}, 0.5, 1_700_000_000.5))
    told = {
        each.labels["le"]: each.exemplar
        for each in samples(kind, FamilyValues(TIMES, table.values))
        if each.exemplar is not None
    }
    if kind.startswith("text/plain"):
        assert not told
        return
    assert told.keys() == {"1.0"}
    assert told["1.0"].labels == {"trace_id": "0af7651916cd43dd8448eb211c80319c"}
    assert (told["1.0"].value, f"{told['1.0'].timestamp}") == (0.5, "1700000000.500000000")


@pytest.mark.parametrize("kind", ENCODERS)
def test_help_type_and_unit_are_read_again(kind: str) -> None:
    things, size = parsed(kind, FamilyValues(COUNTER, {}), FamilyValues(GAUGE, {}))
    assert (things.name, things.type, size.type) == ("mcpvisor_things", "counter", "gauge")
    assert things.documentation == COUNTER.help
    assert size.unit == ("" if kind.startswith("text/plain") else "bytes")


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", CONTENT_TYPE_PLAIN_0_0_4),
        ("*/*", CONTENT_TYPE_PLAIN_0_0_4),
        ("text/plain;version=0.0.4", CONTENT_TYPE_PLAIN_0_0_4),
        ("application/openmetrics-text", OPENMETRICS),
        # Prometheus 2.42, with and without a setting
        (
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
            "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            f"{OPENMETRICS}; escaping=underscores",
        ),
        ("text/plain;version=0.0.4;q=1,*/*;q=0.1", CONTENT_TYPE_PLAIN_0_0_4),
        # Prometheus 3
        (
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
            "application/openmetrics-text;version=0.0.1;q=0.5,"
            "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            f"{OPENMETRICS}; escaping=allow-utf-8",
        ),
        ("text/plain;version=1.0.0", "text/plain; version=1.0.0; charset=utf-8; escaping=underscores"),
        # What nobody asks for, or only in malice
        ("application/openmetrics-text;version=2.0.0", CONTENT_TYPE_PLAIN_0_0_4),
        ("application/openmetrics-text;version=x", CONTENT_TYPE_PLAIN_0_0_4),
        ("application/openmetrics-text;version=1.x", CONTENT_TYPE_PLAIN_0_0_4),
        ("text/plain;version=1.0.0;escaping=dots", CONTENT_TYPE_PLAIN_0_0_4),
    ],
)
def test_the_format_is_that_which_is_asked_for(accept: str, expected: str) -> None:
    assert content_type_for(accept) == expected


@given(st.text(st.characters(codec="latin-1"), max_size=60), st.sampled_from(["{}", *ENCODERS]))
def test_whatever_is_asked_for_has_an_answer(text: str, around: str) -> None:
    for accept in (text, around + text, f"application/openmetrics-text;version={text}", f"text/plain;version={text}"):
        assert content_type_for(accept) in ENCODERS


def test_the_families_of_the_process_are_those_of_the_library() -> None:
    told = {(each.name, each.documentation, each.type) for each in PROCESS_COLLECTOR.collect()}
    assert told == {(name.removesuffix("_total"), text, kind) for name, kind, text in map(described, PROCESS)}
    values = {sample.name: sample.value for each in PROCESS_COLLECTOR.collect() for sample in each.samples}
    assert values["process_start_time_seconds"] < time.time()
    assert values["process_open_fds"] <= values["process_max_fds"]


def described(family: Family) -> tuple[str, str, str]:
    return family.name, family.kind, family.help


def raising(error: Exception) -> Callable[[], Iterator[Metric]]:
    def collect() -> Iterator[Metric]:
        yield metric_of(FamilyValues(PLAIN, NOW))
        raise error

    return collect


@pytest.mark.parametrize("error", [OSError(), ValueError(), IndexError(), UnboundLocalError()])
def test_a_process_of_which_nothing_is_told_costs_no_page(error: Exception) -> None:
    process = SimpleNamespace(collect=raising(error))
    assert "mcpvisor_now 1.0" in page(CONTENT_TYPE_PLAIN_0_0_4, process=process)
