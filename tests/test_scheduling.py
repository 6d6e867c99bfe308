"""Files are spread over processes so that each test runs once, though no process knows all."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from xdist.workermanage import WorkerController

from tests.scheduling import SplitScheduling, is_for_another, is_split

ROOT = Path(__file__).parents[1]
OWN = "tests/actors/kit/test_{}.py"
SHARED = "tests/e2e/test_{}.py"


class Worker:
    """A process that runs at once what it is given."""

    def __init__(self, collection: list[str]) -> None:
        self.collection = collection
        self.asked: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indexes: list[int]) -> None:
        self.asked += indexes

    def shutdown(self) -> None:
        self.shutting_down = True


def test_each_file_is_for_one_process_or_for_all() -> None:
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if "__pycache__" not in path.parts]
    for count in (1, 3):
        workers = [{"workerid": f"gw{number}", "workercount": count} for number in range(count)]
        configs = [SimpleNamespace(workerinput=worker, rootpath=ROOT) for worker in workers]
        for path in files:
            takers = sum(not is_for_another(path, cast("pytest.Config", config)) for config in configs)
            assert takers == (1 if is_split(path, ROOT) else count), path
    assert sum(is_split(path, ROOT) for path in files) > len(files) / 2
    alone = SimpleNamespace(rootpath=ROOT)
    assert not any(is_for_another(path, cast("pytest.Config", alone)) for path in files)


def scheduling(*collections: list[str]) -> tuple[SplitScheduling, list[Worker]]:
    made = SplitScheduling.__new__(SplitScheduling)
    made.__dict__ |= {
        "collection": None,
        "assigned_work": {},
        "registered_collections": {},
        "numnodes": len(collections),
    }
    made.__dict__ |= {"workqueue": {}, "log": lambda *_: None}
    session = SimpleNamespace(testscollected=0)
    made.__dict__["config"] = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin={"session": session}.get))
    workers = [Worker(collection) for collection in collections]
    for worker in workers:
        made.add_node(cast("WorkerController", worker))
        made.add_node_collection(cast("WorkerController", worker), worker.collection)
    return made, workers


def named(file: str, count: int) -> list[str]:
    return [f"{file}::test_{number}" for number in range(count)]


def test_every_test_runs_once_where_its_file_is() -> None:
    shared = [test for number in range(4) for test in named(SHARED.format(number), 3)]
    made, workers = scheduling(*([*named(OWN.format(number), 1 + number), *shared] for number in range(3)))
    made.schedule()
    assert [worker.asked[0] for worker in workers] == [0, 0, 0], "each begins with its own"
    ran: list[str] = []
    while busy := [worker for worker in workers if worker.asked]:
        for worker in busy:
            index = worker.asked.pop(0)
            ran.append(worker.collection[index])
            made.mark_test_complete(cast("WorkerController", worker), index)
    assert sorted(ran) == sorted({test for worker in workers for test in worker.collection})
    assert made.tests_finished
    assert not made.has_pending
    assert all(worker.shutting_down for worker in workers)


def test_what_a_crashed_process_alone_had_is_not_waited_for() -> None:
    made, (first, second) = scheduling(*(named(OWN.format(number), 2) for number in range(2)))
    made.schedule()
    assert made.remove_node(cast("WorkerController", first)) == first.collection[0]
    for index in range(2):
        made.mark_test_complete(cast("WorkerController", second), index)
    assert made.tests_finished


def test_processes_that_find_different_tests_are_refused() -> None:
    both: Any = (named(SHARED.format(0), count) for count in (1, 2))
    made, _ = scheduling(*both)
    with pytest.raises(pytest.UsageError, match=r"test_0\.py: two processes"):
        made.schedule()
