"""The dashboard in a real browser: every page, live, with hostile servers, by keyboard and on a phone."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import ROOT, STAND_IN, Daemon, running, stand_in, text
from tests.e2e.fork_server import forking
from tests.e2e.test_login import guarded

pytestmark = pytest.mark.e2e

HOSTILE = {"command": sys.executable, "args": [str(Path(__file__).with_name("servers") / "hostile.py")]}
SERVERS = {
    "hostile": HOSTILE,
    "growing": stand_in("growing"),
    "broken": {"command": "no-such-program"},
}
PAGES = (
    "/ui",
    "/ui/servers",
    "/ui/servers/hostile",
    "/ui/servers/broken",
    "/ui/servers/growing?window=7d",
    "/ui/tools",
    "/ui/tools?query=show+something",
    "/ui/tool?path=hostile:show",
    "/ui/calls",
    "/ui/usage",
    "/ui/changes",
    "/ui/people",
)
NONE = "There is nothing like that here."


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("dashboard"), SERVERS) as daemon:
        trio.run(daemon.ready)
        for path in ("hostile:show", "hostile:fail", "growing:echo"):
            trio.run(partial(daemon.execute, path, text="a", what="b"))
        yield daemon


def walk(
    url: str,
    *steps: list[Any],
    width: int = 1280,
    scheme: str = "light",
    meanwhile: Callable[[], None] | None = None,
    elsewhere: str | None = None,
) -> Any:
    """Walk through pages, and return what the steps told; nothing may go wrong on the way.

    `meanwhile` is done when the step `signal` is reached. `elsewhere` is the host to which a link leads, if one does.
    """
    told = environments.browse("walk.cjs", url, steps, width, scheme, meanwhile=meanwhile)
    assert told["wrong"] == []
    assert [each for each in told["elsewhere"] if elsewhere is None or not each.startswith(elsewhere)] == []
    return told["told"]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_page_is_whole_for_everybody_and_runs_nothing_of_a_server(
    daemon: Daemon, width: int, scheme: str
) -> None:
    looks: tuple[list[Any], ...] = (["wide"], ["axe"], ["markup"])
    steps = [step for page in PAGES for step in (["goto", page], *looks)]
    told = iter(walk(daemon.url, *steps, width=width, scheme=scheme))
    for page in PAGES:
        status, sideways, trouble, markup = (next(told) for _ in range(4))
        assert (page, status, sideways, trouble, markup) == (page, 200, False, [], "TypeError")


@pytest.mark.case("I20")
def test_what_a_server_writes_is_text(daemon: Daemon) -> None:
    shown = walk(daemon.url, ["goto", "/ui/servers/hostile"], ["text", "main"], ["count", "main img, main script"])
    assert "<img src=x onerror=alert(1)>" in shown[1]
    assert "{{7*7}}" in shown[1]
    assert "\u202e" not in shown[1]
    assert shown[2] == 0


def test_a_tool_is_found_and_tried(daemon: Daemon) -> None:
    told = walk(
        daemon.url,
        ["goto", "/"],
        ["path"],
        ["goto", "/ui/tools"],
        ["press", "/"],
        ["type", "input[name=query]", "show what"],
        ["submit", "form.filters button"],
        ["text", "#found ol a"],
        ["submit", "#found ol a"],
        ["type", "input[name='field.what']", "seven"],
        ["submit", "#try button"],
        ["text", "#try .answer"],
        ["goto", "/ui/tool?path=hostile:picture"],
        ["submit", "#try button"],
        ["count", "img.answer"],
        ["goto", "/ui/tool?path=hostile:fail"],
        ["submit", "#try button"],
        ["text", "#try h3"],
        ["goto", "/ui/calls?outcome=failed"],
        ["text", "#list tbody tr"],
    )
    assert told[1] == "/ui"
    assert told[6].startswith("hostile:")
    assert "{'what': 'seven'}" in told[10]
    assert told[13] == 1, "an SVG is shown as text: it could run"
    assert told[16].startswith("It failed")
    assert "hostile:fail" in told[18]
    assert "dashboard" in told[18]


def test_a_server_that_dies_is_seen_at_once_and_its_order_says_what_was_done(daemon: Daemon) -> None:
    def die() -> None:
        status = trio.run(daemon.page, "/api/servers/growing")
        os.kill(status["pid"], signal.SIGKILL)

    trio.run(partial(daemon.execute, "growing:echo", text="up"))
    told = walk(
        daemon.url,
        ["goto", "/ui"],
        ["see", "live"],
        ["text", "[id='row-growing'] .state"],
        ["signal"],
        ["lacks", "[id='row-growing'] .state", "●", 5000],
        ["goto", "/ui/servers/growing"],
        ["see", "Sleep", 20_000],
        ["click", "form[action$='/sleep'] button"],
        ["see", "growing is asleep", 10_000],
        ["see", "dormant", 5000],
        meanwhile=die,
    )
    assert told[2].startswith("● online")
    assert told[4] < 2000, "it is told of by an event"


def test_what_a_button_says_is_what_it_does_when_an_order_is_long_on_its_way(daemon: Daemon) -> None:
    def sleep() -> None:
        command(daemon, "sleep", "growing")

    trio.run(partial(daemon.execute, "growing:echo", text="up"))
    told = walk(
        daemon.url,
        ["goto", "/ui/servers/growing"],
        ["see", "live"],
        ["see", "Sleep", 20_000],
        ["hold", "POST"],
        ["click", "form[action$='/sleep'] button"],
        ["signal"],
        ["see", "Wake", 10_000],
        ["hold", "GET"],
        ["release", "POST"],
        ["see", "growing has no process", 10_000],
        *(["text", f"form[action$='/{order}'] button"] for order in ("wake", "refresh", "disable")),
        ["count", "#state form"],
        ["release", "GET"],
        meanwhile=sleep,
    )
    assert told[-5:-1] == ["Wake", "Refresh", "Disable", 3]


def test_the_life_of_a_server_is_drawn_and_where_its_values_come_from_is_said(daemon: Daemon) -> None:
    trio.run(partial(daemon.execute, "growing:echo", text="up"))
    told = walk(
        daemon.url,
        ["goto", "/ui/servers/growing?window=24h"],
        ["see", "States, 24h"],
        ["label", ".life-plot svg"],
        ["lines", ".life-plot rect.ok title"],
        ["count", ".life-plot rect.unknown"],
        ["text", "#configuration table"],
        ["text", "#configuration details summary"],
        ["goto", "/ui/servers/broken"],
        ["text", ".life-plot figcaption"],
    )
    assert re.fullmatch(
        r"States over time: not known .*online .*; \d+ crash(es)?, \d+ wakes?\. The list below has each\.", told[2]
    )
    assert told[3][-1].startswith("online, ready, ")
    assert told[4] == 1
    rows = dict(line.split("\t", 1) for line in told[5].splitlines())
    assert rows["kind"] == "stdio\tfollows from command"
    assert rows["command"].startswith(f"{sys.executable}\tmcp.json:")
    assert re.fullmatch(r"\d+ defaults", told[6])
    assert "down" in told[8]


def test_a_storm_of_calls_makes_few_looks(daemon: Daemon) -> None:
    over = trio.Event()

    async def storm() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rage)
            await trio.to_thread.run_sync(watch)
            over.set()

    async def rage() -> None:
        while not over.is_set():
            await daemon.execute("growing:echo", text="more")

    def watch() -> None:
        told.extend(walk(daemon.url, ["goto", "/ui"], ["see", "live"], ["looks", 4000]))

    told: list[Any] = []
    trio.run(storm)
    assert 2 <= told[-1] <= 4000 / 1000 + 2, "one in a second for calls alone"


ASKED = {"message": "<b>Who</b>?", "properties": {"name": {"type": "string"}}}


def test_a_question_is_seen_on_the_overview_and_answered_from_there(tmp_path: Path) -> None:
    with running(tmp_path, {"asks": {**stand_in("talkative"), "ask": "everyone"}}) as daemon:
        trio.run(daemon.ready)

        async def execute(**beside: Any) -> Any:
            given = {"tool_path": "asks:ask", "arguments": ASKED, **beside}
            return (await daemon.call("execute_mcp_tool", **given))["result"]

        waiting: list[Any] = []
        told = walk(
            daemon.url,
            ["goto", "/ui"],
            ["see", "live"],
            ["signal"],
            ["see", "1 question waits for an answer", 5000],
            ["text", "nav .badge"],
            ["text", "title"],
            ["submit", "#needs a[href='/questions']"],
            ["submit", "a[href^='/questions/']"],
            ["type", "[name='field.name']", "Ada"],
            ["submit", "button[value=accept]"],
            ["see", "The server has your answer"],
            ["goto", "/ui"],
            ["count", "#needs li"],
            ["count", "nav .badge"],
            meanwhile=lambda: waiting.append(trio.run(execute)),
        )
        assert told[3] < 2000, "it is told of by an event"
        assert (told[4], told[5]) == ("1", "(1) Overview · mcpvisor")
        assert told[-2:] == [0, 0]
        continuation = waiting[0]["structuredContent"]["continuation"]
        answer = trio.run(lambda: execute(continuation=continuation))
        assert json.loads(answer["content"][0]["text"]) == {"action": "accept", "content": {"name": "Ada"}}


def test_a_changed_definition_is_shown_as_a_difference_and_approved(tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.write_text("search")
    edit = f"s/echo of growing: search/echo of growing: $(cat {words})/"
    serve = f'{sys.executable} -I -S {STAND_IN} growing | sed -u "{edit}"'
    servers = {"growing": {"command": "sh", "args": ["-c", serve]}}
    identity = {"users": {"ana": {"role": "admin"}}}

    def change() -> None:
        words.write_text("empty")

    with running(tmp_path, servers, trust="strict", auth="tokens", identity=identity) as daemon:
        secret = token(daemon, "ana", "admin")
        told = walk(
            daemon.url,
            ["goto", "/ui/changes"],
            ["type", "input[name=secret]", secret],
            ["submit", "main button"],
            ["see", "Nothing waits for approval"],
            ["goto", "/ui/servers/growing"],
            ["see", "ready", 20_000],
            ["signal"],
            ["click", "form[action$='/restart'] button"],
            ["see", "growing is restarted", 20_000],
            ["goto", "/ui/changes"],
            ["see", "growing:echo", 10_000],
            ["text", ".before"],
            ["text", ".after"],
            ["axe"],
            ["click", "#changes form button"],
            ["see", "growing: echo is approved", 10_000],
            ["see", "Nothing waits for approval", 10_000],
            ["goto", "/ui/tool?path=growing:echo"],
            ["submit", "#try button"],
            ["text", "#try h3"],
            meanwhile=change,
        )
        assert "search libraries" in told[11]
        assert "empty libraries" in told[12]
        assert told[13] == []
        assert told[-1].startswith("Answer")


async def test_a_server_that_wants_a_login_gets_it_from_its_page(tmp_path: Path) -> None:
    async with guarded(tmp_path) as server:
        with running(tmp_path, server.entry) as daemon:
            await daemon.ready()
            go = partial(
                walk,
                daemon.url,
                ["goto", "/ui"],
                ["see", "wants a login"],
                ["goto", "/ui/servers/guarded"],
                ["click", "form[action$='/login'] button"],
                ["follow", "#said a"],
                ["see", "close this window"],
                ["goto", "/ui/servers/guarded"],
                ["see", "ready", 20_000],
                elsewhere=server.base,
            )
            await trio.to_thread.run_sync(go)
            assert text(await daemon.execute("guarded:echo", text="hello")) == "hello"


def test_the_keyboard_does_it_all(daemon: Daemon) -> None:
    told = walk(
        daemon.url,
        ["goto", "/ui"],
        ["press", "g"],
        ["press", "t"],
        ["see", "What should it do?"],
        ["path"],
        ["press", "Tab"],
        ["press", "Enter"],
    )
    assert told[4] == "/ui/tools"


def test_a_table_is_sorted_and_stays_so_while_its_head_is_pointed_at(daemon: Daemon) -> None:
    def use() -> None:
        trio.run(partial(daemon.execute, "growing:echo", text="up"))

    told = walk(
        daemon.url,
        ["goto", "/ui/servers"],
        ["text", "#servers tbody tr th"],
        ["click", "#servers thead th:first-child button"],
        ["text", "#servers tbody tr th"],
        ["signal"],
        ["looks", 2500],
        ["text", "#servers tbody tr th"],
        ["count", "#servers th[aria-sort=descending]"],
        meanwhile=use,
    )
    assert (told[1], told[3], told[6], told[7]) == ("broken", "hostile", "hostile", 1)
    assert told[5] > 0, "the page was renewed meanwhile"


def test_a_table_is_sorted_as_before_for_who_comes_back_to_it(daemon: Daemon) -> None:
    told = walk(
        daemon.url,
        ["goto", "/ui/servers"],
        ["click", "#servers thead th button"],
        ["lines", "#servers tbody th"],
        ["submit", "#servers tbody th a"],
        ["back"],
        ["see", "live"],
        ["lines", "#servers tbody th"],
        ["count", "#servers th[aria-sort=descending]"],
    )
    assert told[2] == told[6] == sorted(SERVERS, reverse=True)
    assert told[7] == 1


def test_who_cannot_see_the_page_hears_which_server_a_button_is_about(daemon: Daemon) -> None:
    told = walk(
        daemon.url,
        ["goto", "/ui"],
        ["label", "[id='notice-broken'] button"],
        ["goto", "/ui/servers/growing"],
        ["label", "form[action$='/disable'] button"],
        ["label", "form[action$='/refresh'] button"],
    )
    assert (told[1], told[3], told[4]) == ("Restart broken", "Disable growing", "Refresh growing")


@pytest.mark.parametrize("path", ["/ui/servers/nowhere", "/ui/tool?path=no:tool", "/ui/static/x/none"])
def test_what_is_not_there_is_said(daemon: Daemon, path: str) -> None:
    answer = trio.run(daemon.ask, "GET", path)
    assert answer.status_code == 404
    assert "text/html" in answer.headers["content-type"]
    assert "no such" in answer.text or "there is no server" in answer.text


def test_a_form_of_somebody_else_does_nothing(daemon: Daemon) -> None:
    async def post(**headers: str) -> int:
        form = b"token=0000"
        answer = await daemon.at("/ui/servers/growing/disable").showing(content_type=FORM, **headers).post(form)
        return answer.status_code

    assert trio.run(post) == 400
    assert trio.run(lambda: post(origin="http://evil.example")) == 403
    assert trio.run(daemon.page, "/api/servers/growing")["disabled"] is False


FORM = "application/x-www-form-urlencoded"


def test_a_person_signs_in_and_sees_what_is_theirs(tmp_path: Path) -> None:
    servers = {
        "growing": stand_in("growing"),
        "desk": {**stand_in("growing"), "env": {"KEY": "${user:KEY}"}, "users": ["ben"]},
    }
    identity = {"users": {"ana": {"role": "admin"}, "ben": {}}}
    with running(tmp_path, servers, auth="tokens", identity=identity) as daemon:
        keys = {user: token(daemon, user, role) for user, role in (("ana", "admin"), ("ben", "member"))}
        told = walk(
            daemon.url,
            ["goto", "/ui/servers"],
            ["path"],
            ["type", "input[name=secret]", "mcpv_wrong"],
            ["submit", "main button"],
            ["text", "[role=alert]"],
            ["axe"],
            ["type", "input[name=secret]", keys["ana"]],
            ["submit", "main button"],
            ["path"],
            ["cookies"],
            ["see", "Calls and times"],
            ["goto", "/ui/people"],
            ["text", "#tokens"],
            ["submit", ".who button"],
            ["path"],
            ["goto", "/ui"],
            ["path"],
            ["type", "input[name=secret]", keys["ben"]],
            ["submit", "main button"],
            ["text", "#needs"],
            ["type", "#needs input[name=value]", "the key of ben"],
            ["click", "#needs form button"],
            ["see", "has your KEY now"],
            ["gone", "needs your KEY", 10_000],
            ["goto", "/ui/servers"],
        )
        assert told[1] == "/ui/sign-in?next=/ui/servers"
        assert told[3] == 400
        assert "not known here" in told[4]
        assert told[5] == []
        assert told[8] == "/ui/servers"
        assert told[9] == [{"name": f"mcpvisor-{daemon.port}", "httpOnly": True, "sameSite": "Strict", "path": "/"}]
        assert "ben" in told[12]
        assert told[14] == "/ui/sign-in"
        assert told[16] == "/ui/sign-in?next=/ui"
        assert "desk needs your KEY" in " ".join(told[19].split())
        assert told[-1] == 404, "that is for auditors"
        assert "the key of ben" not in daemon.log
        link = command(daemon, "ui").strip()
        first, again = (
            walk(daemon.url, ["goto", link.removeprefix(daemon.url)], ["see", "servers"]),
            trio.run(daemon.ask, "GET", link.removeprefix(daemon.url)),
        )
        assert first[0] == 200
        assert again.status_code == 400


def test_an_admin_makes_and_revokes_tokens_and_sees_which_values_are_missing(tmp_path: Path) -> None:
    servers = {"desk": {**stand_in("growing"), "env": {"KEY": "${team:KEY}", "OWN": "${user:OWN}"}}}
    given = {"desk": {"KEY": "the key of core"}}
    identity = {
        "users": {"ana": {"role": "admin"}, "ben": {}, "cem": {"role": "auditor"}},
        "teams": {"core": {"members": ["ben"], "servers": ["desk"], "values": given}},
    }
    with running(tmp_path, servers, auth="tokens", identity=identity) as daemon:
        keys = {user: token(daemon, user, role) for user, role in (("ana", "admin"), ("cem", "auditor"))}
        made = walk(
            daemon.url,
            ["goto", "/ui/people"],
            ["type", "input[name=secret]", keys["ana"]],
            ["submit", "main button"],
            ["text", "#teams tbody"],
            ["text", "#values tbody"],
            ["axe"],
            ["choose", "select[name=user]", "ben"],
            ["choose", "select[name=team]", "core"],
            ["type", "input[name=label]", "<i>laptop</i>"],
            ["submit", "#make-token button"],
            ["text", ".once"],
            ["looks", 1000],
            ["axe"],
            ["wide"],
            ["path"],
            ["text", "main"],
            ["goto", "/ui/people"],
            ["text", "#tokens tbody"],
            ["text", "#audit tbody tr"],
        )
        assert made[3].split("\t") == ["core", "ben", "desk"]
        rows = [line.split("\t")[:5] for line in made[4].splitlines() if line.startswith("desk")]
        assert rows == [["desk", "KEY", "team", "team core", "-"], ["desk", "OWN", "user", "-", "ben"]]
        assert (made[5], made[12], made[13]) == ([], [], False)
        secret = made[10]
        assert re.fullmatch(r"mcpv_\w+", secret)
        assert (made[11], made[14]) == (0, "/ui/tokens"), "nothing takes it away"
        assert "For ben in the team core, as member; it expires in 90 days" in made[15]
        assert "<i>laptop</i>" in made[17]
        assert "token.create" in made[18]
        assert secret not in made[17] + made[18] + daemon.log
        assert secret not in command(daemon, "audit", "--json", token=keys["ana"])
        ben = walk(
            daemon.url,
            ["goto", "/ui/people"],
            ["type", "input[name=secret]", secret],
            ["submit", "main button"],
            ["goto", "/ui"],
            ["text", "#needs"],
        )
        assert (ben[2], "desk needs your OWN" in " ".join(ben[4].split())) == (404, True)
        seen = walk(
            daemon.url,
            ["goto", "/ui/people"],
            ["type", "input[name=secret]", keys["cem"]],
            ["submit", "main button"],
            ["count", "#teams"],
            ["count", "#tokens, #values, #make-token"],
        )
        assert seen[3:] == [1, 0], "an auditor sees who is in which team, and no more"
        row = next(line.split("\t")[0] for line in made[17].splitlines() if "laptop" in line)
        revoked = walk(
            daemon.url,
            ["goto", "/ui/people"],
            ["type", "input[name=secret]", keys["ana"]],
            ["submit", "main button"],
            ["click", f"[id='token-{row}'] button"],
            ["see", f"The token {row} of ben is revoked"],
            ["gone", "<i>laptop</i>", 5000],
            ["wide"],
            ["axe"],
            width=390,
        )
        assert revoked[-2:] == [False, []]
        again = walk(daemon.url, ["goto", "/ui"], ["type", "input[name=secret]", secret], ["submit", "main button"])
        assert again[2] == 400


def test_what_is_typed_for_one_server_stays_there_when_another_one_is_done(tmp_path: Path) -> None:
    servers = {name: {**stand_in("growing"), "env": {"KEY": "${user:KEY}"}} for name in ("first", "second")}
    with running(tmp_path, servers, auth="tokens", identity={"users": {"ben": {}}}) as daemon:
        walk(
            daemon.url,
            ["goto", "/ui"],
            ["type", "input[name=secret]", token(daemon, "ben", "member")],
            ["submit", "main button"],
            ["type", "#needs li:last-child input[name=value]", "the key of the second"],
            ["type", "#needs li:first-child input[name=value]", "the key of the first"],
            ["click", "#needs li:first-child form button"],
            ["see", "first has your KEY now", 10_000],
            ["gone", "2 of 2 servers", 10_000],
            ["click", "#needs form button"],
            ["see", "second has your KEY now", 10_000],
            ["see", "Your 2 servers are there for you", 10_000],
        )


def test_an_admin_gives_what_is_missing(tmp_path: Path) -> None:
    servers = {"desk": {**stand_in("growing"), "env": {"KEY": "${user:KEY}", "HOST": "${team:HOST}"}}}
    identity = {
        "users": {"ana": {"role": "admin"}, "ben": {}},
        "teams": {"core": {"members": ["ana", "ben"], "servers": ["desk"]}},
    }
    with running(tmp_path, servers, auth="tokens", identity=identity) as daemon:
        keys = {user: token(daemon, user, role) for user, role in (("ana", "admin"), ("ben", "member"))}
        told = walk(
            daemon.url,
            ["goto", "/ui/people"],
            ["type", "input[name=secret]", keys["ana"]],
            ["submit", "main button"],
            ["text", "#values tbody"],
            ["axe"],
            ["type", "#values tr:first-child input[name=value]", "desk.example"],
            ["click", "#values tbody tr:first-child form button"],
            ["see", "desk has HOST of the team core now", 10_000],
            ["choose", "#values tbody tr:last-child select", "user:ben"],
            ["type", "#values tr:last-child input[name=value]", "the key of ben"],
            ["click", "#values tbody tr:last-child form button"],
            ["see", "desk has KEY of the user ben now", 10_000],
            ["goto", "/ui"],
            ["type", "#needs input[name=value]", "the key of ana"],
            ["click", "#needs form[action='/ui/values'] button"],
            ["see", "desk has your KEY now", 10_000],
            ["see", "The one server is usable", 20_000],
            ["submit", ".who button"],
            ["type", "input[name=secret]", keys["ben"]],
            ["submit", "main button"],
            ["see", "Your one server is there for you", 10_000],
        )
        assert " ".join(told[3].split()).startswith("desk HOST team - team core")
        assert told[4] == []
        assert not any(key in daemon.log for key in ("desk.example", "the key of"))


def test_who_gave_a_value_finds_and_tries_their_tools_and_sees_for_whom_the_server_runs(tmp_path: Path) -> None:
    servers = {"desk": {**stand_in("growing"), "env": {"KEY": "${user:KEY}"}}}
    given = {"values": {"desk": {"KEY": "the key of ana"}}}
    identity = {"users": {"ana": {"role": "admin", **given}, "ben": {}}}
    with running(tmp_path, servers, auth="tokens", identity=identity) as daemon:
        key = token(daemon, "ana", "admin")
        told = walk(
            daemon.url,
            ["goto", "/ui/tools"],
            ["type", "input[name=secret]", key],
            ["submit", "main button"],
            ["goto", "/ui/tools?query=echo"],
            ["submit", "#found a"],
            ["see", "Try it"],
            ["goto", "/ui/servers/desk"],
            ["see", "Missing: KEY of ben"],
            ["see", "per user"],
            ["axe"],
            ["see", "These are the tools of your own launch", 20_000],
            ["submit", "#people a"],
            ["text", "h1"],
            ["axe"],
            ["submit", "#tools tbody tr:nth-child(2) a"],
            ["text", "h1"],
            ["submit", "#try button"],
            ["see", "Answer, ", 20_000],
            ["goto", "/ui/servers/desk"],
            ["type", "#people input[name=value]", "the key of ben"],
            ["click", "#people form button"],
            ["see", "desk has KEY of the user ben now", 10_000],
            ["goto", "/ui/servers/desk"],
            ["count", "#people form"],
        )
        assert (told[9], told[13]) == ([], [])
        assert told[12] == "desk, for ana"
        assert told[15] == "echo"
        assert told[-1] == 0
        assert "the key of" not in daemon.log


def command(daemon: Daemon, *words: str, token: str = "") -> str:
    environ = {**os.environ, "MCPVISOR_DATA_DIR": str(daemon.data), **({"MCPVISOR_TOKEN": token} if token else {})}
    done = subprocess.run(
        [*forking(), "-m", "supervisor", *words, "--url", daemon.url],
        capture_output=True,
        text=True,
        check=True,
        env=environ,
        cwd=ROOT,
    )
    return done.stdout


def token(daemon: Daemon, user: str, role: str) -> str:
    made = command(daemon, "token", "create", "--user", user, "--role", role)
    (text,) = re.findall(r"mcpv_\w+", made)
    return str(text)
