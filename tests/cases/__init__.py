"""The catalogue of faults: each case is tried by tests that are marked with it, or says why not.

`catalogue.txt` has the cases; `@pytest.mark.case("S03")` on a test says which it tries. `python -m tests.cases` runs
the marked tests, notes what became of them in `results.json`, and writes the pages that show it.
"""
