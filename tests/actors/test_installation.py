"""One of twelve words for each server, from which every page and every event is made."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.installation import InstallationStatus, installation_status, is_available
from actors.life.states import Down, State
from actors.messages import ServerStatus

WORDS = get_args(InstallationStatus)


def status(state: State = State.READY, **more: Any) -> ServerStatus:
    return ServerStatus(**{"server": "s", "state": state, "wanted": "up", "since": 0.0, **more})


@pytest.mark.parametrize(
    ("told", "listed", "word"),
    [
        (None, False, "provisioning"),
        (status(State.STOPPED, awaits=("TOKEN",)), False, "awaiting_user_config"),
        (status(State.DORMANT, wanted="dormant"), False, "provisioning"),
        (status(State.SPAWNING, activity="waiting for its turn"), False, "provisioning"),
        (status(State.SPAWNING, activity="installing"), False, "provisioning"),
        (status(State.DORMANT), False, "command_received"),
        (status(State.SPAWNING), False, "connecting"),
        (status(State.HANDSHAKING), False, "connecting"),
        (status(State.DISCOVERING), False, "discovering_tools"),
        (status(State.READY), False, "syncing_tools"),
        (status(State.READY), True, "online"),
        (status(State.DORMANT), True, "online"),
        (status(State.SPAWNING), True, "online"),
        (status(State.RESPAWNING), True, "online"),
        (status(State.RESPAWNING), False, "restarting"),
        (status(State.RESPAWNING, down="offline"), True, "offline"),
        (status(State.SPAWNING, down="error"), True, "error"),
        (status(State.DRAINING), False, "restarting"),
        (status(State.STOPPED), True, "offline"),
        (status(State.FAILED, down="permanently_failed"), True, "permanently_failed"),
        (status(State.FAILED, down="permanently_failed", requires_reauth=True), False, "requires_reauth"),
        (status(State.STOPPED, disabled=True), False, None),
    ],
)
def test_what_a_user_may_expect(told: ServerStatus | None, listed: bool, word: str | None) -> None:
    assert installation_status(told, listed=listed) == word


@given(
    st.sampled_from(State),
    st.sampled_from(("up", "dormant", "stopped")),
    st.booleans(),
    st.sampled_from((None, *get_args(Down))),
    st.sampled_from((None, "installing")),
    st.sampled_from(((), ("KEY",))),
)
def test_only_what_is_listed_and_not_down_is_online(
    state: State, wanted: str, listed: bool, down: Down | None, activity: str | None, awaits: tuple[str, ...]
) -> None:
    told = status(state, wanted=wanted, down=down, activity=activity, awaits=awaits)
    word = installation_status(told, listed=listed)
    assert word in WORDS
    assert (word == "online") == (listed and is_available(told) and state is not State.STOPPED)
