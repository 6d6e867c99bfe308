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
from typing import Final

import msgspec
import trio

from actors.errors import CannotAsk, MalformedRequest, SupervisorError
from actors.kit import ClientQuota, Reply
from actors.messages import Result
from actors.principal import ClientKey, Principal
from actors.protocol.asking.input_required import InputRequired, Retry, incomplete_result
from supervisor.fleet.lives import LIFE_BYTES, DaemonLife
from supervisor.metatools.arguments.execution import PREFIX
from supervisor.service.asking.rounds import AskedByResult, InputNeeded, Rounds

MAX_PARKED: Final = 1024
"""Of all clients, which share it; see `actors.kit.fairness.quota`."""
SWEPT: Final = 16
"""Calls that are given up at a time, each with up to 32 questions: all at once would hold up everybody."""
GRACE_S: Final = 2.0
"""A question has its own time, after which the server is answered; its call has this time more."""
_NAME_BYTES: Final = 16
_MAC_BYTES: Final = 16
_MAX_CHARS: Final = 160


class SealedNames:
    """Names of one kind that clients are given: random, under the daemon's seal, and recognised in later runs, too.

    One with an owner means no more than a made-up one to whoever else shows it. `label` tells the kind from others,
    `key` is the daemon's.
    """

    def __init__(self, key: bytes, label: bytes, prefix: str = "", life: DaemonLife | None = None) -> None:
        self._life = life or DaemonLife()
        self._keys = [hmac.digest(each, label, hashlib.sha256) for each in (key, *self._life.older_keys)]
        self._prefix = prefix
        self._boot = self._life.own or secrets.token_bytes(LIFE_BYTES)

    def make(self, owner: str = "") -> str:
        body = self._boot + secrets.token_bytes(_NAME_BYTES)
        return self._prefix + base64.urlsafe_b64encode(body + _mac(self._keys[0], body, owner)).decode()

    def is_given(self, name: str, owner: str = "") -> bool:
        return self._boot_of(name, owner) is not None

    def is_of_this_run(self, name: str, owner: str = "") -> bool:
        return self._boot_of(name, owner) == self._boot

    def check_here(self, name: str, owner: str, error: SupervisorError) -> None:
        """Raise `HeldElsewhere` for a name that another node of the fleet has given."""
        self._life.check_here(self._boot_of(name, owner), error)

    def _boot_of(self, name: str, owner: str) -> bytes | None:
        if not name.startswith(self._prefix) or len(name) > _MAX_CHARS:
            return None
        try:
            sealed = base64.b64decode(name[len(self._prefix) :], altchars=b"-_", validate=True)
        except ValueError:
            return None
        body, mac = sealed[:-_MAC_BYTES], sealed[-_MAC_BYTES:]
        good = any(hmac.compare_digest(mac, _mac(key, body, owner)) for key in self._keys)
        return body[:LIFE_BYTES] if good and len(body) == LIFE_BYTES + _NAME_BYTES else None


def _mac(key: bytes, body: bytes, owner: str) -> bytes:
    return hmac.digest(key, body + owner.encode(), hashlib.sha256)[:_MAC_BYTES]


class Parked(msgspec.Struct, frozen=True, eq=False):
    """A call that waits. `digest` is that of its request, `expires` a moment of the trio clock.

    `reply` is None where nothing is under way: the request is made anew when its client has done what it was asked to,
    with its answers if they are those that a modern server `required`. `unconfirmed`: the user has to say yes first;
    `plugin`: one has asked something first.
    """

    principal: Principal
    digest: bytes
    expires: float
    reply: Reply[Result] | None
    rounds: Rounds
    required: InputRequired | None = None
    unconfirmed: bool = False
    plugin: str = ""

    def answers_in(self, retry: Retry, given: dict[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
        """Return the answers that count: what a client is asked itself no model answers that knows the state."""
        return {} if retry.ours and not self.rounds.by_result else given


class Parking:
    """All parked calls. `key` is the daemon's; `run` has to run somewhere."""

    def __init__(self, key: bytes, life: DaemonLife | None = None) -> None:
        self._states = SealedNames(key, b"mcp-request-state", PREFIX, life)
        self._parked: dict[str, Parked] = {}
        self._programs: dict[str, ClientKey] = {}
        self._quota = ClientQuota(MAX_PARKED)
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
        state = self._states.make()
        self._parked[state], self._programs[state] = parked, program
        self._quota.add(program)
        self._bell.unpark()
        return state

    def park_and_ask(self, parked: Parked, server: str, *, by_result: bool) -> AskedByResult | InputNeeded:
        """Park a call whose client is to make its request again, and return what asks it. Raises as `park` does."""
        rounds = parked.rounds
        if by_result:
            left_s = parked.expires - GRACE_S - trio.current_time()
            state, confirms = self.park(parked), parked.unconfirmed
            return AskedByResult(server, rounds.questions, state, left_s, parked.plugin, confirms=confirms)
        return InputNeeded(incomplete_result(rounds.requests, self.park(parked)))

    def is_given(self, state: str) -> bool:
        """Say whether a state was given to anybody, in this run or in an earlier one: then it goes to no server."""
        return self._states.is_given(state)

    def find(self, state: str, principal: Principal, digest: bytes) -> Parked:
        """Return the call that a retry is about; it stays parked. Raises `MalformedRequest` and `HeldElsewhere`."""
        if not self._states.is_given(state):
            raise MalformedRequest("requestState: not one that was given here")
        if not self._states.is_of_this_run(state):
            waits = "requestState: the call waits at another node of the fleet; make this request there"
            self._states.check_here(state, "", MalformedRequest(waits))
            text = "the daemon was started again since: the call is lost, and whether it was carried out is not known"
            raise MalformedRequest(f"requestState: {text}; look before you make it again", outcome="unknown")
        parked = self._parked.get(state)
        if parked is None or parked.principal != principal or parked.expires <= trio.current_time():
            raise MalformedRequest("requestState: used already, or its time is over; make the request anew")
        if parked.digest != digest:
            raise MalformedRequest("requestState: of another request; only the answers may differ in one made again")
        return parked

    def take(self, state: str) -> None:
        if self._parked.pop(state, None) is not None:
            self._quota.remove(self._programs.pop(state))

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
        for state, parked in over:
            self.take(state)
            parked.rounds.close()
            if parked.reply is not None:
                parked.reply.abandon()
        return len(over)


def digest_of(server: str, method: str, members: bytes) -> bytes:
    """Return what makes a request the same one when it is made again."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (server.encode(), method.encode(), members):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()
