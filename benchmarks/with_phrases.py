"""A catalogue with what the phrase book says of its tools: `python -m benchmarks.with_phrases IN.jsonl OUT.jsonl`.

Both are catalogues that `benchmarks.search` reads.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec
from msgspec.structs import replace

from actors.catalogue import lists
from benchmarks.search import Tool, definition
from supervisor.phrases.phrase_book import PhraseBook, read_book


def with_sentences(tool: Tool, book: PhraseBook) -> Tool:
    """Return a tool with its sentences; one that is malformed as it is."""
    try:
        checked = lists.tool(msgspec.Raw(msgspec.json.encode(definition(tool))))
    except lists.Unusable:
        return tool
    return replace(tool, said=book.said(tool.server, checked).sentences)


def main() -> None:
    """Read the arguments, look each tool up, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.with_phrases", description=__doc__)
    parser.add_argument("catalog", type=Path, metavar="IN.jsonl")
    parser.add_argument("out", type=Path, metavar="OUT.jsonl")
    options = parser.parse_args()
    book = read_book()
    tools = msgspec.json.Decoder(Tool).decode_lines(options.catalog.read_bytes())
    found = [with_sentences(tool, book) for tool in tools]
    options.out.write_bytes(msgspec.json.Encoder().encode_lines(found))
    print(f"{sum(bool(tool.said) for tool in found)} of {len(found)} tools have sentences")


if __name__ == "__main__":
    main()
