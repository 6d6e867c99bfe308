"""What needs somebody is said first, with what they can do about it; what is fine is not mentioned."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor.front.ui.attention import notices, sentence

QUIET: dict[str, Any] = {"configuration": {"refused": []}, "degraded": [], "questions": 0}


def status(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**QUIET, "servers": list(rows), "totals": {"servers": len(rows)}, **more}


def row(server: str, state: str = "ready", **more: Any) -> dict[str, Any]:
    words = {"failed": "permanently_failed", "respawning": "error", "disabled": None}
    return {"server": server, "state": state, "status": words.get(state, "online"), **more}


@pytest.mark.parametrize("state", ["ready", "dormant", "disabled", "stopped", "spawning", "discovering", "draining"])
def test_what_is_fine_needs_nobody(state: str) -> None:
    told = status(row("a", state), row("b"))
    assert notices(told) == []
    assert sentence(told, []) == "All 2 servers are usable."


@pytest.mark.parametrize(
    ("more", "what", "orders", "link"),
    [
        ({"status": "requires_reauth", "state": "failed"}, "wants a login", ("login",), ""),
        (
            {"status": "awaiting_user_config", "awaits": ["KEY"], "reason": "KEY is missing", "state": "stopped"},
            "KEY is missing",
            (),
            "",
        ),
        ({"status": "permanently_failed", "reason": "exit 1: bad\x1b[31m token"}, "exit 1: bad", ("restart",), ""),
        ({"status": "error", "last_error": "it died"}, "it died", ("restart",), ""),
        ({"unapproved_tools": 2, "held_tools": 2}, "2 tools not approved, which are held", (), "/ui/changes"),
        ({"unapproved_tools": 1}, "1 tool not approved, which is usable all the same", (), "/ui/changes"),
    ],
)
def test_a_server_that_needs_somebody_says_what_for(
    more: dict[str, Any], what: str, orders: tuple[str, ...], link: str
) -> None:
    told = status({**row("a"), **more}, row("b"))
    (notice,) = notices(told)
    assert notice.what.startswith(what)
    assert notice.what.isprintable()
    assert (notice.server, notice.orders, notice.link) == ("a", orders, link)
    assert sentence(told, [notice]) == "1 of 2 servers needs you."


def test_tools_that_are_not_approved_are_named_with_what_is_found_in_them() -> None:
    tools = [{"server": "a", "tool": f"t{number}", "findings": []} for number in range(6)]
    tools[0]["findings"] = ["its text wants something kept from the user ('do not tell the user')", "more"]
    told = status(row("a", unapproved_tools=6), row("b"))
    (notice,) = notices(told, [{"server": "b", "tool": "other", "findings": []}, *tools])
    assert notice.what == (
        "6 tools not approved, which are usable all the same: "
        "t0 (its text wants something kept from the user ('do not tell the user')); t1; t2; t3; t4 and 1 more"
    )


def test_what_has_failed_comes_before_what_wants_something() -> None:
    told = status(row("a", status="requires_reauth"), row("b", "failed"), questions=1)
    assert [each.who for each in notices(told)] == ["b", "a", "questions"] or [each.kind for each in notices(told)] == [
        "failed",
        "wanting",
        "wanting",
    ]


def test_the_daemon_itself_may_need_somebody() -> None:
    told = status(
        row("a"),
        configuration={"refused": ["line 3: no"]},
        degraded=[{"what": "store", "why": "disk full", "since": 0}],
    )
    needs = notices(told)
    assert [each.what for each in needs] == [
        "its configuration is refused, all runs as before: line 3: no",
        "store: disk full",
    ]
    assert sentence(told, needs) == "The one server is usable, but the daemon needs you."
    assert sentence(status(), []) == "No servers yet."
