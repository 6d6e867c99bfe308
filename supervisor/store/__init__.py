"""The daemon's memory across restarts: catalogue, era verdicts, ended sessions, usage; SQLite behind a writer."""

from supervisor.store.records import (
    ALL_UNTIL,
    ERA_TTL_S,
    ReplacedDefinition,
    SavedGrant,
    SavedValue,
    StoreStatus,
    ToolUsage,
)
from supervisor.store.tables import Rows, Store, open_store

__all__ = [
    "ALL_UNTIL",
    "ERA_TTL_S",
    "ReplacedDefinition",
    "Rows",
    "SavedGrant",
    "SavedValue",
    "Store",
    "StoreStatus",
    "ToolUsage",
    "open_store",
]
