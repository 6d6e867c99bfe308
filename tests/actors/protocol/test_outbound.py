"""Requests on their way to a server."""

from __future__ import annotations

from actors.messages import CallServer
from actors.principal import Principal
from actors.protocol.outbound import ClientRequest


def test_a_request_of_ours_is_heard_of_by_nobody_and_one_without_an_exchange_by_who_it_is_for() -> None:
    assert ClientRequest(method="tasks/get", members=b"").client is None
    asked = CallServer(server="s", method="tools/call", members=b"", principal=Principal("p"))
    assert asked.client == (Principal("p"), None)
