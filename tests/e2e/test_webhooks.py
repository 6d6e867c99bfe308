"""Events of servers that are posted to an address, over TLS, as a library for Standard Webhooks sees them."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from tests.e2e.daemons import Daemon, restarted, running, write_config
from tests.e2e.test_events_of_all import feed, happen
from tests.e2e.test_plugins import token_of
from tests.fakes.era_clients import EraClient
from tests.fakes.webhook_receiver import WebhookReceiver, new_secret, statuses
from tests.scenario.client import PATIENCE_S

pytestmark = pytest.mark.e2e

IDENTITY: dict[str, Any] = {"users": {"ada": {}, "bob": {}}, "teams": {"desk": {"members": ["ada"], "servers": ["s"]}}}
PATH = "/hooks/1"


@asynccontextmanager
async def receiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WebhookReceiver]:
    """One on this machine, whose certificate daemons trust."""
    async with WebhookReceiver(tmp_path).running() as running_:
        monkeypatch.setenv("SSL_CERT_FILE", str(running_.pem))
        with trio.fail_after(PATIENCE_S):
            yield running_


@asynccontextmanager
async def client_of(
    daemon: Daemon, user: str = "", path: str = "/mcp", era: str = "modern"
) -> AsyncIterator[EraClient]:
    headers = {"authorization": f"Bearer {await token_of(daemon, user)}"} if user else {}
    async with httpx2.AsyncClient(base_url=daemon.url, timeout=PATIENCE_S, headers=headers) as http:
        client = EraClient(http, path, era)
        await client.greet()
        yield client
        assert client.wrong == []


def daemon_with(tmp_path: Path, entry: dict[str, Any], **settings: Any) -> AbstractContextManager[Daemon]:
    return running(tmp_path / "daemon", {"s": entry}, leaves_calls=True, **settings)


async def as_operator(daemon: Daemon, path: str, verb: str = "GET", body: Any = None) -> Any:
    key = (daemon.data / "page.key").read_bytes().hex()
    async with httpx2.AsyncClient(base_url=daemon.url, timeout=PATIENCE_S) as http:
        answer = await http.request(verb, path, headers={"authorization": f"Bearer {key}"}, json=body)
        assert answer.is_success, answer.text
        return answer.json()


def wanted(endpoint: WebhookReceiver, secret: str, name: str = "s:line", **more: Any) -> dict[str, Any]:
    address = {"mode": "webhook", "url": endpoint.origin + PATH, "secret": secret}
    return {"name": name, "arguments": {}, "delivery": address, "cursor": None, **more}


def settings_for(endpoint: WebhookReceiver, **more: Any) -> dict[str, Any]:
    return {"auth": "tokens", "identity": IDENTITY, "webhook_origins": [endpoint.origin], **more}


@pytest.mark.parametrize(("path", "era"), [("/mcp", "modern"), ("/mcp/all", "legacy")])
async def test_events_are_posted_signed_again_and_by_a_new_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, era: str
) -> None:
    file, secret, newer = tmp_path / "file", new_secret(), new_secret()
    async with receiver(tmp_path, monkeypatch) as endpoint:
        with daemon_with(tmp_path, feed(file, "push"), **settings_for(endpoint)) as daemon:
            await daemon.ready()
            async with client_of(daemon, "ada", path, era) as client:
                listed = (await client.result("events/list"))["events"]
                assert {each["name"]: each["delivery"] for each in listed}["s:line"] == ["poll", "push", "webhook"]
                made = await client.result("events/subscribe", **wanted(endpoint, secret, ttlMs=1000))
                [challenge] = endpoint.posted
                assert (challenge.type, challenge.path) == ("verification", PATH)
                assert challenge.verified_by(secret)
                assert made["id"] == challenge.headers["x-mcp-subscription-id"]

                endpoint.status = statuses(503)
                happen(file, "a")
                await endpoint.wait(lambda: len(endpoint.events) == 2)
                refused, taken = endpoint.of("event")
                assert (refused.headers["webhook-id"], taken.headers["webhook-id"]) == ("a", "a")
                assert (refused.body["name"], refused.body["data"]) == ("s:line", {"pid": "push"})
                assert refused.verified_by(secret)
                assert taken.verified_by(secret)

                again = await client.result("events/subscribe", **wanted(endpoint, secret))
                while again["deliveryStatus"]["lastDeliveryAt"] is None:
                    again = await client.result("events/subscribe", **wanted(endpoint, secret))
                assert again["id"] == made["id"]
                assert again["refreshBefore"] > made["refreshBefore"]
                assert (again["deliveryStatus"]["active"], again["deliveryStatus"]["lastError"]) == (True, None)
                assert again["cursor"] == taken.body["cursor"]
                await client.result("events/subscribe", **wanted(endpoint, newer))
                happen(file, "b")
                await endpoint.wait(lambda: endpoint.events[-1] == "b")
                last = endpoint.posted[-1]
                assert last.verified_by(newer)
                assert last.verified_by(secret)
                assert not last.verified_by(new_secret())
                assert len(endpoint.of("verification")) == 1

                key = {"name": "s:line", "arguments": {}, "delivery": {"url": endpoint.origin + PATH}}
                assert "error" not in await client.ask("events/unsubscribe", **key)
                gone = (await client.ask("events/unsubscribe", **key))["error"]
                assert (gone["code"], gone["data"]["kind"]) == (-32023, "subscription")
                await client.result("events/subscribe", **wanted(endpoint, newer, cursor=again["cursor"]))
                await endpoint.wait(lambda: endpoint.events == ["a", "a", "b", "b"])
            assert not any(each in daemon.log for each in (secret[6:], newer[6:]))


async def test_they_go_on_after_a_restart_and_end_with_the_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, secret = tmp_path / "file", new_secret()
    entry = feed(file, "poll")
    async with receiver(tmp_path, monkeypatch) as endpoint:
        settings = settings_for(endpoint)
        with daemon_with(tmp_path, entry, **settings) as daemon:
            await daemon.ready()
            async with client_of(daemon, "ada") as client:
                made = await client.result("events/subscribe", **wanted(endpoint, secret))
                happen(file, "a")
                await endpoint.wait(lambda: endpoint.events == ["a"])
            while (await as_operator(daemon, "/api/status"))["store"]["pending_writes"]:  # noqa: ASYNC110 - see `settled`
                await trio.sleep(0.05)
        assert secret.encode()[6:] not in b"".join(each.read_bytes() for each in daemon.data.glob("store.sqlite3*"))
        happen(file, "b")
        with restarted(daemon, leaves_calls=True) as following:
            await endpoint.wait(lambda: endpoint.events == ["a", "b"])
            assert len(endpoint.of("verification")) == 1
            async with client_of(following, "bob") as stranger:
                refused = (await stranger.ask("events/subscribe", **wanted(endpoint, secret)))["error"]
                assert refused["code"] == -32023, "it sees no such type"
            others = {**IDENTITY, "teams": {"desk": {"members": ["bob"], "servers": ["s"]}}}
            write_config(following.directory, {"s": entry}, **{**settings, "identity": others})
            await as_operator(following, "/api/reload", "POST")
            await endpoint.wait(lambda: endpoint.of("terminated"))
            happen(file, "c")
            [ended] = endpoint.of("terminated")
            assert (ended.body["error"]["code"], ended.headers["x-mcp-subscription-id"]) == (-32024, made["id"])
            assert ended.verified_by(secret)
            assert endpoint.events == ["a", "b"]


async def test_they_end_with_the_last_token_of_their_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    async with receiver(tmp_path, monkeypatch) as endpoint:
        settings = settings_for(endpoint, identity={})
        with daemon_with(tmp_path, feed(file, "push"), **settings) as daemon:
            await daemon.ready()
            async with client_of(daemon, "ada") as client:
                await client.result("events/subscribe", **wanted(endpoint, new_secret()))
                happen(file, "a")
                await endpoint.wait(lambda: endpoint.events == ["a"])
            (made,) = (await as_operator(daemon, "/api/access-tokens"))["tokens"]
            await as_operator(daemon, f"/api/access-tokens/{made['id']}", "DELETE")
            happen(file, "b")
            await endpoint.wait(lambda: endpoint.of("terminated"))
            assert endpoint.of("terminated")[0].body["error"]["code"] == -32024
            assert endpoint.events == ["a"]


async def test_what_an_auditor_hears_of_the_daemon_ends_with_the_last_token_of_an_auditor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiver(tmp_path, monkeypatch) as endpoint:
        settings = settings_for(endpoint, identity={"users": {"ada": {"role": "auditor"}}}, reload_on_change=False)
        entry = feed(tmp_path / "file", "push")

        async def reload(daemon: Daemon, seconds: int) -> None:
            write_config(daemon.directory, {"s": {**entry, "timeoutMs": 1000 * seconds}}, **settings)
            assert (await as_operator(daemon, "/api/reload", "POST"))["outcome"] == "applied"

        with daemon_with(tmp_path, entry, **settings) as daemon:
            await daemon.ready()
            made = [
                await as_operator(daemon, "/api/access-tokens", "POST", {"user": "ada", "role": role})
                for role in ("auditor", "member")
            ]
            headers = {"authorization": f"Bearer {made[0]['token']}"}
            async with httpx2.AsyncClient(base_url=daemon.url, timeout=PATIENCE_S, headers=headers) as http:
                client = EraClient(http, "/mcp", "modern")
                await client.result("events/subscribe", **wanted(endpoint, new_secret(), "config.refreshed"))
            await reload(daemon, 7)
            await endpoint.wait(lambda: len(endpoint.events) == 1)
            assert endpoint.of("event")[0].body["data"]["changed"] == ["s"]
            await as_operator(daemon, f"/api/access-tokens/{made[0]['id']}", "DELETE")
            await reload(daemon, 8)
            await endpoint.wait(lambda: endpoint.of("terminated"))
            assert endpoint.of("terminated")[0].body["error"]["code"] == -32024
            assert len(endpoint.events) == 1


async def test_a_gap_is_posted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, secret = tmp_path / "file", new_secret()
    async with receiver(tmp_path, monkeypatch) as endpoint:
        entry = feed(file, "push", "forgets")
        with daemon_with(tmp_path, entry, **settings_for(endpoint)) as daemon:
            await daemon.ready()
            async with client_of(daemon, "ada") as client:
                await client.result("events/subscribe", **wanted(endpoint, secret))
                happen(file, "a")
                await endpoint.wait(lambda: endpoint.events == ["a"])
                (row,) = (await as_operator(daemon, "/api/status"))["servers"]
                os.kill(row["pid"], signal.SIGKILL)
                await endpoint.wait(lambda: endpoint.of("gap"))
                [gap] = endpoint.of("gap")
                assert gap.verified_by(secret)
                assert gap.body["cursor"] != endpoint.of("event")[0].body["cursor"]


async def test_nobody_has_a_daemon_post_where_only_it_can_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = new_secret()
    async with receiver(tmp_path, monkeypatch) as endpoint:
        settings = settings_for(endpoint, webhook_origins=["https://elsewhere.example"])
        with daemon_with(tmp_path, feed(tmp_path / "file", "push"), **settings) as daemon:
            await daemon.ready()
            async with client_of(daemon, "ada") as client:
                for host in ("localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "2130706433", "169.254.169.254"):
                    params = wanted(endpoint, secret)
                    params["delivery"]["url"] = f"https://{host}:{endpoint.port}/"
                    refused = (await client.ask("events/subscribe", **params))["error"]
                    assert (refused["code"], refused["data"]["reason"]) == (-32027, "connection_refused")
    assert endpoint.posted == []


async def test_without_users_events_are_sent_to_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiver(tmp_path, monkeypatch) as endpoint:
        with daemon_with(tmp_path, feed(tmp_path / "file", "push")) as daemon:
            await daemon.ready()
            async with client_of(daemon) as client:
                listed = {each["name"]: each["delivery"] for each in (await client.result("events/list"))["events"]}
                assert listed["s:line"] == ["poll", "push"]
                refused = (await client.ask("events/subscribe", **wanted(endpoint, new_secret())))["error"]
                assert (refused["code"], refused["data"]["reason"]) == (-32024, "no_principal")
    assert endpoint.posted == []
