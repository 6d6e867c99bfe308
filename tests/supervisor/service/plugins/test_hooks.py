"""What plugins are told of a call, and what becomes of what they say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from actors.codes import URL_ELICITATION_REQUIRED
from actors.errors import CallRefused, InvalidArguments
from actors.facts import FactLog
from actors.messages import CallServer, Result
from actors.principal import LOCAL, Principal
from actors.protocol.agreement.versions import Era
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from supervisor.host.workbench import Workbench
from supervisor.identity.people import People, Person, Team, principal_of
from supervisor.identity.requester import ORIGIN, Requester, RequestOrigin
from supervisor.plugins.contract import Plugin, PluginOptions, Rejection, ToolCall, decode_result
from supervisor.plugins.hooks import Nobody
from supervisor.service.asking.elicitations import Elicitations
from supervisor.service.asking.rounds import Parking
from supervisor.service.client import Client
from supervisor.service.plugins import CallHooks, PluginQuestions
from supervisor.service.request import ServerRequest
from tests.fakes.deployments import deployment
from tests.fakes.exchanges import LEGACY, MODERN, exchange
from tests.fakes.kept_audit import KeptAudit
from tests.supervisor.plugins.test_hooks import table_of
from tests.supervisor.service.test_gateway import forwarder

PEOPLE = People(teams={"core": Team(members=("ana", "ben")), "ops": Team(members=("ana",))})
HIDDEN = "XXX"


class Notes(Plugin[PluginOptions]):
    """Notes calls; `no` as an argument is refused, and `give` are other arguments."""

    seen: list[ToolCall] = []  # noqa: RUF012 - of one test, which clears it

    async def before_call(self, call: ToolCall) -> Rejection | dict[str, Any] | None:
        self.seen.append(call)
        arguments = call.decode_arguments()
        return Rejection("no") if "no" in arguments else arguments.get("give")

    async def after_call(self, call: ToolCall, result: bytes) -> bytes | None:
        if "leave" in decode_result(result)["content"][0]["text"]:
            return None
        return result.replace(b"secret", HIDDEN.encode())


class Guards(Notes):
    """Fails at results."""

    guards = True

    async def after_call(self, call: ToolCall, result: bytes) -> bytes | None:
        raise ValueError


def hooks(audit: KeptAudit | None = None, kind: type[Plugin[Any]] = Notes) -> CallHooks:
    Notes.seen.clear()
    cell, bench = deployment(identity=PEOPLE), Workbench()
    questions = PluginQuestions(Parking(bytes(32)), cell, Elicitations(FactLog(lambda: 0.0)), bench)
    return CallHooks(table_of(notes=kind), cell, bench, audit or KeptAudit(), questions)


async def before(members: bytes, principal: Principal = LOCAL, audit: KeptAudit | None = None) -> bytes:
    client = Client(principal=principal, name="agent")
    _, said = await hooks(audit).before(exchange(client, "tools/call"), "s", "t", members, Nobody())
    return said


@pytest.mark.parametrize(
    ("members", "seen"),
    [
        (b'"name":"t","arguments":{"a":1}', b'{"a":1}'),
        (b'"name":"t"', b"{}"),
        (b'"name":"t","arguments":null', b"{}"),
        (b'"name":"t","arguments": {}', b"{}"),
    ],
)
async def test_a_call_that_a_plugin_leaves_alone_is_made_as_it_was_written(members: bytes, seen: bytes) -> None:
    assert await before(members) == members
    (call,) = Notes.seen
    assert (call.arguments.strip(), call.path, call.client) == (seen, "s:t", "agent")


async def test_other_arguments_take_the_place_of_the_first_and_the_rest_stays() -> None:
    said = await before(b'"name":"t","arguments":{"give":{"b":2}},"task":{"ttl":1}')
    assert msgspec.json.decode(b"{%b}" % said) == {"name": "t", "arguments": {"b": 2}, "task": {"ttl": 1}}


@pytest.mark.parametrize("arguments", [b"[]", b'"{}"', b"7"])
async def test_arguments_that_are_no_object_reach_no_plugin(arguments: bytes) -> None:
    with pytest.raises(InvalidArguments):
        await before(b'"name":"t","arguments":' + arguments)
    assert Notes.seen == []


async def test_what_is_refused_is_recorded() -> None:
    audit = KeptAudit()
    with pytest.raises(CallRefused):
        await before(b'"arguments":{"no":1}', audit=audit)
    assert audit.notes == [("tool.refuse", "s:t", "refused", "by plugin notes")]


@pytest.mark.parametrize(
    ("principal", "person", "user", "role", "teams"),
    [
        (LOCAL, None, "", "admin", set()),
        (principal_of("ana"), Person(user="ana", role="auditor"), "ana", "auditor", {"core", "ops"}),
        (principal_of("ana", "ops"), Person(user="ana", role="member", team="ops"), "ana", "member", {"ops"}),
        (principal_of("ben"), None, "ben", "member", {"core"}),
        (principal_of("ben"), Person(user="ana", role="admin"), "ben", "member", {"core"}),
    ],
)
async def test_a_plugin_is_told_who_calls(
    principal: Principal, person: Person | None, user: str, role: str, teams: set[str]
) -> None:
    token = ORIGIN.set(RequestOrigin(Requester(person=person)) if person is not None else None)
    try:
        await before(b'"name":"t"', principal)
    finally:
        ORIGIN.reset(token)
    (call,) = Notes.seen
    assert (call.user, call.role, set(call.teams)) == (user, role, teams)


CALL = ToolCall(user="", role="admin", teams=frozenset(), client="", server="s", tool="t", arguments=b"{}")


def error(text: str, code: int = -32000) -> RemoteError:
    return RemoteError(ErrorObject(code, text, msgspec.Raw(b'{"of":"secret"}')), "s")


@pytest.mark.parametrize(("text", "shown"), [("a secret", f"a {HIDDEN}"), ("leave it", "leave it")])
async def test_an_error_of_a_server_is_shown_without_its_data_and_as_plugins_say(text: str, shown: str) -> None:
    said = (await hooks().after_error(CALL, error(text))).error
    assert (said.code, said.message, bytes(said.data)) == (-32000, shown, b"")


async def test_an_error_that_asks_the_client_for_something_stays_as_it_is() -> None:
    asks = error("secret", URL_ELICITATION_REQUIRED)
    assert await hooks().after_error(CALL, asks) is asks


async def test_a_result_that_is_held_back_is_recorded() -> None:
    audit = KeptAudit()
    with pytest.raises(CallRefused):
        await hooks(audit, Guards).after(CALL, b"{}", Nobody())
    assert audit.notes == [("tool.refuse", "s:t", "refused", "by plugin notes")]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_no_call_becomes_a_task_where_a_plugin_looks_at_results(era: Era) -> None:
    asked: list[CallServer] = []

    def answer(message: CallServer) -> Result:
        asked.append(message)
        return Result(msgspec.Raw(b'{"content":[{"type":"text","text":"secret"}]}'), era)

    client = MODERN if era == "modern" else LEGACY
    request = ServerRequest("s", "tools/call", b'"name":"t"', msgspec.Raw(b"{}"), since=0, name="t", as_task=True)
    forward = forwarder(answer, table_of(notes=Notes))
    if era == "legacy":
        with pytest.raises(CallRefused, match="no call becomes a task"):
            await forward.ask(exchange(client, "tools/call"), request)
        assert asked == []
    else:
        body = await forward.ask(exchange(client, "tools/call"), request)
        assert ([message.as_task for message in asked], b"secret" in body, HIDDEN.encode() in body) == (
            [False],
            False,
            True,
        )
