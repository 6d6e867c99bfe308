"""A call of a tool and its result as plugins see them, whatever door it came through.

What a client is told before the result (progress, log messages, questions of servers) does not pass here, nor does
anything but calls of tools. Where plugins look at results no call becomes a task: its client would fetch the result
past them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from actors.catalogue.metadata import Traits
from actors.codes import URL_ELICITATION_REQUIRED
from actors.errors import AnswerFirst, CallRefused, InvalidArguments, MalformedRequest
from actors.kit import Latest
from actors.principal import LOCAL, Principal
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError, encode
from supervisor.host.loop.workbench import Workbench
from supervisor.identity.audit import Audit
from supervisor.identity.people import team_of, user_of
from supervisor.identity.requester import ORIGIN
from supervisor.plugins.contract import ToolCall
from supervisor.plugins.hooks import Asker, Nobody, PluginTable
from supervisor.servers.deployment import Deployment
from supervisor.service.asking.exchange import Exchange
from supervisor.service.asking.rounds import AskedByResult, InputNeeded
from supervisor.service.client import Client
from supervisor.service.plugins.asking import PluginQuestions
from supervisor.service.request import ServerRequest

_OPENED_COST: Final = 64
"""So many bytes of members cost as much, to be taken apart, as one that a model wrote."""
NO_TASKS: Final = "a plugin looks at results here, so no call becomes a task; make the call without a task"


class CallHooks:
    """What the plugins of the `table` say of calls."""

    def __init__(
        self,
        table: PluginTable,
        deployment: Latest[Deployment],
        bench: Workbench,
        audit: Audit,
        questions: PluginQuestions,
        traits: Callable[[Principal, str, str], Traits] = lambda principal, server, tool: Traits(),
    ) -> None:
        """`traits` are those of a server's tool, by its own name, as it is started for somebody."""
        self.table = table
        self._traits = traits
        self._questions = questions
        self._deployment = deployment
        self._bench = bench
        self._audit = audit

    def passes(self, exchange: Exchange) -> bool:
        """Say whether a call passes here: a plugin looks at it, or one that is gone has asked something about one."""
        return self.table.on_calls or (exchange.retry is not None and len(self._questions.memory) > 0)

    async def call(
        self, exchange: Exchange, request: ServerRequest, make: Callable[[ServerRequest], Awaitable[bytes]]
    ) -> bytes:
        """Return the result of a call that `make` makes, both as plugins have it.

        Raises what `make` and hooks raise, and `InputNeeded` or `AskedByResult` where a plugin asks something.
        """
        if request.as_task and self.table.on_results:
            if exchange.client.era == "legacy":  # it asked for a task; of a modern one any call may become one
                raise CallRefused(NO_TASKS, server=request.server)
            request = msgspec.structs.replace(request, as_task=False)
        asker = await self._questions.begin(exchange, request)
        try:
            call, body = asker.known.call, asker.known.result
            if call is None:
                call, members = await self.before(exchange, request.server, request.name, request.members, asker)
                since = request.since + asker.waited_s
                body = await make(msgspec.structs.replace(request, members=members, since=since))
            asker.hold(call, body)
            return await self.after(call, body, asker)
        except (InputNeeded, AskedByResult) as asked:
            asker.keep(asked)
            raise
        except AnswerFirst as error:
            asker.keep_unsent(error)
            raise
        except MalformedRequest:
            asker.restore()
            raise
        except RemoteError as error:
            if call is None:
                raise
            refused = error
        raise await self.after_error(call, refused)

    async def before(
        self, exchange: Exchange, server: str, tool: str, members: bytes, asker: Asker
    ) -> tuple[ToolCall, bytes]:
        """Return a call as plugins have it made, and its members, which are without braces.

        Raises `CallRefused`, `InvalidArguments`. A checkpoint if any plugin is asked.
        """
        opened = await self._bench.run(len(members) // _OPENED_COST, _open, members)
        arguments = bytes(opened.get("arguments", b"{}"))
        if arguments.strip() == b"null":
            arguments = b"{}"
        if not arguments.lstrip().startswith(b"{"):
            raise InvalidArguments("arguments must be a JSON object", server=server)
        call = self._call(exchange.client, server, tool, arguments)
        try:
            allowed = await self.table.before_call(call, asker)
        except CallRefused as error:
            self._record(error, call)
            raise
        if allowed.arguments is call.arguments:
            return call, members
        opened["arguments"] = msgspec.Raw(allowed.arguments)
        return allowed, encode(opened)[1:-1]

    async def after(self, call: ToolCall, body: bytes, asker: Asker) -> bytes:
        """Return the result of a call as plugins have it passed on. Raises `CallRefused`."""
        try:
            return await self.table.after_call(call, body, asker)
        except CallRefused as error:
            self._record(error, call)
            raise

    async def after_error(self, call: ToolCall, error: RemoteError) -> RemoteError:
        """Return what a server answered in the place of a result: plugins see its text as a failed result, and its data
        is left out, and ask nobody about it. Raises `CallRefused`.
        """
        said = error.error
        if not self.table.on_results or said.code == URL_ELICITATION_REQUIRED:
            return error
        result = encode({"content": [{"type": "text", "text": said.message}], "isError": True})
        shown = await self.after(call, result, Nobody())
        text = said.message if shown is result else _text_of(shown)
        return RemoteError(ErrorObject(said.code, text, msgspec.Raw(b"")), error.server)

    def _call(self, client: Client, server: str, tool: str, arguments: bytes) -> ToolCall:
        user, role, teams = self._who(client.principal)
        known = self._traits(client.principal, server, tool)
        return ToolCall(
            user=user,
            role=role,
            teams=teams,
            client=client.name,
            server=server,
            tool=tool,
            arguments=arguments,
            category=known.category,
            safety=known.safety,
        )

    def _who(self, principal: Principal) -> tuple[str, str, frozenset[str]]:
        """Return user, role and teams of whoever makes a call."""
        origin, user = ORIGIN.get(), user_of(principal)
        person = origin.requester.person if origin is not None and origin.requester is not None else None
        role: str = "admin" if principal == LOCAL else "member"
        if person is not None and person.principal == principal:
            role = person.role
        people = self._deployment.value.settings.identity
        return user, role, people.teams_of(user, team_of(principal)) if user else frozenset()

    def _record(self, error: CallRefused, call: ToolCall) -> None:
        detail = f"by plugin {(error.details or {}).get('plugin', '')}"
        self._audit.tally("tool.refuse", call.path, outcome="refused", detail=detail)


def _open(members: bytes) -> dict[str, msgspec.Raw]:
    try:
        return json.read(json.MEMBERS, b"{%b}" % members)
    except json.UnreadableJson:
        raise InvalidArguments("the params of the call cannot be read") from None


def _text_of(result: bytes) -> str:
    """Return the text of a result."""
    blocks = json.read_or(json.OBJECTS, json.members(result).get("content", b"[]"), [])
    return "\n".join(json.text_at(block.get("text")) for block in blocks)
