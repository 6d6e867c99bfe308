"""Who is asked for sentences, as the configuration says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from actors.transport.stdio.containment import Containment
from supervisor.config.sections import DescribeSettings
from supervisor.host.loading import preload
from supervisor.host.workbench import beside
from supervisor.phrases.asking import Message, Model
from supervisor.phrases.program import Program


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
