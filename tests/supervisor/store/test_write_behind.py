"""The queue of writes: bounded by keys, the newest wins, failures are counted once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from actors.principal import LOCAL
from supervisor.store.database import RECORD, Write
from supervisor.store.records import ToolUsage
from supervisor.store.write_behind import WriteQueue


def save(name: str, payload: bytes = b"x") -> Write:
    return Write(("server", name), (("INSERT OR REPLACE INTO servers VALUES (?, ?)", (name, payload)),))


def forget(name: str) -> Write:
    return Write(("server", name), (("DELETE FROM servers WHERE name = ?", (name,)),))


def use(calls: int) -> Write:
    usage = ToolUsage(principal=LOCAL, server="s", tool="t", calls=calls, failures=0, total_ms=0.0)
    return Write(("usage", "s", "t"), usage=usage)


def test_a_batch_that_failed_does_not_overwrite_what_came_later() -> None:
    queue = WriteQueue()
    queue.put(save("a", b"old"))
    queue.put(save("b", b"old"))
    batch = queue.take()
    queue.put(save("a", b"new"))
    assert queue.put_back(batch) == 2
    assert queue.take() == [replace(save("b", b"old"), tried=True), save("a", b"new")]


def test_a_write_that_fails_again_is_not_counted_again_but_a_newer_one_is() -> None:
    queue = WriteQueue()
    queue.put(save("a"))
    queue.put(save("b"))
    assert queue.put_back(queue.take()) == 2
    assert queue.put_back(queue.take()) == 0
    queue.put(save("a", b"newer"))
    assert queue.put_back(queue.take()) == 1


def test_a_write_replaced_while_it_fails_is_counted_once() -> None:
    queue = WriteQueue()
    queue.put(save("a"))
    assert queue.put_back(queue.take()) == 1
    batch = queue.take()
    queue.put(save("a", b"newer"))
    assert queue.put_back(batch) == 0
    assert queue.put_back(queue.take()) == 1


def test_a_full_queue_still_takes_newer_writes_of_known_keys() -> None:
    queue = WriteQueue(max_keys=1)
    assert queue.put(save("a"))
    assert not queue.put(save("b"))
    assert queue.put(save("a", b"newer"))
    assert queue.take() == [save("a", b"newer")]


def test_a_queue_that_is_full_of_bytes_takes_newer_writes_of_known_keys_and_others_when_there_is_room() -> None:
    queue = WriteQueue(max_bytes=1000)
    assert queue.put(save("a", bytes(5000))), "a single one always has room"
    assert not queue.put(save("b"))
    assert queue.put(save("a", bytes(900)))
    assert queue.put(save("b"))
    assert not queue.put(save("c", bytes(200)))
    batch = queue.take()
    assert queue.put(save("c", bytes(200)))
    queue.put_back(batch)
    assert not queue.put(save("d"))
    assert queue.put(Write((RECORD, "1"), (("INSERT", (bytes(500),)),))), "records of the audit have their own bound"
    assert {write.key[1] for write in queue.take()} == {"a", "b", "c", "1"}


@given(steps=st.lists(st.one_of(st.integers(1, 9), st.sampled_from(["fails", "saved"])), max_size=40))
def test_usage_is_neither_lost_nor_counted_twice_whatever_fails(steps: list[int | str]) -> None:
    queue, on_disk, added = WriteQueue(), 0, 0
    for step in [*steps, "saved"]:
        if isinstance(step, int):
            added += step
            queue.put(use(step))
            continue
        batch = queue.take()
        if step == "fails":
            queue.put(use(1))  # arrives while the disk is busy failing
            added += 1
            queue.put_back(batch)
        else:
            on_disk += sum(write.usage.calls for write in batch if write.usage is not None)
    assert on_disk == added


def test_what_is_saved_again_while_a_batch_fails_is_written_after_what_removes_it_there() -> None:
    queue = WriteQueue()
    queue.put(save("a"))
    queue.put(save("all"))
    failed = queue.take()
    queue.put(save("a", b"new"))
    queue.put_back(failed)
    assert [write.key for write in queue.take()] == [save("all").key, save("a").key]
