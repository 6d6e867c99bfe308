"""What launches are called in a fleet: by the name of the server, and by what it is started with.

So where nodes have read different configurations, each owns and runs what its own one says, and takes nothing over that
it would start another way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Final

from actors.kit import Latest
from actors.launch import is_own
from supervisor.servers.deployment import DeployedServer, Deployment

_DIGITS: Final = 16
_MARK: Final = "#"


class LaunchKeys:
    """The keys of launches, by the newest deployment."""

    def __init__(self, deployment: Latest[Deployment]) -> None:
        self.knows: Callable[[str], bool] = lambda launch: False
        """Says of a launch that not all share whether somebody is known who has it."""
        self._deployment = deployment
        self._digested: tuple[Mapping[str, str], str] = {}, ""

    def has(self, launch: str) -> bool:
        """Say whether a launch can run: one that all share, or one of somebody who is known here."""
        return self.knows(launch) if is_own(launch) else launch in self._deployment.value.servers

    def key(self, launch: str) -> str:
        """Return what a launch is called in the fleet; of one that there is not, what nobody owns.

        The name of one that not all share says already what it is started with.
        """
        return self._key(launch, self._deployment.value.digests.get(launch, ""))

    def key_of(self, server: DeployedServer) -> str:
        """Return what a launch is called that is started in this way, which may be that of a former deployment."""
        return self._key(server.name, server.digest)

    @staticmethod
    def _key(launch: str, digest: str) -> str:
        return launch + _MARK + ("" if is_own(launch) else digest[:_DIGITS])

    def name(self, key: str) -> str:
        """Return which launch of this node has a key; empty if none has, or it is started another way here."""
        launch = self.launch(key)
        return launch if self.has(launch) and self.key(launch) == key else ""

    @staticmethod
    def launch(key: str) -> str:
        """Return which launch a key is of, however that is started."""
        return key.rpartition(_MARK)[0]

    def digest(self) -> str:
        """Return what all nodes have in common that start everything alike."""
        digests = self._deployment.value.digests
        if self._digested[0] is not digests:
            told = "\n".join(f"{name} {digests[name]}" for name in sorted(digests))
            self._digested = digests, hashlib.sha256(told.encode()).hexdigest()[:_DIGITS]
        return self._digested[1]
