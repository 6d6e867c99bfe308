"""What only the registry is told."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from actors.catalogue.names import ServerNames
from actors.catalogue.offer import Offer
from actors.kit import Ask


class NamesChanged(msgspec.Struct, frozen=True, kw_only=True):
    """Other servers are configured than before; `names` are those of all of them, also of those that cannot run."""

    names: ServerNames


class RulesChanged(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration shows other tools of a server, shows them otherwise, or trusts or describes it otherwise."""

    server: str


class PhrasesChanged(msgspec.Struct, frozen=True, kw_only=True):
    """There are other sentences by which people ask for tools of these servers."""

    servers: frozenset[str]


class LaunchesRecalled(Ask[None], frozen=True):
    """What launches offer, as is known from earlier, with the kind of their transport; answered once it can be seen."""

    offers: Mapping[str, tuple[str, Offer]]


class AwaitShown(Ask[None], frozen=True, kw_only=True):
    """Answered when all that the registry was told of a server before this can be searched and called."""

    server: str
