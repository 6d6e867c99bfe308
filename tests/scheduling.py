"""Spreads files over the processes of pytest-xdist, which need not all import all of them.

Each process of its own would import 800 files, to run a third of them. Those of `SPLIT`, which are quick and many, are
shared out before: each is imported by one process alone. The others go to whoever is idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SPLIT = ("tests/actors/", "tests/supervisor/")
"""Folders whose subfolders are shared out."""


def is_split(path: Path, root: Path) -> bool:
    """Say whether a file is shared out."""
    file = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
    return path.name.startswith("test_") and any(
        file.startswith(folder) and "/" in file.removeprefix(folder) for folder in SPLIT
    )


def is_for_another(path: Path, config: pytest.Config) -> bool:
    """Say whether this process leaves a file to another one."""
    of_worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if of_worker is None or not is_split(path, config.rootpath):
        return False
    count: int = of_worker["workercount"]
    number = int(of_worker["workerid"].removeprefix("gw"))
    return crc32(path.relative_to(config.rootpath).as_posix().encode()) % count != number % count


class SplitScheduling(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Gives each process its files in its order: those that it alone has, and those of all that nobody has begun."""

    collection: list[str] | None
    _indexes: dict[WorkerController, dict[str, int]]
    _files: dict[WorkerController, list[str]]
    """Those of each process, in its order."""

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        self.registered_collections[node] = [*collection]

    def schedule(self) -> None:
        if self.collection is None:
            self._indexes, self._files = {}, {}
            for collection in self.registered_collections.values():
                for file, tests in groupby(collection, self._split_scope):
                    unit = dict.fromkeys(tests, False)
                    if self.workqueue.setdefault(file, unit) != unit:
                        raise pytest.UsageError(f"{file}: two processes find different tests in it")
            self.collection = [test for unit in self.workqueue.values() for test in unit]
            self.config.pluginmanager.get_plugin("session").testscollected = len(self.collection)  # for the progress
        for node in self.nodes * 2:  # two files each: there is one to go on with while the next is asked for
            self._reschedule(node)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        test = self.registered_collections[node][item_index]
        file = self._split_scope(test)
        unit = self.assigned_work[node][file]
        unit[test] = True
        if all(unit.values()):  # what is done need not be counted with each test
            del self.assigned_work[node][file]
        self._reschedule(node)

    def remove_node(self, node: WorkerController) -> str | None:
        crashed: str | None = super().remove_node(node)
        others = [each for other in self.nodes for each in self.registered_collections.get(other, ())]
        files = {self._split_scope(each) for each in others}
        for file in [file for file in self.workqueue if file not in files]:
            del self.workqueue[file]  # nobody else has it, and the run has failed
        return crashed

    def _assign_work_unit(self, node: WorkerController) -> None:
        if node not in self._indexes:
            collection = self.registered_collections[node]
            self._indexes[node] = {test: index for index, test in enumerate(collection)}
            self._files[node] = list(dict.fromkeys(map(self._split_scope, collection)))
        indexes = self._indexes[node]
        file = next((file for file in self._files[node] if file in self.workqueue), None)
        if file is None:
            node.shutdown()
            return
        unit = self.workqueue.pop(file)
        self.assigned_work[node][file] = unit
        node.send_runtest_some([indexes[test] for test, done in unit.items() if not done])
