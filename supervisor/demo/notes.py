"""A demo server: notes as tools and as resources (legacy era). `python -m supervisor.demo.notes`."""

from __future__ import annotations

from typing import Any

from supervisor.demo.stdio_server import StdioServer

server = StdioServer("notes", instructions="Short notes, kept while the server runs.")
notes: dict[str, str] = {}


@server.tool(
    "Write down a note so that it can be found again later",
    title={"type": "string", "description": "Title of the note"},
    text={"type": "string", "description": "What to remember"},
)
def add_note(arguments: dict[str, Any]) -> str:
    title, text = str(arguments["title"]), str(arguments["text"])
    notes[title] = text
    server.add_resource(f"note:///{title}", title, "A note", lambda: notes[title])
    return f"Noted {title!r}; {len(notes)} notes now."


@server.tool("List the titles of all notes", read_only=True)
def list_notes(arguments: dict[str, Any]) -> dict[str, Any]:
    del arguments
    return {"titles": sorted(notes)}


@server.tool(
    "Find notes that contain some words", words={"type": "string", "description": "Words to look for"}, read_only=True
)
def search_notes(arguments: dict[str, Any]) -> dict[str, Any]:
    wanted = str(arguments["words"]).casefold()
    return {"titles": sorted(title for title, text in notes.items() if wanted in f"{title} {text}".casefold())}


add_note({"title": "welcome", "text": "Notes are resources: read them with read_mcp_resource."})

if __name__ == "__main__":
    server.serve()
