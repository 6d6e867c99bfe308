"""How many instances a launch has. Pure."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from actors.transport.redaction import Confidential

PER_CLIENT: Final = "per_client"
MAX_INSTANCES: Final = 64


class InstanceSettings(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """What the entry of a server says of its instances; see `docs/reference/servers.md`.

    `replicas` are the further addresses of a remote server.
    """

    instances: int | Literal["per_client"] = 1
    max_instances: int = 16
    replicas: tuple[str, ...] = ()

    @property
    def per_client(self) -> bool:
        return self.instances == PER_CLIENT

    @property
    def several(self) -> bool:
        """Whether there can be more than one."""
        return self.per_client or len(self.addresses) > 1

    @property
    def addresses(self) -> tuple[str, ...]:
        """One for each instance there always is: empty for the first one, and for all that are processes."""
        count = 1 if isinstance(self.instances, str) else self.instances
        return (*("",) * count, *self.replicas)
