"""Calls of modern clients that wait for input: parked between two requests, until the client makes its request again.

A modern client gets no requests; what a legacy server asks during its call becomes an `input_required` result,
answered by a second request (MCP 2026-07-28, basic/patterns/mrtr). The call itself goes on, at the one process that
knows of it.

Rules:
- A call is parked before its result is written, and is never run again: a retry goes on with it, or fails.
- `requestState` is ours alone: a random name under the daemon's seal, used up by the retry that answers. What it is
  bound to (principal, request, server) is kept here, so that a retry that differs is told why, and costs the call
  nothing.
- Exactly one retry goes on with a call; every other one is told what became of it, as far as that is known.
- A call that nobody comes back for is given up after its time, and its server is told so. Nothing outlives the daemon.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import secrets
from collections.abc import Hashable
from typing import Final

import msgspec
import trio

from actors.errors import CannotAsk, MalformedRequest
from actors.kit import Quota, Reply
from actors.messages import Result
from actors.principal import Principal
from actors.protocol.asking.input_required import InputRequired, incomplete_result
from supervisor.metatools.arguments.execution import PREFIX
from supervisor.service.asking.rounds import AskedByResult, InputNeeded, Rounds

MAX_PARKED: Final = 1024
"""Of all clients, which share it; see `actors.kit.fairness.quota`."""
SWEPT: Final = 16
"""Calls that are given up at a time, each with up to 32 questions: all at once would hold up everybody."""
GRACE_S: Final = 2.0
"""A question has its own time, after which the server is answered; its call has this time more."""
_LABEL: Final = b"mcp-request-state"
_NAME_BYTES: Final = 16
_MAC_BYTES: Final = 16
_MAX_CHARS: Final = 160


class Parked(msgspec.Struct, frozen=True, eq=False):
    """A call that waits. `digest` is that of its request, `expires` a moment of the trio clock.

    `reply` is None where nothing is under way: the request is made anew when its client has done what it was asked to,
    with its answers if they are those that a modern server `required`. `unconfirmed`: the user has to say yes first.
    """

    principal: Principal
    digest: bytes
    expires: float
    reply: Reply[Result] | None
    rounds: Rounds
    required: InputRequired | None = None
    unconfirmed: bool = False


class Parking:
    """All parked calls. `key` is the daemon's; `run` has to run somewhere."""

    def __init__(self, key: bytes) -> None:
        self._key = hmac.digest(key, _LABEL, hashlib.sha256)
        self._boot = secrets.token_bytes(8)
        self._parked: dict[bytes, Parked] = {}
        self._programs: dict[bytes, Hashable] = {}
        self._quota = Quota(MAX_PARKED)
        self._closed = False
        self._bell = trio.lowlevel.ParkingLot()

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, parked: Parked) -> str:
        """Keep a call and return the state that its client has to send back. Raises `CannotAsk` if it cannot wait."""
        if self._closed:
            raise CannotAsk("the daemon is ending: nobody can come back with an answer")
        program = parked.rounds.program
        if not self._quota.has_room(program):
            raise CannotAsk(f"{self._quota.amount_of(program)} calls of this client wait for input already")
        name = secrets.token_bytes(_NAME_BYTES)
        self._parked[name], self._programs[name] = parked, program
        self._quota.add(program)
        self._bell.unpark()
        return PREFIX + _text(self._boot + name + self._mac(self._boot + name))

    def park_and_ask(self, parked: Parked, server: str, *, by_result: bool) -> AskedByResult | InputNeeded:
        """Park a call whose client is to make its request again, and return what asks it. Raises as `park` does."""
        rounds = parked.rounds
        if by_result:
            left_s = parked.expires - GRACE_S - trio.current_time()
            return AskedByResult(server, rounds.questions, self.park(parked), left_s)
        return InputNeeded(incomplete_result(rounds.requests, self.park(parked)))

    def is_ours(self, state: str) -> bool:
        """Say whether a state was made by this daemon, in this run or an earlier one."""
        return self._name_of(state) is not None

    def find(self, state: str, principal: Principal, digest: bytes) -> tuple[bytes, Parked]:
        """Return the call that a retry is about, under its name; it stays parked. Raises `MalformedRequest`."""
        opened = self._name_of(state)
        if opened is None:
            raise MalformedRequest("requestState: not one that was given here")
        boot, name = opened
        if boot != self._boot:
            text = "the daemon was started again since: the call is lost, and whether it was carried out is not known"
            raise MalformedRequest(f"requestState: {text}; look before you make it again", outcome="unknown")
        parked = self._parked.get(name)
        if parked is None or parked.principal != principal or parked.expires <= trio.current_time():
            raise MalformedRequest("requestState: used already, or its time is over; make the request anew")
        if parked.digest != digest:
            raise MalformedRequest("requestState: of another request; only the answers may differ in one made again")
        return name, parked

    def take(self, name: bytes) -> None:
        """Take a call out: somebody goes on with it."""
        if self._parked.pop(name, None) is not None:
            self._quota.remove(self._programs.pop(name))

    async def run(self, closing: trio.Event) -> None:
        """Give up the calls whose time is over, and all when `closing` is set: nobody can come back from then on."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch)
            await closing.wait()
            nursery.cancel_scope.cancel()
        self._closed = True
        self._give_up(math.inf)

    async def _watch(self) -> None:
        while True:
            while not self._parked:
                await self._bell.park()
            with trio.move_on_at(min(parked.expires for parked in self._parked.values())):
                await self._bell.park()  # what is parked later may be due sooner
            while self._give_up(trio.current_time(), SWEPT):
                await trio.lowlevel.checkpoint()

    def _give_up(self, now: float, most: int = MAX_PARKED) -> int:
        over = [each for each in self._parked.items() if each[1].expires <= now][:most]
        for name, parked in over:
            self.take(name)
            parked.rounds.close()
            if parked.reply is not None:
                parked.reply.abandon()
        return len(over)

    def _name_of(self, state: str) -> tuple[bytes, bytes] | None:
        if not state.startswith(PREFIX) or len(state) > _MAX_CHARS:
            return None
        try:
            sealed = base64.b64decode(state[len(PREFIX) :], altchars=b"-_", validate=True)
        except ValueError:
            return None
        body, mac = sealed[:-_MAC_BYTES], sealed[-_MAC_BYTES:]
        if len(body) != len(self._boot) + _NAME_BYTES or not hmac.compare_digest(mac, self._mac(body)):
            return None
        return body[: len(self._boot)], body[len(self._boot) :]

    def _mac(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, hashlib.sha256)[:_MAC_BYTES]


def digest_of(server: str, method: str, members: bytes) -> bytes:
    """Return what makes a request the same one when it is made again."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (server.encode(), method.encode(), members):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()
