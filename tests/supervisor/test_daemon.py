"""The daemon as a whole: what it shows of servers it cannot run, how it ends, and that no secret comes out of it."""

from __future__ import annotations

import errno
import logging
import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
import trio.testing
from msgspec.structs import replace
from trio.testing import wait_all_tasks_blocked

from actors.catalogue.offer import decode_offer, encode_offer
from actors.errors import ConfigError, MailboxFull
from actors.kit import Reply
from actors.messages import WakeServer
from actors.protocol.listing import CAPABILITIES, Kind
from actors.registry.actor import Registry
from actors.router import BeginShutdown, Message, Router
from supervisor import house as building
from supervisor import process as module
from supervisor.daemon import Daemon
from supervisor.front.edge.listening import open_sockets, url_of
from supervisor.front.wiring import Front
from supervisor.host.datadir import DataDir, open_data_dir
from supervisor.host.pauses import READY_PER_TURN
from supervisor.host.program import EXIT_CRASH, HardEnd
from supervisor.house import House
from supervisor.process import run
from supervisor.servers.capacity import Capacity
from supervisor.servers.deployment import DeployedServer
from supervisor.servers.reloading.reload import Reload
from tests.fakes.failures import failure
from tests.fakes.mcp_server import FakeServer, tool
from tests.fakes.memory import MemoryTransport
from tests.fakes.ready import in_turns, woken
from tests.fakes.skill_server import SkillServer
from tests.fakes.want import no_threads
from tests.scenario.client import Client, Json, message
from tests.scenario.daemon import configuration, world


def remembered(server: DeployedServer) -> MemoryTransport:
    del server
    return MemoryTransport(FakeServer().serve)


ECHO: dict[str, Any] = {"connect": remembered}
GOOD = {"good": {"command": "x"}}


async def test_servers_it_cannot_run_are_shown_with_what_to_do_and_harm_nobody(tmp_path: Path, data: DataDir) -> None:
    servers = {**GOOD, "wrong": {"comand": "x"}, "off": {"command": "x", "disabled": True}}
    ended: list[bool] = []
    async with world(tmp_path, data, servers, daemon={**ECHO, "ending": lambda: ended.append(True)}) as at:
        assert (await at.ready())["failed"] == ["wrong"]
        rows = await at.rows()
        assert rows.keys() == {"good", "wrong", "off"}
        assert (rows["off"]["state"], rows["off"]["disabled"], rows["good"]["disabled"]) == ("stopped", True, False)
        assert (rows["good"]["state"], rows["good"]["tools"]) == ("ready", 1)
        assert rows["wrong"]["state"] == "failed"
        assert 'did you mean "command"?' in rows["wrong"]["last_error"]
        assert ended == []
    assert ended == [True]


@pytest.mark.case("D25")
async def test_of_fifty_servers_fifteen_of_which_are_broken_the_others_are_usable_at_once(
    tmp_path: Path, data: DataDir
) -> None:
    broken = [f"broken{number}" for number in range(15)]
    names = [f"good{number}" for number in range(35)] + broken
    fakes = {name: FakeServer(exits_at="initialize") for name in broken}
    servers = {name: {"command": "x", "max_restarts": 0} for name in names}
    async with world(tmp_path, data, servers, fakes, waits=False, starts_per_s=1000, cold_starts=8) as at:
        begun = (await at.ask("GET", "/readyz")).json()
        assert not begun["ready"], "it listens before its servers are there"
        assert set(begun["discovering"]) <= set(names)
        await at.executed("good34:echo")
        assert sorted((await at.ready())["failed"]) == sorted(broken)
        for number in range(0, 35, 7):
            await at.executed(f"good{number}:echo")


async def test_calls_find_their_server_by_each_of_its_names_from_the_first_moment_on(
    tmp_path: Path, data: DataDir
) -> None:
    servers = {
        "filesystem-john-abc123": {"command": "x"},
        "off": {"command": "x", "disabled": True},
        "wrong": {"comand": "x"},
    }
    async with world(tmp_path, data, servers, waits=False, daemon=ECHO) as at:
        for name in ("filesystem-echo", "filesystem-john-abc123-echo", "filesystem:echo"):  # not discovered before
            assert (await at.result(name, n=1))["structuredContent"] == {"n": 1}
        for name, words in (("off", "is switched off"), ("wrong", "unknown key")):
            said = failure(await at.call(f"{name}:echo", n=1))["message"]
            assert said.startswith(f"server '{name}' ")
            assert words in said


