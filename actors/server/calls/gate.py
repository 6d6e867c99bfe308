"""Whether a call of a tool may be sent now: only to a tool that is approved, as its server defines it now.

Where trust is `strict`, a call must not reach a definition that nobody approved. What a client has seen was approved,
but the server may define it otherwise by now. A call that names the `definition` it is for must reach no other one,
whatever the trust. What the daemon knows at the moment of sending, and does:

1. *The process.* Its lists are read anew in each incarnation. Before that is done, calls wait.
2. *Its lists.* It has told of a change, or may have while nobody could hear it, or they are being read: calls wait from
   the message on that tells of it until the reading after it is done, of which at most one is under way. A server
   that changes its tools as it lists them does so behind what was sent before, and ahead of what is sent later.
3. *The tool.* It was in that reading, and its definition is among the pins, or is the one that the call names; else the
   call fails, and says why.

All of that is of the actor that sends, and is looked at in the turn of the loop in which it sends; the messages of a
server are read before that. So it does not matter how far the registry is, or which catalogue the call came from.
What nobody can know is what a server does without telling: a call that is under way when it changes, or before it says
so, reaches what it is by then. The next reading shows it.

Requests for resources, prompts and completions do not wait: they call no tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from actors.catalogue.marks import digest
from actors.catalogue.trust import PinKeeper, redefined_error, unlisted_error
from actors.errors import ToolHeld
from actors.messages import CallServer
from actors.server.calls.queue import Call
from actors.server.lists import Lists

CALL: Final = "tools/call"
READ_AGAIN: Final = "; its tools are being read again, as they may have changed"


class ApprovalGate:
    """The gate of one server: `keeper` knows the pins, `lists` what the server lists now."""

    def __init__(self, server: str, keeper: PinKeeper, lists: Lists) -> None:
        self._server = server
        self._keeper = keeper
        self._lists = lists

    @property
    def guards(self) -> bool:
        return self._keeper.holds(self._server)

    def is_shut_for(self, message: CallServer) -> bool:
        """Say whether a call has to wait until the lists are read."""
        return not self._lists.current and _is_looked_at(message, self.guards)

    def let_through(self, calls: Iterable[Call]) -> Iterable[Call]:
        """Return those of some calls that need not wait."""
        return calls if self._lists.current else _others(calls, self.guards)

    def refusal(self, call: Call) -> ToolHeld | None:
        """Return why a call that is about to be sent must not be; None if it may."""
        message = call.message
        if not _is_looked_at(message, self.guards):
            return None
        tool = self._lists.read_tool(message.name)
        if tool is None:
            return unlisted_error(self._server, message.name)
        if message.definition and message.definition != digest(tool):
            return redefined_error(self._server, message.name)
        return self._keeper.refusal(self._server, tool)


def _is_looked_at(message: CallServer, guards: bool) -> bool:
    return message.method == CALL and (guards or bool(message.definition))


def _others(calls: Iterable[Call], guards: bool) -> Iterator[Call]:
    return (call for call in calls if not _is_looked_at(call.message, guards))
