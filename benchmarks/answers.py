"""What the answers of `discover_mcp_tools` cost a model: `python -m benchmarks.answers CATALOG.jsonl QUERIES.jsonl...`.

The files are those of `benchmarks.search`. Counted with cl100k is the text that a client's model sees, the
answer as `lean` makes it. Every schema shown is validated against its metaschema (the package `jsonschema`; nothing is
downloaded). `--budget` is the setting `discover_token_budget`; a query that is a tool's exact path may cost more.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import referencing
from jsonschema.validators import validator_for

from actors.protocol.wire.jsonrpc import encode
from benchmarks.search import Query, Tool, asking, build
from supervisor.metatools.discovery import DiscoverySettings
from supervisor.metatools.lean import lean
from supervisor.tokens.counting import Tiktoken, load_encoding


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One answer: its tokens, its rows, those with a complete schema, and the paths whose schema is not valid.

    `weak`: it says that nothing fits.
    """

    query: str
    tokens: int
    rows: int = 0
    complete: int = 0
    first_complete: bool = False
    weak: bool = False
    invalid: tuple[str, ...] = ()


def problem(schema: Any) -> str:
    """Return what is wrong with a JSON Schema, by the metaschema it names or else 2020-12; empty if nothing is."""
    checker = validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        checker.check_schema(schema)
        # A reference that leads nowhere shows only when something is validated; an empty registry fetches nothing.
        _resolve(schema, checker(schema, registry=referencing.Registry()))
    except (jsonschema.SchemaError, referencing.exceptions.Unresolvable) as error:
        return str(error).partition("\n")[0]
    return ""


def _resolve(schema: Any, validator: Any) -> None:
    """Look up every local reference. Raises `referencing.exceptions.Unresolvable`."""
    resolver = validator._resolver
    for ref in references(schema):
        resolver.lookup(ref)


def references(node: Any) -> Iterator[str]:
    """Return the local references in a schema."""
    if isinstance(node, dict):
        ref = node.get("$ref")
        if isinstance(ref, str) and ref.startswith("#"):
            yield ref
    for item in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from references(item)


def measured(query: str, answer: Any, tokenizer: Tiktoken) -> Measured:
    """Measure one answer."""
    body = encode(lean(answer)).decode()
    rows = msgspec.json.decode(body)["tools"]
    shown = [row for row in rows if "inputSchema" in row]
    invalid = [(row.get("tool_path", ""), problem(row["inputSchema"])) for row in shown]
    return Measured(
        query=query,
        tokens=tokenizer.count(body),
        rows=len(rows),
        complete=len(shown),
        first_complete=bool(rows) and "inputSchema" in rows[0],
        weak=answer.get("notice", "").startswith("No description matches"),
        invalid=tuple(f"{path}: {text}" for path, text in invalid if text),
    )


def report(answers: Iterable[Measured], budget: int) -> None:
    """Print the figures over all answers."""
    rows = sorted(answers, key=lambda one: one.tokens)
    tokens = [one.tokens for one in rows]
    p50, p90 = tokens[len(tokens) // 2], tokens[int(len(tokens) * 0.9)]
    print(f"{len(rows)} answers: tokens p50 {p50}, p90 {p90}, max {tokens[-1]}")
    over = [one for one in rows if one.tokens > budget]
    print(f"over the budget of {budget} tokens: {len(over)}")
    for one in over:
        print(f"  {one.tokens} {one.query[:80]!r}")
    shown, complete = sum(one.rows for one in rows), sum(one.complete for one in rows)
    hits = [one for one in rows if one.rows]
    weak = 100 * sum(one.weak for one in rows) / len(rows)
    print(f"answers that say that nothing fits: {weak:.1f} %")
    print(f"rows {shown}, with a complete schema {100 * complete / max(1, shown):.1f} %")
    share = 100 * sum(one.first_complete for one in hits) / max(1, len(hits))
    print(f"answers whose first row has a complete schema: {share:.1f} %")
    invalid = [text for one in rows for text in one.invalid]
    print(f"invalid schemas: {len(invalid)}")
    for text in sorted(set(invalid)):
        print(f"  {text}")


def main() -> None:
    """Read the arguments, ask, count, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers", description=__doc__)
    parser.add_argument("catalog", type=Path, metavar="CATALOG.jsonl")
    parser.add_argument("queries", type=Path, nargs="+", metavar="QUERIES.jsonl")
    parser.add_argument("--top", type=int, default=10, help="hits per query (default 10)")
    parser.add_argument("--budget", type=int, default=DiscoverySettings().discover_token_budget, metavar="TOKENS")
    options = parser.parse_args()
    catalogue = build(msgspec.json.Decoder(Tool).decode_lines(options.catalog.read_bytes()))
    settings = DiscoverySettings(discover_token_budget=options.budget)
    ask = asking(catalogue, options.top, settings)
    tokenizer = Tiktoken(load_encoding())
    lines = msgspec.json.Decoder(Query)
    queries = [query.query for file in options.queries for query in lines.decode_lines(file.read_bytes())]
    report((measured(query, ask(query), tokenizer) for query in queries), options.budget)


if __name__ == "__main__":
    main()