async def test_a_configured_server_is_never_unknown_though_it_is_called_before_the_daemon_has_begun(
    tmp_path: Path, data: DataDir
) -> None:
    servers = {f"server{number}": {"command": "x"} for number in range(60)}
    async with world(tmp_path, data, servers, daemon=ECHO):
        pass
    sockets = open_sockets("127.0.0.1:0", 5.0)
    daemon = Daemon(configuration(tmp_path, servers), data, sockets, connect=remembered)
    answers: list[Any] = []

    async def call(name: str) -> None:
        async with httpx2.AsyncClient(base_url=url_of(sockets[0]), timeout=60) as client:
            answers.append(await Client(client).execute(f"{name}:echo"))

    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as clients:
                for number in (0, 30, 59):
                    clients.start_soon(call, f"server{number}")
                await wait_all_tasks_blocked()
                await nursery.start(daemon.run)
            daemon.closing.set()
    assert [failure(answer) for answer in answers if "error" in answer or answer["result"].get("isError")] == []
    assert len(answers) == 3


async def test_what_is_known_of_a_disabled_server_is_kept(tmp_path: Path, data: DataDir) -> None:
    for disabled in (False, True, False):
        servers = {"good": {"command": "x", "disabled": disabled}, "other": {"command": "y"}}
        async with world(tmp_path, data, servers, daemon=ECHO) as at:
            good = await at.row("good")
            assert good["disabled"] == disabled
    assert (good["state"], good["tools"]) == ("dormant", 1)


async def test_a_saved_catalogue_that_cannot_be_read_is_discovered_again(tmp_path: Path, data: DataDir) -> None:
    servers = {name: {"command": name} for name in ("good", "other", "third")}
    async with world(tmp_path, data, servers, daemon=ECHO):
        pass
    deep = b'{"tools":[{"name":"a","meta":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}"
    with closing(sqlite3.connect(data.database)) as other:
        other.execute("UPDATE servers SET payload = ? WHERE name = 'good'", (deep,))
        other.execute("UPDATE servers SET payload = 'text' WHERE name = 'other'")
        other.commit()
    async with world(tmp_path, data, servers, daemon=ECHO) as at:
        assert {name: (row["state"], row["tools"]) for name, row in (await at.rows()).items()} == {
            "good": ("ready", 1),
            "other": ("ready", 1),
            "third": ("dormant", 1),
        }


async def test_without_threads_the_daemon_serves_says_what_is_degraded_and_recovers(
    tmp_path: Path, data: DataDir
) -> None:
    async with world(tmp_path, data, GOOD, waits=False, tokenizer_timeout_s=0) as at:
        with no_threads():
            degraded: list[Json] = []
            # The store may be first to want one.
            while "can't start new thread" not in {row["why"] for row in degraded}:
                degraded = (await at.status())["degraded"]
            assert degraded[0].keys() == {"what", "since", "why"}
            for path in ("/healthz", "/api/tokens"):
                assert (await at.ask("GET", path)).status_code == 200
        await at.ready()
        await at.until("/api/status", lambda told: not told["degraded"])
        await at.page("/api/tokens")


