"""Which launch a server's name means to somebody, whose login that has, and whose secrets are hidden in a text.

It is looked up for each request, by who makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from actors.kit import Latest
from actors.launch import server_of
from actors.principal import LOCAL, ClientKey, Principal
from actors.transport.redaction import Mask
from supervisor.identity.people import OwnLaunch
from supervisor.metatools.servers import missing_values_error
from supervisor.servers.deployment import DeployedServer, Deployment


class LaunchNames:
    """Which launch a server's name means to somebody. `mask_of` gives what hides the secrets of a launch.

    `leave` is told of clients whose session is over, by `Caller.identity`: what launches have for them alone ends.
    """

    def __init__(
        self, mask_of: Callable[[str], Callable[[str], str]], leave: Callable[[ClientKey], None] = lambda client: None
    ) -> None:
        self._mask_of = mask_of
        self.leave = leave
        self._own: dict[Principal, Mapping[str, OwnLaunch]] = {}

    def set(self, principal: Principal, launches: Iterable[OwnLaunch]) -> None:
        """Say which servers are started for somebody otherwise than for all, and how."""
        self._own[principal] = {launch.server: launch for launch in launches}

    def forget(self, principal: Principal) -> None:
        self._own.pop(principal, None)

    def of(self, server: str, principal: Principal) -> str:
        """Return the launch. Raises `ValuesMissing` where it cannot be started."""
        if principal not in self._own or (launch := self._own[principal].get(server)) is None:
            return server
        if not launch.name:
            raise missing_values_error(server, launch.missing, launch.why)
        return launch.name

    def mask(self, server: str, principal: Principal) -> Callable[[str], str]:
        """Return what hides the secrets of a server in texts for somebody."""
        launch = self._find(server, principal)
        return self._mask_of(server if launch is None else launch.name)

    def hide_own(self, principal: Principal, text: str) -> str:
        """Return a text without the secrets of all launches that somebody does not share with all."""
        for launch in self._own.get(principal, {}).values():
            text = self._mask_of(launch.name)(text) if launch.name else text
        return text

    def _find(self, server: str, principal: Principal) -> OwnLaunch | None:
        own = self._own.get(principal)
        return own.get(server) if own is not None else None


# Whose login a server uses.

AccountName = tuple[Principal, str]
"""Whose login it is, and at which server. That may be a launch, where launches have logins of their own."""


def account_of(server: DeployedServer) -> AccountName:
    """Return which login a server uses. That of a user outlives a change of values, but for those in its address."""
    owner, moves = server.login_of, any(text.place == ("url",) for text in server.config.tiered)
    return owner, server.name if moves or owner == LOCAL else server_of(server.name)


# Hides all configured secrets that somebody may know of: those of all servers, and of their own launches.


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
