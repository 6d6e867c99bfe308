"""Every reader of foreign bytes bears what was found, what it is meant to read, and both with a few changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.mutation import inputs
from tests.fuzz.target import CORPUS, inputs_of
from tests.fuzz.targets import TARGETS

MOST_BYTES = 200_000
"""Of the corpus: it is for what was found, not for all that is known."""


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_samples_and_what_was_found_are_borne(name: str) -> None:
    for data in inputs_of(name):
        TARGETS[name](data)


@pytest.mark.parametrize("name", sorted(TARGETS))
@given(data=st.data())
def test_changed_inputs_are_borne(name: str, data: st.DataObject) -> None:
    TARGETS[name](data.draw(inputs(inputs_of(name))))


def test_the_corpus_is_small_and_all_of_it_is_tried() -> None:
    files = [file for file in CORPUS.rglob("*") if file.is_file()]
    assert {file.parent.name for file in files} == set(TARGETS)
    assert sum(file.stat().st_size for file in files) <= MOST_BYTES
