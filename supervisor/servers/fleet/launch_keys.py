"""What launches are called in a fleet: by the name of the server, and by what it is started with.

So where nodes have read different configurations, each owns and runs what its own one says, and takes nothing over that
it would start another way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from actors.kit import Latest
from supervisor.servers.deployment import Deployment

_DIGITS: Final = 16
_MARK: Final = "#"


class LaunchKeys:
    """The keys of the launches that all share, by the newest deployment."""

    def __init__(self, deployment: Latest[Deployment]) -> None:
        self._deployment = deployment
        self._digested: tuple[Mapping[str, str], str] = {}, ""

    def has(self, launch: str) -> bool:
        """Say whether a launch can run, and all share it."""
        return launch in self._deployment.value.servers

    def key(self, launch: str) -> str:
        """Return what a launch is called in the fleet; of one that there is not, what nobody owns."""
        return f"{launch}{_MARK}{self._deployment.value.digests.get(launch, '')[:_DIGITS]}"

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
