"""Loads what a daemon loads as it starts and as it goes on, once for all that are forked."""

from __future__ import annotations

from importlib import import_module

from supervisor.config import Settings
from supervisor.config.values import keys_of
from supervisor.host import loading

for module in (*loading.LATE, *loading.FOR_REMOTE):
    import_module(module)
keys_of(Settings)
