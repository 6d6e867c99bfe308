"""How values are written for people."""

from __future__ import annotations

import time
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.installation import InstallationStatus
from actors.life.states import State
from supervisor.front.ui.words import (
    GLYPHS,
    MAX_CELL,
    clock,
    display_name,
    glyph_of,
    kind_of,
    milliseconds,
    moment,
    names,
    number,
    share,
    size,
    span,
    state_of,
    text,
)

NOON = time.mktime((2026, 11, 26, 12, 0, 0, 0, 0, -1))


@pytest.mark.parametrize("state", [each.value for each in State])
@pytest.mark.parametrize("status", [*get_args(InstallationStatus), None])
def test_every_status_has_a_mark_and_a_meaning_whatever_its_process_does(state: str, status: str | None) -> None:
    row = {"state": state, "status": status}
    assert glyph_of(row) == GLYPHS[kind_of(row)]
    assert len(glyph_of(row)) == 1
    assert (kind_of(row) == "off") == (status is None)
    assert (kind_of(row) == "failed") == (status in ("offline", "error", "permanently_failed"))
    assert (kind_of(row) == "wanting") == (status in ("requires_reauth", "awaiting_user_config"))
    assert kind_of({"state": state}) in ("ok", "resting", "moving", "failed", "off"), "of an instance"


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (span(None), "-"),
        (span(-1), "0 s"),
        (span(59), "59 s"),
        (span(61), "1 min"),
        (span(7200), "2 h"),
        (span(3 * 86_400), "3 days"),
        (milliseconds(None), "-"),
        (milliseconds(3.21), "3.2 ms"),
        (milliseconds(1500), "1.5 s"),
        (milliseconds(600_000), "10 min"),
        (size(None), "-"),
        (size(0), "0 B"),
        (size(84_000_000), "84 MB"),
        (number(None), "-"),
        (number(41_200), "41,200"),
        (share(0, 0), "-"),
        (share(0, 7), "0 %"),
        (share(1, 3), "33 %"),
        (share(1, 300), "0.3 %"),
        (share(1, 3000), "< 0.1 %"),
        (clock(None, 0), "-"),
        (clock(NOON, NOON + 60), "12:00:00"),
        (clock(NOON, NOON + 86_400), "2026-11-26 12:00:00"),
        (moment(None), ""),
        (moment(0), "1970-01-01T00:00:00Z"),
    ],
)
def test_a_value_is_short_and_has_its_unit(shown: str, wanted: str) -> None:
    assert shown == wanted


@given(st.text())
def test_text_of_a_server_is_one_line_without_what_cannot_be_seen(written: str) -> None:
    shown = text(written)
    assert shown.isprintable() or not shown
    assert len(shown) <= MAX_CELL
    assert "\n" not in shown


def test_a_server_that_runs_for_some_is_not_called_stopped_and_still_wants_values() -> None:
    row = {"state": "stopped", "status": "awaiting_user_config"}
    assert (state_of(row), kind_of(row)) == ("awaiting user config", "wanting")
    assert (state_of({**row, "launches": 1}), kind_of({**row, "launches": 1})) == ("per user", "wanting")
    assert kind_of({**row, "launches": 1, "lacking": []}) == "resting"
    assert state_of({**row, "launches": 1, "status": None}) == "disabled"


NAMES = st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), max_size=20)


@given(NAMES, st.from_regex(r"[0-9a-f]{16}", fullmatch=True))
def test_a_launch_is_called_by_its_users_where_these_are_known(users: list[str], digest: str) -> None:
    launch = f"web~{digest}"
    assert display_name("web", users) == display_name("web") == "web"
    assert display_name(launch) == launch
    called = display_name(launch, users)
    assert called == f"web, for {names(users) if users else 'nobody now'}"


@given(NAMES, st.integers(1, 25))
def test_names_are_counted_that_are_not_shown(every: list[str], most: int) -> None:
    shown, _, more = names(every, most).partition(" and ")
    listed = [] if shown == "-" else shown.split(", ")
    assert listed == every[:most]
    assert len(listed) + int(more.removesuffix(" more") or 0) == len(every)
