"""Opens what knows sentences, if the configuration wants any: the rest of this folder is imported only then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from actors.kit import Conditions
from actors.registry.actor import Registry
from actors.transport.stdio.containment import Containment
from supervisor.config import Settings
from supervisor.host.workbench import beside
from supervisor.store import Store

if TYPE_CHECKING:
    from supervisor.phrases.describing import Describing
    from supervisor.phrases.sources import Sources


async def open_sources(settings: Settings, store: Store) -> Sources | None:
    """Return what knows sentences by which people ask for tools; None where none are wanted."""
    if not (settings.phrases or settings.phrases_file or settings.describe.is_on):
        return None
    from supervisor.phrases.sources import read_sources

    sources = await beside(partial(read_sources, settings))
    if settings.describe.is_on and store.ready.is_set() and (saved := await store.phrases.read()) is not None:
        await beside(partial(sources.recall, saved))
    return sources


def make_describing(
    settings: Settings,
    sources: Sources | None,
    store: Store,
    registry: Registry,
    *,
    environ: Mapping[str, str],
    containment: Containment,
    hide_for: Callable[[str], Callable[[str], str]],
    clock: Callable[[], float],
    conditions: Conditions,
) -> Describing | None:
    """Return what has models asked for sentences; None where the configuration wants none asked.

    `environ` and `containment` are for a program; for the rest see `Describing`.
    """
    if sources is None or not settings.describe.is_on:
        return None
    from supervisor.phrases.describing import Describing
    from supervisor.phrases.models import model_of

    return Describing(
        settings.describe,
        model_of(settings.describe, environ, containment) if settings.describe.has_model else None,
        sources,
        store.phrases,
        registry.catalogue,
        registry.address.tell,
        hide_for=hide_for,
        clock=clock,
        conditions=conditions,
    )
