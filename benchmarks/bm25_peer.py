"""BM25 of the package bm25s, measured in a Python of its own: run as a script, it needs nothing of this project.

Standard input: `{"texts": [...], "queries": [...], "limit": 10}`. Output: `{"index_s": 1.0, "query_ms": [...]}`.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def main() -> None:
    """Index the texts, ask the queries one by one, write how long it took."""
    import bm25s  # type: ignore[import-not-found, unused-ignore]  # only in that Python

    asked: dict[str, Any] = json.load(sys.stdin)
    begun = time.perf_counter()
    retriever = bm25s.BM25()
    retriever.index(bm25s.tokenize(asked["texts"], show_progress=False), show_progress=False)
    index_s = time.perf_counter() - begun
    took_ms: list[float] = []
    for query in asked["queries"]:
        begun = time.perf_counter()
        tokens = bm25s.tokenize([query], show_progress=False)
        retriever.retrieve(tokens, k=min(asked["limit"], len(asked["texts"])), show_progress=False)
        took_ms.append((time.perf_counter() - begun) * 1000)
    json.dump({"index_s": index_s, "query_ms": took_ms}, sys.stdout)


if __name__ == "__main__":
    main()
