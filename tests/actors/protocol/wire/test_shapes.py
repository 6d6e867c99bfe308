"""What is said of a value that has another shape than was expected."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from actors.protocol.wire.json import sentence


class Inner(Struct, forbid_unknown_fields=True):
    size: Annotated[int, Meta(ge=1, le=9)] = 1
    names: Annotated[tuple[Annotated[str, Meta(max_length=3)], ...], Meta(max_length=2)] = ()


class Whole(Struct):
    user: str
    on: bool | None = None
    share: Annotated[float, Meta(gt=0)] = 1.0
    kind: Literal["a", "b"] = "a"
    inner: list[Inner] = []
    more: dict[str, int] = {}


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"user": 7}, "user: must be a string"),
        ({}, 'the key "user" is missing'),
        (7, "must be an object"),
        ({"user": "x", "on": 7}, "on: must be true or false or null"),
        ({"user": "x", "share": 0}, "share: must be a number, over 0.0"),
        ({"user": "x", "kind": "secret"}, "kind: is none of the values that it can have"),
        ({"user": "x", "inner": 7}, "inner: must be a list"),
        ({"user": "x", "inner": [{}, {"size": 10}]}, "inner[1].size: must be a whole number, at most 9"),
        ({"user": "x", "inner": [{"size": "secret"}]}, "inner[0].size: must be a whole number"),
        (
            {"user": "x", "inner": [{"names": ["secret"]}]},
            "inner[0].names[0]: must be a string of at most 3 characters",
        ),
        ({"user": "x", "inner": [{"names": ["a", "b", "c"]}]}, "inner[0].names: must be a list of at most 2 items"),
        ({"user": "x", "inner": [{"sise": 1}]}, "inner[0].sise: unknown key"),
        ({"user": "x", "more": {"a": "secret"}}, "more: must be a whole number"),
    ],
)
def test_it_is_said_where_it_is_and_what_belongs_there_and_never_what_is(members: Any, said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(members, Whole)
    assert sentence(caught.value) == said
