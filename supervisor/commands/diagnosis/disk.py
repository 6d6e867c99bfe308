"""What is seen of the data directory, its disk and its database. Nothing is changed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from actors.errors import ConfigError
from actors.kit.paths import absolute
from supervisor.commands.diagnosis.facts import DataFacts
from supervisor.config import Settings
from supervisor.host.datadir import DATABASE, problems_of
from supervisor.host.places import default_data_dir
from supervisor.store.file import damaged_copies


def data_facts(settings: Settings, environ: Mapping[str, str]) -> DataFacts:
    try:
        root = Path(absolute(settings.data_dir or str(default_data_dir(environ))))
    except ConfigError as error:
        return DataFacts(troubles=((error.message, error.hint),))
    troubles = tuple((f"{problem.path}: {problem.message}", problem.hint) for problem in problems_of(root))
    facts = DataFacts(path=str(root), troubles=troubles)
    if troubles:
        return facts
    mode = _mode(root)
    there = root if mode is not None else next((above for above in root.parents if _mode(above) is not None), root)
    schema, damage = _database(root / DATABASE)
    return DataFacts(
        path=str(root),
        mode=mode,
        writable=os.access(there, os.W_OK | os.X_OK),
        free_bytes=shutil.disk_usage(there).free,
        schema=schema,
        damage=damage,
        copies=tuple(copy.name for copy in damaged_copies(root / DATABASE)),
    )


def _mode(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None


def _database(path: Path) -> tuple[int, str]:
    """Return its schema, 0 if there is none, and what is wrong with it. Writes nothing, not even a log beside it."""
    if _mode(path) is None:
        return 0, ""
    # Whoever has it open keeps a log beside it, and reads with it; without one nobody writes.
    way = "mode=ro" if _mode(path.with_name(f"{path.name}-wal")) is not None else "immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?{way}", uri=True, timeout=1.0)) as connection:
            answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            schema: int = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error as error:
        return 0, str(error)
    return schema, "" if answer == "ok" else str(answer)


def newest_of(files: list[Path]) -> tuple[float, str]:
    """Return the last change of the file that was changed last."""
    changes = [(0.0, "")]
    for file in files:
        try:
            changes.append((file.stat().st_mtime, str(file)))
        except OSError:
            continue
    return max(changes)
