"""What both eras say of tasks, read and written under other ids."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol import tasks
from actors.protocol.agreement.versions import Era
from actors.protocol.tasks import (
    EXTENSION,
    MAX_CREATED_BYTES,
    RELATED,
    read_created,
    read_task,
    related_task,
    speaks,
    with_id,
)

STATE: dict[str, Any] = {"taskId": "a", "status": "working", "createdAt": "x", "lastUpdatedAt": "x"}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("capabilities", "legacy", "modern"),
    [
        ({"tasks": {"requests": {"tools": {"call": {}}}}}, True, False),
        ({"tasks": {"requests": {"tools": {"call": None}}}}, False, False),
        ({"tasks": {"requests": {"tools": None}}}, False, False),
        ({"tasks": {"list": {}, "cancel": {}}}, False, False),
        ({"tasks": 5}, False, False),
        ({"extensions": {EXTENSION: {}}}, False, True),
        ({"extensions": {EXTENSION: None}}, False, False),
        ({}, False, False),
        ([], False, False),
    ],
)
def test_tasks_are_spoken_in_the_way_of_an_era(capabilities: Any, legacy: bool, modern: bool) -> None:
    assert speaks(raw(capabilities), "legacy") is legacy
    assert speaks(raw(capabilities), "modern") is modern


@pytest.mark.parametrize(
    ("said", "era", "id_"),
    [
        ({"task": STATE}, "legacy", "a"),
        ({"task": STATE}, "modern", None),
        ({"resultType": "task", **STATE}, "modern", "a"),
        ({"resultType": "complete", **STATE, "x": "task"}, "modern", None),
        ({"task": {**STATE, "taskId": ""}}, "legacy", None),
        ({"task": {**STATE, "taskId": "x" * 1025}}, "legacy", None),
        ({"task": {**STATE, "status": "odd"}}, "legacy", None),
        ({"task": "no"}, "legacy", None),
        ({"task": STATE, "x": "y" * MAX_CREATED_BYTES}, "legacy", None),
        ({"content": []}, "legacy", None),
    ],
)
def test_a_result_may_tell_of_a_task_instead(said: Any, era: Era, id_: str | None) -> None:
    task = read_created(raw(said), era)
    assert (task.id if task is not None else None) == id_


@pytest.mark.parametrize(
    ("said", "lifetime_s", "pause_s"),
    [
        ({"ttl": 5000, "pollInterval": 700}, 5, 0.7),
        ({"ttlMs": 5000, "pollIntervalMs": 700}, 5, 0.7),
        ({"ttl": None, "pollInterval": 0}, math.inf, 0.1),
        ({"ttl": -1, "pollInterval": 1e9}, 0, 10),
        ({}, math.inf, 1),
    ],
)
def test_times_are_bounded_whatever_a_server_suggests(said: Any, lifetime_s: float, pause_s: float) -> None:
    task = read_task(raw({**STATE, **said}))
    assert task is not None
    assert (task.lifetime_s, task.pause_s) == (lifetime_s, pause_s)


def test_what_cannot_be_read_tells_nothing() -> None:
    for said in (b"[]", b"{", b'{"taskId":1,"status":"working"}', b"\xff"):
        assert read_task(msgspec.Raw(said)) is None


@pytest.mark.parametrize(
    ("said", "id_"),
    [
        ({"_meta": {RELATED: {"taskId": "a"}}}, "a"),
        ({"_meta": {RELATED: None}}, ""),
        ({"_meta": None, "x": RELATED}, ""),
        ({"_meta": {RELATED: 5}}, ""),
        ({"_meta": {}}, ""),
    ],
)
def test_what_something_is_about_is_known_by_its_meta(said: Any, id_: str) -> None:
    assert related_task(raw(said)) == id_


@given(ANYTHING, ANYTHING)
def test_under_another_id_nothing_else_changes(first: Any, second: Any) -> None:
    rest = {"first": first, "second": second}
    for said, wanted in (
        ({**rest, "taskId": "a"}, {**rest, "taskId": "b"}),
        ({**rest, "task": {**rest, "taskId": "a"}}, {**rest, "task": {**rest, "taskId": "b"}}),
        (rest, rest),
        ({**rest, "task": 1}, {**rest, "task": 1}),
    ):
        assert json.loads(with_id(json.dumps(said).encode(), "b")) == wanted
    meta = {"mine": second}
    for said, wanted in (
        ({**rest, "_meta": {**meta, RELATED: {"taskId": "a"}}}, {**rest, "_meta": {**meta, RELATED: {"taskId": "b"}}}),
        ({**rest, "_meta": meta}, {**rest, "_meta": meta}),
        ({**rest, "_meta": 1, "x": RELATED}, {**rest, "_meta": 1, "x": RELATED}),
        ({**rest, "_meta": meta, "x": RELATED}, {**rest, "_meta": meta, "x": RELATED}),
    ):
        assert json.loads(tasks.with_related(json.dumps(said).encode(), "b")) == wanted
    own = {**rest, "_meta": {RELATED: {"taskId": "a"}}}
    assert json.loads(tasks.with_related(json.dumps(own).encode(), "")) == rest


@given(st.dictionaries(st.text(), st.dictionaries(st.text(), st.integers())))
def test_a_client_that_declares_tasks_declares_what_it_did(capabilities: Any) -> None:
    said = json.loads(tasks.with_extension(json.dumps({**capabilities, "extensions": {"x/y": {}}}).encode()))
    assert said == {**capabilities, "extensions": {"x/y": {}, EXTENSION: {}}}


def test_what_gets_through_is_offered() -> None:
    calls: dict[str, Any] = {"requests": {"tools": {"call": {}}}}
    assert tasks.legacy_capability(raw({"tasks": {"list": {}, "cancel": {}, **calls}})) == {"cancel": {}, **calls}
    assert tasks.legacy_capability(raw({"tasks": calls})) == calls
    assert tasks.legacy_capability(raw([])) == calls
