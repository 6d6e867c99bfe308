"""Events that are sent to an address (SEP-3415): only for who is not the same as others to the server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from actors.principal import LOCAL
from supervisor.identity.people import OwnLaunch, principal_of
from supervisor.servers.launches.names import LaunchNames
from supervisor.service.client import Client
from supervisor.service.doors import one_server
from tests.fakes.exchanges import MODERN
from tests.fakes.published import served
from tests.fakes.whole_server import WholeServer

ANN = replace(MODERN, principal=principal_of("ann"))
WATCHED = {"name": "tick", "arguments": {}, "delivery": {"mode": "webhook", "url": "https://example.org"}}
WAYS = [["poll", "webhook"], ["webhook"], ["push"], ["webhook", "poll"]]


@dataclass
class EventServer(WholeServer):
    """Offers events in several ways."""

    said: Any = field(default_factory=lambda: [{"name": str(n), "delivery": ways} for n, ways in enumerate(WAYS)])

    def _result(self, method: str, params: Any) -> Any:
        if method.startswith("events/"):
            return {"resultType": "complete", **({"events": self.said} if method == "events/list" else {})}
        return super()._result(method, params)


async def ask(server: EventServer, client: Client, method: str, **params: Any) -> Any:
    async with served({"whole": server}, era="modern") as running:
        server.asked.clear()
        return await running.ask(method, client, "servers/whole", **params)


@pytest.mark.parametrize("method", ["events/subscribe", "events/unsubscribe"])
async def test_who_shares_a_login_with_others_has_no_events_sent(method: str) -> None:
    server = EventServer("modern")
    refused = (await ask(server, ANN, method, **WATCHED))["error"]
    assert (refused["code"], refused["data"]["type"], refused["data"]["reason"]) == (
        -32024,
        "forbidden",
        "shared_login",
    )
    assert server.methods() == []
    assert "result" in await ask(server, MODERN, method, **WATCHED)
    assert server.last() == (method, WATCHED)


async def test_and_is_not_told_that_it_is_offered() -> None:
    shown = (await ask(EventServer("modern"), ANN, "events/list"))["result"]["events"]
    assert [(each["name"], each["delivery"]) for each in shown] == [("0", ["poll"]), ("2", ["push"]), ("3", ["poll"])]
    shown = (await ask(EventServer("modern"), MODERN, "events/list"))["result"]["events"]
    assert [each["delivery"] for each in shown] == WAYS


@pytest.mark.parametrize("said", ["text", None, [5, {"delivery": "webhook"}, {"delivery": [5]}, {}]])
async def test_what_is_no_list_of_them_stays_what_it_is(said: Any) -> None:
    assert (await ask(EventServer("modern", said=said), ANN, "events/list"))["result"]["events"] == said


def test_whoever_has_a_launch_of_their_own_shares_it_with_nobody_else() -> None:
    launches = LaunchNames(lambda launch: str)
    launches.set(ANN.principal, [OwnLaunch(server="mail", name="mail~12ab")])
    assert not one_server.shares_login(launches, "mail", ANN)
    assert one_server.shares_login(launches, "chat", ANN)
    assert not one_server.shares_login(launches, "chat", replace(ANN, principal=LOCAL))
