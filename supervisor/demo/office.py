"""Demo servers with many tools, as the servers of business systems have: records of several kinds, kept in memory.

`python -m supervisor.demo.office DEPARTMENT` serves one department. Every kind of record has the same seven tools, all
of which work. The definitions are of the usual size: a sentence for the tool, a type and a sentence for each field.
"""

from __future__ import annotations

import sys
from typing import Any

from supervisor.demo.stdio_server import StdioServer

Record = dict[str, Any]
Fields = dict[str, tuple[str, str]]

DEPARTMENTS: dict[str, dict[str, Fields]] = {
    "sales": {
        "customer": {
            "name": ("string", "Name of the company or person"),
            "email": ("string", "Address for invoices and offers"),
            "country": ("string", "Country as ISO 3166-1 alpha-2, for example DE"),
            "credit_limit": ("number", "Highest open balance in euros before new orders are stopped"),
        },
        "order": {
            "customer_id": ("integer", "Number of the customer who ordered"),
            "article": ("string", "Article number from the price list"),
            "quantity": ("integer", "How many pieces are ordered"),
            "deliver_by": ("string", "Latest day of delivery as an ISO 8601 date"),
        },
        "invoice": {
            "order_id": ("integer", "Number of the order that is charged"),
            "amount": ("number", "Sum in euros, tax included"),
            "due": ("string", "Day of payment as an ISO 8601 date"),
            "paid": ("boolean", "Whether the money has arrived"),
        },
        "price_offer": {
            "customer_id": ("integer", "Number of the customer who asked"),
            "summary": ("string", "What is offered, in a sentence or two"),
            "discount_percent": ("number", "Discount on the list price from 0 to 60"),
        },
    },
    "support": {
        "ticket": {
            "title": ("string", "One line that says what is wrong"),
            "body": ("string", "What happened, what was expected, how to see it"),
            "priority": ("string", "One of low, normal, high, urgent"),
            "assignee": ("string", "Login of the agent who works on it"),
        },
        "reply": {
            "ticket_id": ("integer", "Number of the ticket that is answered"),
            "text": ("string", "The answer, as Markdown"),
            "internal": ("boolean", "Whether only colleagues may read it"),
        },
        "article": {
            "title": ("string", "The question as customers would ask it"),
            "body": ("string", "The answer, as Markdown"),
            "language": ("string", "Language as BCP 47, for example pt-BR"),
        },
    },
    "engineering": {
        "pull_request": {
            "title": ("string", "One line in the imperative that says what changes"),
            "head": ("string", "Branch with the changes"),
            "base": ("string", "Branch that the changes go into"),
            "draft": ("boolean", "Whether it is not ready for review yet"),
        },
        "deployment": {
            "service": ("string", "Name of the service to deploy"),
            "version": ("string", "Version to deploy, for example 4.2.0"),
            "environment": ("string", "One of development, staging, production"),
        },
        "incident": {
            "title": ("string", "One line that says what users notice"),
            "severity": ("integer", "From 1, everything is down, to 4, an annoyance"),
            "commander": ("string", "Login of the person who leads the response"),
        },
        "feature_flag": {
            "key": ("string", "Name in the code, lower case with dashes"),
            "enabled": ("boolean", "Whether the feature is on"),
            "percentage": ("number", "Share of users who see it, from 0 to 100"),
        },
    },
    "people": {
        "employee": {
            "name": ("string", "Full name as in the contract"),
            "team": ("string", "Name of the team"),
            "starts": ("string", "First day of work as an ISO 8601 date"),
        },
        "absence": {
            "employee_id": ("integer", "Number of the employee who is away"),
            "first_day": ("string", "First day away as an ISO 8601 date"),
            "last_day": ("string", "Last day away as an ISO 8601 date"),
            "reason": ("string", "One of holiday, illness, parental leave, other"),
        },
        "meeting_room": {
            "name": ("string", "Name on the door"),
            "seats": ("integer", "How many people can sit in it"),
            "video": ("boolean", "Whether there is a camera and a screen"),
        },
    },
}


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
