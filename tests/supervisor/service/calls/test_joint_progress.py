"""Progress of several calls to one token grows with each notification, whatever each of them tells."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from actors.messages import Note
from actors.protocol.exchanges import PROGRESS
from supervisor.service.calls.side_by_side import JointProgress


def note(progress: Any, **more: Any) -> Note:
    return Note(PROGRESS, json.dumps({"progressToken": "t", "progress": progress, **more}).encode())


NUMBERS = st.floats(-10, 1e6) | st.integers(-5, 10**20)
TOLD = st.tuples(st.integers(0, 3), NUMBERS, st.none() | NUMBERS, st.booleans())


@given(st.lists(TOLD, max_size=30))
def test_it_grows_and_is_never_more_than_all(told: list[tuple[int, Any, Any, bool]]) -> None:
    joint, heard = JointProgress((1, 2, 3, 4)), [0.0]
    for place, progress, total, ends in told:
        more = {} if total is None else {"total": total}
        merged = joint.end(place, b'"t"') if ends else joint.merge(place, note(progress, **more))
        if merged is not None:
            params = json.loads(merged.params)
            assert (merged.method, params["progressToken"], params["total"]) == (PROGRESS, "t", 4)
            heard.append(params["progress"])
    assert all(one < other for one, other in pairwise(heard))
    assert heard[-1] <= 4


def test_what_is_said_has_the_number_of_its_call() -> None:
    joint = JointProgress((1, 3))
    merged = joint.merge(1, note(1, total=4, message='at "it"'))
    assert merged is not None
    assert json.loads(merged.params) == {"progressToken": "t", "progress": 0.25, "total": 2, "message": '[3] at "it"'}
    assert joint.merge(1, note(1, total=400)) is None
    ended = joint.end(0, b"7")
    assert ended is not None
    assert json.loads(ended.params) == {"progressToken": 7, "progress": 1.25, "total": 2}
