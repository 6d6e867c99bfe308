"""Who is told that what a server held is gone, where many clients use it."""

from __future__ import annotations

import msgspec

from actors.principal import Principal
from actors.server.calls.state_loss import MAX_CLIENTS, StateLoss
from actors.server.settings import HELD, ServerSettings

ANA, BEN = Principal("user:ana"), Principal("user:ben")
RESULT = msgspec.Raw(b"{}")


def test_somebody_with_very_many_clients_takes_no_others_from_what_is_known() -> None:
    loss = StateLoss(ServerSettings(stateful=True), lambda: None)
    assert loss.on_answer((ANA, "editor"), "t", 1, RESULT) == ""
    for number in range(3 * MAX_CLIENTS):
        loss.on_answer((BEN, f"client {number}"), "t", 1, RESULT)
    assert loss.on_answer((ANA, "editor"), "t", 2, RESULT) == HELD
    assert loss.on_answer((BEN, "client 0"), "t", 2, RESULT) == ""
    assert loss.on_answer((BEN, f"client {3 * MAX_CLIENTS - 1}"), "t", 2, RESULT) == HELD
    assert loss.on_answer((BEN, f"client {3 * MAX_CLIENTS - 1}"), "t", 2, RESULT) == ""
