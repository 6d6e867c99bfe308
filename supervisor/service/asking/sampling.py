"""Asks the models of clients by which sentences people ask for tools, while a search of theirs waits for its answer.

- Only an admin's clients are asked, or whoever comes where nobody has to show who they are: what they say counts for
  everybody. Of a token of an identity provider it has to be one that may call tools.
- Only of the legacy era, on the way of a call that has not ended: a client may be asked about a call of its own alone
  (SEP-2260). A modern client that refuses cannot say so, and gives its call up (MCP 2026-07-28, basic/patterns/mrtr
  "Client Requirements"), so a search would fail for a question that is none of its own.
- A search waits `MAX_WAIT_S` at the most, and not beyond the end of the daemon. It never fails for this.
- A client rests for `PAUSE_S` after each answer. If that was of no use, it rests twice as long each time.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

import trio

from actors.catalogue.snapshot import Catalogue
from actors.errors import CannotAsk
from actors.messages import Question
from actors.principal import ClientKey
from actors.protocol.agreement.capabilities import SAMPLE
from actors.protocol.asking.questions import sample_params, sampled_text
from actors.protocol.wire.json import NO_RAW
from actors.protocol.wire.jsonrpc import RemoteError
from supervisor.identity.requester import EXECUTE, ORIGIN
from supervisor.phrases.asking import MAX_ANSWER_BYTES, Message, NoAnswer
from supervisor.phrases.describing import Describing
from supervisor.service.asking.exchange import Exchange

log = logging.getLogger(__name__)

MAX_WAIT_S: Final = 20.0
PAUSE_S: Final = 60.0
LONGEST_PAUSE_S: Final = 3600.0
MAX_RESTING: Final = 1000
"""So many clients are known that rest; the oldest are forgotten."""
_SAMPLE: Final = Question(SAMPLE, NO_RAW)


class Sampling:
    """Has `describing` ask clients, each for `timeout_s` at the most, until `closing`; `run` has to run somewhere."""

    def __init__(self, describing: Describing, timeout_s: float, closing: trio.Event) -> None:
        self._describing = describing
        self._timeout_s = min(timeout_s, MAX_WAIT_S)
        self._closing = closing
        self._waiting = trio.CancelScope()
        self._resting: dict[ClientKey, tuple[int, float]] = {}

    async def run(self) -> None:
        """When the daemon is to end, have the search that waits for a client answered."""
        await self._closing.wait()
        self._waiting.cancel()

    async def describe(self, exchange: Exchange, seen: Catalogue) -> None:
        """Ask the client of a request for sentences, of tools that it sees, if it may be asked now. Raises nothing."""
        failures, until = self._resting.get(exchange.client.program, (0, 0.0))
        is_late = self._closing.is_set() or trio.current_time() < until
        if is_late or exchange.client.era == "modern" or exchange.lacks(_SAMPLE) or not _counts():
            return
        model, failed = _ClientModel(self, exchange), True
        try:
            await self._describing.ask_by(model, seen.entries)
            failed = False
        except NoAnswer as error:
            log.debug("a client was asked for sentences, and %s", error)
        except Exception:  # the border: a bug here must cost no search its answer
            log.exception("a bug while asking a client for sentences")
        finally:
            if model.was_asked:
                self._rest(exchange.client.program, failures + 1 if failed else 0)

    async def ask(self, exchange: Exchange, messages: Sequence[Message]) -> bytes:
        """Return what the model of a client says. Raises `NoAnswer`."""
        system, user = (message["content"] for message in messages)
        reply = exchange.ask(Question(SAMPLE, sample_params(system, user)))
        with trio.move_on_after(self._timeout_s) as self._waiting:
            try:
                answer = await reply.wait()
            except CannotAsk as error:
                raise NoAnswer(f"it cannot be asked: {error.message}") from None
            except RemoteError:
                raise NoAnswer("it refuses to answer") from None
            return sampled_text(answer).encode(errors="replace") if len(answer) <= MAX_ANSWER_BYTES else b""
        raise NoAnswer(f"it gave no answer within {self._timeout_s:g} s")

    def _rest(self, client: ClientKey, failures: int) -> None:
        self._resting.pop(client, None)
        if len(self._resting) >= MAX_RESTING:
            del self._resting[next(iter(self._resting))]
        pause = min(PAUSE_S * 2.0 ** min(failures, 20), LONGEST_PAUSE_S)
        self._resting[client] = failures, trio.current_time() + pause


class _ClientModel:
    """The model of the client of one request; a `Model`."""

    def __init__(self, sampling: Sampling, exchange: Exchange) -> None:
        self._sampling = sampling
        self._exchange = exchange
        self.was_asked = False

    async def ask(self, messages: Sequence[Message]) -> bytes:
        self.was_asked = True
        return await self._sampling.ask(self._exchange, messages)

    async def close(self) -> None:
        """Do nothing: it is the client's."""
        await trio.lowlevel.checkpoint()


def _counts() -> bool:
    """Say whether what the client of this task says may count for everybody."""
    origin = ORIGIN.get()
    requester = origin.requester if origin is not None else None
    return requester is not None and requester.person.may("admin") and requester.allows(EXECUTE)
