"""Hides all configured secrets that somebody may know of: those of all servers, and of their own launches."""

from __future__ import annotations

from collections.abc import Callable

from actors.kit import Latest
from actors.principal import Principal
from actors.transport.redaction import Mask
from supervisor.servers.deployment import Deployment
from supervisor.servers.launches.names import LaunchNames


class ConfiguredSecrets:
    """`hide_for` gives what hides them in a text. The mask of all servers is made once for each deployment."""

    def __init__(self, deployment: Latest[Deployment], launches: LaunchNames) -> None:
        self._deployment = deployment
        self._launches = launches
        self._mask = Mask({})
        self._version: int | None = None

    def hide_for(self, principal: Principal) -> Callable[[str], str]:
        if self._version != self._deployment.version:
            self._version = self._deployment.version
            self._mask = Mask({}).join(*(server.mask for server in self._deployment.value.servers.values()))
        mask = self._mask
        return lambda text: self._launches.hide_own(principal, mask(text))
