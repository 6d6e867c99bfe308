"""Which launch a server's name means to somebody: looked up for each request, by who makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from actors.kit import Latest
from actors.principal import Principal
from actors.transport.mask import Mask
from supervisor.metatools.servers.availability import missing_values_error
from supervisor.servers.deployment import DeployedLaunch, Deployment

_NO_MASK: Final = Mask({})


class LaunchNames:
    """Which launch a server's name means to somebody."""

    def __init__(self, deployment: Latest[Deployment]) -> None:
        self._deployment = deployment
        self._own: dict[Principal, Mapping[str, DeployedLaunch]] = {}

    def set(self, principal: Principal, launches: Mapping[str, DeployedLaunch] | None) -> None:
        """Say which servers take values, and how each is started for somebody; None: that one is gone."""
        self._own.pop(principal, None)
        if launches is not None:
            self._own[principal] = launches

    def of(self, server: str, principal: Principal) -> str:
        """Return the launch. Raises `ValuesMissing` where it cannot be started."""
        launch = self._find(server, principal)
        if launch is None:
            return server
        if launch.deployed is None:
            raise missing_values_error(server, tuple(launch.effective.missing), launch.why)
        return launch.name

    def mask(self, server: str, principal: Principal) -> Callable[[str], str]:
        """Return what hides the secrets of a server in texts for somebody."""
        launch = self._find(server, principal)
        if launch is None:
            return self._deployment.value.mask(server)
        return launch.deployed.mask if launch.deployed is not None else _NO_MASK

    def _find(self, server: str, principal: Principal) -> DeployedLaunch | None:
        own = self._own.get(principal)
        return own.get(server) if own is not None else None


class LaunchFacts(Protocol):
    """What is to be known of launches, by name."""

    def people_of(self, launch: str) -> list[str]:
        """Return the users who have a launch."""

    def mask_of(self, launch: str) -> Callable[[str], str]:
        """Return what hides the secrets of a launch, also of one that all share."""


class NoLaunches:
    """Implements `LaunchFacts` where there are none."""

    def people_of(self, launch: str) -> list[str]:
        del launch
        return []

    def mask_of(self, launch: str) -> Callable[[str], str]:
        del launch
        return str


NO_LAUNCHES: Final = NoLaunches()
