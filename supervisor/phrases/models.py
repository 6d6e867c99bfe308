"""Who is asked for sentences, as the configuration says: a program of the operator's, or a service (`endpoint`).

The program gets `{"messages": [...]}` on its stdin, and its answer is on its stdout. It has the environment of the
daemon, and runs under what keeps servers together: nothing of it is left after its answer, its deadline, or the end of
the daemon. What it writes to stderr is read and dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec
import trio

from actors.errors import SpawnFailed
from actors.kit import is_want, reason_of
from actors.transport.stdio.command import Launch, prepare
from actors.transport.stdio.containment import Contained, Containment
from supervisor.config.sections import DescribeSettings
from supervisor.host.loading import preload
from supervisor.host.workbench import beside
from supervisor.phrases.asking import MAX_ANSWER_BYTES, Message, Model, NoAnswer

_END_S: Final = 2.0
_READ_BYTES: Final = 64 * 1024


class Program:
    """Runs a command for each question. `environ` is its environment."""

    def __init__(
        self, command: Sequence[str], timeout_s: float, environ: Mapping[str, str], containment: Containment
    ) -> None:
        self._launch = Launch(command=command[0], args=tuple(command[1:]), env=dict(environ))
        self._timeout_s = timeout_s
        self._environ = environ
        self._containment = containment

    async def ask(self, messages: Sequence[Message]) -> bytes:
        """Return what it writes. Raises `NoAnswer`."""
        try:
            with trio.fail_after(self._timeout_s):
                argv, env, cwd = await trio.to_thread.run_sync(prepare, self._launch, self._environ)
                contained = await self._containment.spawn(argv, env=env, cwd=cwd)
                return await _Question(contained).put(msgspec.json.encode({"messages": messages}))
        except trio.TooSlowError:
            raise NoAnswer(f"it gave no answer within {self._timeout_s:g} s, and was killed") from None
        except SpawnFailed as error:
            raise NoAnswer(error.message) from None
        except (OSError, RuntimeError) as error:
            if not is_want(error):
                raise
            raise NoAnswer(f"it could not be started: {reason_of(error)}") from None

    async def close(self) -> None:
        """Do nothing: none is left between two questions."""


class _Question:
    """One process that is asked, and is gone with everything that it started when it has answered."""

    def __init__(self, contained: Contained) -> None:
        self._contained = contained
        self._has_ended = False

    async def put(self, question: bytes) -> bytes:
        """Return its answer, nothing of one that is too large. Raises `NoAnswer`."""
        try:
            answer = await self._converse(question)
            if len(answer) > MAX_ANSWER_BYTES:
                return b""
            code, number = await self._contained.wait()
            self._has_ended = True
            if code != 0:
                raise NoAnswer(f"it ended with exit code {code}" if code is not None else f"signal {number} ended it")
            return bytes(answer)
        finally:
            with trio.CancelScope(shield=True):
                await self._end()

    async def _converse(self, question: bytes) -> bytearray:
        process, answer = self._contained.process, bytearray()
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_write, process.stdin, question)
            nursery.start_soon(_drop, process.stderr)
            while len(answer) <= MAX_ANSWER_BYTES and (piece := await process.stdout.receive_some(_READ_BYTES)):
                answer += piece
            nursery.cancel_scope.cancel()
        return answer

    async def _end(self) -> None:
        process = self._contained.process
        if not self._has_ended:
            self._contained.kill()
            with trio.move_on_after(_END_S):
                await self._contained.wait()
                self._has_ended = True
        if not self._has_ended:
            self._contained.destroy()
            with trio.move_on_after(_END_S):
                await process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                await stream.aclose()


async def _write(stream: trio.abc.SendStream, question: bytes) -> None:
    with suppress(trio.BrokenResourceError):  # it may answer without having read it
        await stream.send_all(question)
        await stream.aclose()


async def _drop(stream: trio.abc.ReceiveStream) -> None:
    while await stream.receive_some(_READ_BYTES):
        pass


class _LateEndpoint:
    """An endpoint whose libraries are imported in a thread, before the first question, for a fifth of a second."""

    def __init__(self, settings: DescribeSettings) -> None:
        self._settings = settings
        self._endpoint: Model | None = None

    async def ask(self, messages: Sequence[Message]) -> bytes:
        if self._endpoint is None:
            await beside(partial(preload, remote=True))
            from supervisor.phrases.endpoint import Endpoint

            self._endpoint = Endpoint(self._settings)
        return await self._endpoint.ask(messages)

    async def close(self) -> None:
        if self._endpoint is not None:
            await self._endpoint.close()


def model_of(settings: DescribeSettings, environ: Mapping[str, str], containment: Containment) -> Model:
    """Return the model of a configuration that names one. `environ` and `containment` are for a program."""
    if settings.command:
        return Program(settings.command, settings.timeout_s, environ, containment)
    return _LateEndpoint(settings)
