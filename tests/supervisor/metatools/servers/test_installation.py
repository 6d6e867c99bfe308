"""One of twelve words for each server, and `online` for those that are searched and no others."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.snapshot import Entry
from actors.life.states import State
from actors.messages import ServerStatus
from supervisor.metatools.servers.installation import InstallationStatus, installation_status

WORDS = get_args(InstallationStatus)
LISTED, HIDDEN = Entry(server="s"), Entry(server="s", available=False)


def status(state: State = State.READY, **more: Any) -> ServerStatus:
    return ServerStatus(**{"server": "s", "state": state, "wanted": "up", "since": 0.0, **more})


@pytest.mark.parametrize(
    ("told", "entry", "word"),
    [
        (None, None, "provisioning"),
        (status(State.STOPPED, awaits=("TOKEN",)), None, "awaiting_user_config"),
        (status(State.DORMANT, wanted="dormant"), None, "provisioning"),
        (status(State.SPAWNING, activity="waiting for its turn"), None, "provisioning"),
        (status(State.SPAWNING, activity="installing"), None, "provisioning"),
        (status(State.DORMANT), None, "command_received"),
        (status(State.SPAWNING), None, "connecting"),
        (status(State.HANDSHAKING), None, "connecting"),
        (status(State.DISCOVERING), None, "discovering_tools"),
        (status(State.READY), None, "syncing_tools"),
        (status(State.READY), LISTED, "online"),
        (status(State.DORMANT), LISTED, "online"),
        (status(State.SPAWNING), LISTED, "online"),
        (status(State.RESPAWNING), LISTED, "online"),
        (status(State.RESPAWNING), None, "restarting"),
        (status(State.RESPAWNING, away=True), None, "offline"),
        (status(State.DRAINING), HIDDEN, "restarting"),
        (status(State.STOPPED), HIDDEN, "offline"),
        (status(State.FAILED, retry_at=5.0), HIDDEN, "error"),
        (status(State.FAILED, next_start=5.0, away=True), HIDDEN, "offline"),
        (status(State.FAILED), HIDDEN, "permanently_failed"),
        (status(State.FAILED, wanted="stopped"), None, "permanently_failed"),
        (status(State.FAILED, requires_reauth=True), HIDDEN, "requires_reauth"),
        (status(State.STOPPED, disabled=True), HIDDEN, None),
    ],
)
def test_what_a_user_may_expect(told: ServerStatus | None, entry: Entry | None, word: str | None) -> None:
    assert installation_status(told, entry) == word


@given(
    st.sampled_from(State),
    st.sampled_from(("up", "dormant", "stopped")),
    st.sampled_from((None, LISTED, HIDDEN)),
    st.booleans(),
    st.sampled_from((None, "installing")),
    st.none() | st.just(1.0),
)
def test_only_what_is_listed_is_online(
    state: State, wanted: str, entry: Entry | None, away: bool, activity: str | None, at: float | None
) -> None:
    told = status(state, wanted=wanted, away=away, activity=activity, retry_at=at)
    word = installation_status(told, entry)
    assert word in WORDS
    assert (word == "online") == (entry is LISTED)
