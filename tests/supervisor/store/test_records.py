"""Tables from structs: what is put, forgotten and read is as in a dict, and the schema as it always was."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from supervisor.store import Rows, open_store
from supervisor.store.database import SCHEMA_VERSION
from supervisor.store.records import Table
from tests.supervisor.store.earlier import make_database


class Note(msgspec.Struct, frozen=True, array_like=True):
    """A row with two keys, one column that may be empty, and all kinds of values."""

    owner: str
    number: int
    at: float
    text: bytes | None = None


MOST = 2
Step = tuple[Any, ...]
"""What is done, and with what: put rows, forget those of some keys, forget those of all other owners."""
OWNERS, NUMBERS = st.sampled_from("abc"), st.integers(0, 2)
TEXTS = st.none() | st.sampled_from([b"", b"x", b"\0\xff"])
KEYS = st.tuples() | st.tuples(OWNERS) | st.tuples(OWNERS, NUMBERS)
PUT = st.tuples(st.just("put"), st.lists(st.tuples(OWNERS, NUMBERS, st.integers(0, 9), TEXTS), min_size=1, max_size=4))
FORGET = st.tuples(st.just("forget"), KEYS)
STEPS = st.lists(
    PUT | PUT | FORGET | st.tuples(st.just("others"), st.lists(OWNERS, max_size=2)), min_size=4, max_size=12
)


def done(rows: Rows[Note], model: dict[tuple[str, int], Note], turn: int, step: Step) -> dict[tuple[str, int], Note]:
    """Do a step in both; return the dict. No two rows have the same moment."""
    kind, what = step
    if kind == "put":
        notes = [
            Note(owner, number, at * 1000.0 + turn * 10 + n, text) for n, (owner, number, at, text) in enumerate(what)
        ]
        rows.put(*notes)
        return model | {(note.owner, note.number): note for note in notes}
    if kind == "forget":
        rows.forget(*what)
        return {key: note for key, note in model.items() if key[: len(what)] != what}
    rows.forget_others(what)
    return {key: note for key, note in model.items() if key[0] in what}


async def played(steps: Sequence[Step], most: int, folder: Path) -> None:
    table = Table("notes", Note, 2, order="at", most=most, indexes={"age": "at"})
    model: dict[tuple[str, int], Note] = {}
    async with open_store(folder / "store.sqlite3", linger_s=3600.0) as store:
        store.write(("schema",), *((statement, ()) for statement in table.schema()))
        rows = Rows(store, table)
        for turn, step in enumerate(steps):
            model = done(rows, model, turn, step)
            if most:  # what gives way while it waits has driven nothing out
                assert await rows.secure()
                model = dict(sorted(model.items(), key=lambda item: item[1].at)[-most:])
        expected = sorted(model.values(), key=lambda note: note.at)
        assert await rows.load() == expected
    async with open_store(folder / "store.sqlite3") as store:
        assert await Rows(store, table).load() == expected
        assert store.status().lost_writes == 0


@pytest.mark.parametrize("most", [0, MOST])
@given(STEPS)
def test_rows_are_kept_as_in_a_dict_and_the_last_of_them_where_there_are_too_many(most: int, steps: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        trio.run(played, steps, most, Path(folder))


def schema_in(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {text for (text,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL")}


async def test_the_schema_of_the_structs_is_the_one_that_is_on_disks(tmp_path: Path) -> None:
    async with open_store(tmp_path / "fresh.sqlite3"):
        pass
    make_database(tmp_path / "kept.sqlite3", str(SCHEMA_VERSION))
    assert schema_in(tmp_path / "fresh.sqlite3") == schema_in(tmp_path / "kept.sqlite3")
