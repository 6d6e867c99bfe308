"""What pages of other origins are allowed: those that the configuration names, and what they ask for."""

from __future__ import annotations

import pytest

from supervisor.front.edge.fields import Fields
from supervisor.front.guard import ALLOWED, EXPOSED, CrossOrigin, is_preflight, preflight_lines

PAGES = CrossOrigin(["https://inspector.example", "nonsense"])


def test_an_allowed_origin_is_named_and_may_read_what_clients_need() -> None:
    lines = dict(PAGES.lines(Fields({b"origin": b"https://inspector.example"})))
    assert lines[b"access-control-allow-origin"] == b"https://inspector.example"
    assert lines[b"access-control-expose-headers"] == EXPOSED
    assert lines[b"vary"] == b"Origin"
    assert b"access-control-allow-credentials" not in lines


@pytest.mark.parametrize("origin", [None, b"https://evil.example", b"null", b"http://inspector.example", b"\xff"])
def test_others_are_told_nothing(origin: bytes | None) -> None:
    assert PAGES.lines(Fields({} if origin is None else {b"origin": origin})) == ()
    assert CrossOrigin(()).lines(Fields({b"origin": b"https://inspector.example"})) == ()


def test_a_preflight_is_answered_with_names_and_never_with_a_star() -> None:
    asked = b"authorization, Mcp-Param-Owner_Name,x-other, mcp-param-\xff, mcp-param-a b"
    fields = Fields(
        {b"origin": b"x", b"access-control-request-method": b"POST", b"access-control-request-headers": asked}
    )
    assert is_preflight("OPTIONS", fields)
    assert not is_preflight("POST", fields)
    assert not is_preflight("OPTIONS", Fields({b"origin": b"x"}))
    allowed = dict(preflight_lines(fields))[b"access-control-allow-headers"].decode().split(", ")
    assert allowed == [*ALLOWED, "mcp-param-owner_name"]
