"""The mutants can be put into the sources as these are now; `python -m tests.mutants` tries whether tests kill them."""

from __future__ import annotations

import ast

from tests.mutants.catalogue import mutants, places, sources
from tests.sources import ROOT


def test_each_mutant_changes_one_place_of_the_sources_into_other_python_and_names_its_tests() -> None:
    known, texts = mutants(), sources()
    assert len({mutant.name for mutant in known}) == len(known)
    for mutant in known:
        found = [*places(mutant, texts)]
        assert len(found) == 1, f"{mutant.name}: what it replaces stands in {len(found)} places"
        assert mutant.find != mutant.replace, f"{mutant.name}: it changes nothing"
        ast.parse(texts[found[0]].replace(mutant.find, mutant.replace), found[0].name)
        assert mutant.tests, f"{mutant.name}: no test is to kill it"
        assert [test for test in mutant.tests if not (ROOT / test).exists()] == [], mutant.name