async def test_a_router_whose_mailbox_is_full_at_the_end_is_told_of_it_all_the_same(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = Daemon._end
    told: list[BeginShutdown] = []

    async def full_at_that_moment(self: Daemon, house: House, front: Front) -> None:
        with suppress(MailboxFull):
            while True:
                house.router.address.request(WakeServer(server="nobody"))
        await end(self, house, front)

    handle = Router.handle

    def noted(self: Router, message: Message, reply: Reply[Any] | None) -> None:
        if isinstance(message, BeginShutdown):
            told.append(message)
        handle(self, message, reply)

    monkeypatch.setattr(Daemon, "_end", full_at_that_moment)
    monkeypatch.setattr(Router, "handle", noted)
    async with world(tmp_path, data, GOOD, max_in_flight=1):
        pass
    assert len(told) == 1


async def test_what_is_known_and_fresh_is_not_read_again_at_the_start_and_what_is_old_is(
    tmp_path: Path, data: DataDir
) -> None:
    servers: dict[str, Any] = {f"s{number}": {"command": "x"} for number in range(20)}
    async with world(tmp_path, data, servers, daemon=ECHO):
        pass
    again = FakeServer(tools=[tool("echo"), tool("new")])
    fakes = dict.fromkeys(servers, again)
    async with world(tmp_path, data, servers, fakes):
        await trio.testing.wait_all_tasks_blocked(0.1)
        assert again.starts == 0
    old = {name: {**entry, "catalogue_max_age_s": 0.2, "refresh_asleep": True} for name, entry in servers.items()}
    async with world(tmp_path, data, old, fakes, waits=False) as at:
        told = await at.until("/api/status", lambda told: all(row["tools"] == 2 for row in told["servers"]))
        assert all(row["problems"] == [] for row in told["servers"])


@pytest.mark.parametrize(("kind", "asked"), [("skills", "skills/list"), ("events", "events/list")])
async def test_lists_that_an_earlier_version_did_not_read_are_read_soon(
    tmp_path: Path, data: DataDir, kind: Kind, asked: str
) -> None:
    server = SkillServer()
    server.capabilities = {**server.capabilities, "extensions": {CAPABILITIES[kind]: {}}}
    # Nobody wakes it for its age alone: only what is in doubt is looked at while it sleeps.
    servers = {"desk": {"command": "x", "catalogue_max_age_s": 0.5, "refresh_asleep": False}}

    connect = {"connect": lambda _: MemoryTransport(server.serve)}

    async def run_until(done: Callable[[], bool]) -> None:
        async with world(tmp_path, data, servers, daemon=connect):
            with trio.fail_after(20):
                while not done():  # noqa: ASYNC110 - a server works
                    await trio.sleep(0.02)

    def lists() -> int:
        return sum(method == asked for method, _ in server.asked)

    await run_until(lambda: lists() > 0)
    with closing(sqlite3.connect(data.database)) as connection, connection:
        ((payload,),) = connection.execute("SELECT payload FROM servers")
        older = replace(decode_offer(payload), **{kind: ()}, marked_by=1)
        connection.execute("UPDATE servers SET payload = ?", (encode_offer(older),))
    server.asked.clear()
    await run_until(lambda: lists() > 0)


async def test_a_server_whose_lists_could_not_be_read_does_not_look_healthy(tmp_path: Path, data: DataDir) -> None:
    why = "tools/list: -32603 token expired"
    fake = FakeServer(errors_at={"tools/list": {"code": -32603, "message": "token expired"}})
    async with (
        world(tmp_path, data, {"s": {"command": "x"}}, {"s": fake}, waits=False) as at,
        at.reading("/api/events?after=x-1") as reader,
    ):
        await at.ready()
        failed = await reader.until("mcp.discovery.failed")
        assert (failed["server_id"], failed["reason"]) == ("s", why)
        assert (failed["discovery_count"], failed["failure_count"]) == (0, 1)
        row = await at.row("s")
        assert (row["tools"], row["last_error"], row["problems"]) == (0, why, [why])
        assert (row["discovery"]["count"], row["discovery"]["failures"]) == (0, 1)
        assert (await at.ask("POST", "/api/servers/s/refresh")).status_code >= 400
        del fake.errors_at["tools/list"]
        await at.ordered("s", "refresh")
        listed = await reader.until("mcp.discovery.completed")
        assert (listed["tool_count"], listed["discovery_count"], listed["failure_count"]) == (1, 1, 2)
        row = await at.row("s")
        assert (row["last_error"], row["problems"]) == (None, [])


@pytest.fixture
def sockets() -> Any:
    listeners = open_sockets("127.0.0.1:0", 5.0)
    yield listeners
    for listener in listeners:
        listener.close()


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests are no subreaper, and need no processes."""
    monkeypatch.setattr(module, "become_subreaper", lambda: None)
    monkeypatch.setattr(module, "raise_limit", lambda: 0)
    monkeypatch.setattr(building, "transport_of", lambda containment, authorizer, server: remembered(server))


@pytest.mark.usefixtures("plain")
def test_the_time_for_the_end_runs_from_the_signal_on_also_during_the_start(
    tmp_path: Path, data: DataDir, sockets: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[bool] = []
    monkeypatch.setattr(HardEnd, "begin", lambda self: begun.append(True))

    async def interrupted(self: Front, closing: trio.Event, *, task_status: trio.TaskStatus[list[str]]) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        with trio.fail_after(20):
            await closing.wait()
        assert begun
        task_status.started(["http://127.0.0.1:1"])

    monkeypatch.setattr(Front, "serve", interrupted)
    assert run(configuration(tmp_path, {}), data, sockets, lambda urls: None) == 0


@pytest.mark.usefixtures("plain")
def test_want_before_it_listens_is_no_crash(
    tmp_path: Path, data: DataDir, sockets: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def starved(self: Front, closing: trio.Event, *, task_status: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(Front, "serve", starved)
    with pytest.raises(OSError, match="Too many open files"):
        run(configuration(tmp_path, {}), data, sockets, lambda urls: None)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(tmp_path: Path, data: DataDir, sockets: Any, number: signal.Signals) -> None:
    config = configuration(tmp_path, GOOD)
    assert run(config, data, sockets, lambda urls: os.kill(os.getpid(), number)) == 0


@in_turns
@pytest.mark.usefixtures("plain")
def test_who_waits_does_not_wait_for_all_that_is_ready_at_the_same_moment(
    tmp_path: Path, data: DataDir, sockets: Any
) -> None:
    in_turn: list[int] = []

    async def look() -> None:
        in_turn.extend((await woken(10 * READY_PER_TURN)).values())
        os.kill(os.getpid(), signal.SIGTERM)

    def begin(urls: list[str]) -> None:
        trio.lowlevel.spawn_system_task(look)

    assert run(configuration(tmp_path, {}), data, sockets, begin) == 0
    assert max(in_turn) <= READY_PER_TURN


async def _crash_later(*_: object, **__: object) -> None:
    await trio.lowlevel.checkpoint()
    raise RuntimeError("a bug")


def _crash(*_: object) -> None:
    raise RuntimeError("a bug")


@pytest.mark.case("D26")
@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(
    ("part", "name", "how"),
    [(Registry, "handle", _crash), (Reload, "run", _crash_later), (Capacity, "run", _crash_later)],
)
def test_a_crash_of_the_core_and_of_a_part_that_keeps_crashing_end_it_with_70(
    tmp_path: Path,
    data: DataDir,
    sockets: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    part: type,
    name: str,
    how: Any,
) -> None:
    monkeypatch.setattr(part, name, how)
    assert run(configuration(tmp_path, GOOD), data, sockets, lambda urls: None) == EXIT_CRASH
    assert "the daemon crashed" in caplog.text


@pytest.mark.usefixtures("plain")
def test_a_front_that_ends_by_itself_ends_the_daemon_with_70(
    tmp_path: Path, data: DataDir, sockets: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def gone(self: Front, closing: trio.Event, *, task_status: trio.TaskStatus[list[str]]) -> None:
        task_status.started(["http://127.0.0.1:1"])
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(Front, "serve", gone)
    assert run(configuration(tmp_path, GOOD), data, sockets, lambda urls: None) == EXIT_CRASH
    assert "the front ended by itself" in caplog.text


def test_a_second_daemon_has_to_have_its_own_data(data: DataDir) -> None:
    with pytest.raises(ConfigError, match="another daemon uses this data directory"), open_data_dir(data.root, {}):
        pass


@pytest.mark.case("D05")
@pytest.mark.usefixtures("plain")
def test_a_hangup_has_the_configuration_read_again_and_ends_nothing(
    tmp_path: Path, data: DataDir, sockets: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    sent: list[signal.Signals] = []

    class Hearing(logging.Handler):
        """Sends SIGTERM once the hangup was noticed."""

        def emit(self, record: logging.LogRecord) -> None:
            if "SIGHUP" in record.getMessage():
                sent.append(signal.SIGTERM)
                os.kill(os.getpid(), signal.SIGTERM)

    hearing = Hearing()
    logging.getLogger().addHandler(hearing)
    try:
        config = configuration(tmp_path, GOOD)
        assert run(config, data, sockets, lambda urls: os.kill(os.getpid(), signal.SIGHUP)) == 0
    finally:
        logging.getLogger().removeHandler(hearing)
    assert sent == [signal.SIGTERM]
    assert "SIGHUP: the configuration is read again" in caplog.text


async def test_a_tool_that_was_added_while_the_daemon_was_down_is_found_by_the_first_call_of_it(
    tmp_path: Path, data: DataDir
) -> None:
    fakes, servers = {"desk": FakeServer()}, {"desk": {"command": "x"}}
    async with world(tmp_path, data, servers, fakes):
        pass
    fakes["desk"].tools = [tool("echo"), tool("sleep")]
    async with world(tmp_path, data, servers, fakes, waits=False) as at:
        assert (await at.executed("desk:sleep", s=0))["structuredContent"] == {"s": 0}
    assert fakes["desk"].starts == 2


@pytest.mark.parametrize("reason", ["no longer wanted", None])
async def test_the_reason_for_which_a_client_cancels_a_call_reaches_the_server(
    tmp_path: Path, data: DataDir, reason: str | None
) -> None:
    fake = FakeServer(tools=[tool("hang")])
    async with world(tmp_path, data, {"s": {"command": "x"}}, {"s": fake}) as at:
        session = at.within(await at.session())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.post, message("tools/call", {"name": "s-hang", "arguments": {}}, 7))
            with trio.fail_after(20):
                await fake.called.wait()
                told = {"requestId": 7, **({"reason": reason} if reason else {})}
                await session.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": told})
                await fake.cancelled.wait()
    (cancelled,) = [each["params"] for each in fake.messages if each.get("method") == "notifications/cancelled"]
    assert cancelled["reason"] == (reason or "the client went away")
