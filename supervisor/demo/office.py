"""Demo servers with many tools, as the servers of business systems have: records of several kinds, kept in memory.

`python -m supervisor.demo.office DEPARTMENT` serves one department. Every kind of record has the same seven tools, all
of which work. The definitions are of the usual size: a sentence for the tool, a type and a sentence for each field.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from supervisor.demo.stdio_server import StdioServer

Record = dict[str, Any]
Fields = dict[str, list[str]]
"""The type and a sentence for each field of a record."""

DEPARTMENTS: dict[str, dict[str, Fields]] = json.loads(Path(__file__).with_name("departments.json").read_bytes())


class Records:
    """All records of one kind: the tools' other end."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._rows: dict[int, Record] = {}

    def create(self, arguments: Record) -> Record:
        number = max(self._rows, default=0) + 1
        self._rows[number] = {"id": number, **arguments}
        return self._rows[number]

    def get(self, arguments: Record) -> Record:
        number = arguments["id"]
        if number not in self._rows:
            raise ValueError(f"there is no {self._kind} {number}")
        return self._rows[number]

    def update(self, arguments: Record) -> Record:
        self.get(arguments).update(arguments)
        return self.get(arguments)

    def delete(self, arguments: Record) -> Record:
        record = self.get(arguments)
        del self._rows[arguments["id"]]
        return record

    def list(self, arguments: Record) -> Record:
        first, size = arguments.get("offset", 0), arguments.get("limit", 20)
        rows = [*self._rows.values()]
        return {"total": len(rows), "items": rows[first : first + size]}

    def search(self, arguments: Record) -> Record:
        words = str(arguments["words"]).casefold()
        return {"items": [row for row in self._rows.values() if words in str([*row.values()]).casefold()]}

    def count(self, arguments: Record) -> Record:
        wanted = arguments.items()
        return {"count": sum(1 for row in self._rows.values() if wanted <= row.items())}


def build(department: str) -> StdioServer:
    server = StdioServer(department, instructions=f"Records of the {department} department.")
    for kind, fields in DEPARTMENTS[department].items():
        _add_tools(server, kind, fields)
    return server


def _add_tools(server: StdioServer, kind: str, fields: Fields) -> None:
    records, name = Records(kind), kind.replace("_", " ")
    one = f"an {name}" if name[0] in "aeiou" else f"a {name}"
    properties = {field: {"type": type_, "description": text} for field, (type_, text) in fields.items()}
    number = {"id": {"type": "integer", "description": f"Number of the {name}"}}
    page = {
        "limit": {"type": "integer", "description": "Most records to return", "default": 20, "maximum": 100},
        "offset": {"type": "integer", "description": "How many records to skip", "default": 0},
    }
    words = {"words": {"type": "string", "description": "Words that any field may contain"}}
    server.add_tool(f"create_{kind}", f"Create a new {name} and return it with its number", properties, records.create)
    server.add_tool(f"get_{kind}", f"Get one {name} by its number", number, records.get, read_only=True)
    server.add_tool(
        f"update_{kind}", f"Change some fields of {one}", number | properties, records.update, required=["id"]
    )
    server.add_tool(f"delete_{kind}", f"Delete {one} for good", number, records.delete)
    server.add_tool(
        f"list_{kind}s", f"List every {name}, page by page", page, records.list, required=[], read_only=True
    )
    server.add_tool(f"search_{kind}s", f"Search every {name} by words", words, records.search, read_only=True)
    server.add_tool(
        f"count_{kind}s",
        f"Count how many {name} records have certain values",
        properties,
        records.count,
        required=[],
        read_only=True,
    )


if __name__ == "__main__":
    build(sys.argv[1]).serve()
