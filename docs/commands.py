"""The commands with their full help, as their documentation has it: from click itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from supervisor.cli import GROUPS, cli
from supervisor.reference.configuration import bullet, paragraph

_EXTRA = re.compile(r"\s*\[([^\]]+)\]$")
"""What click appends to the help of an option: its default and its bounds."""


def overview() -> str:
    """Return all commands by their subjects, each with a sentence and a link."""
    parts = []
    for group in GROUPS:
        items = [
            f"- [`{name}`](commands/{group}.md#{name.replace(' ', '-')}): {_sentence(command)}"
            for name, command in documented(group)
        ]
        parts.append(f"## {group.capitalize()}\n\n" + "\n".join(items))
    return "\n\n".join(parts)


def full_help(group: str) -> str:
    """Return the help of each command of a group: how it is written, what it does, its options."""
    return "\n\n".join(_section(name, command) for name, command in documented(group))


def documented(group: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the commands of a subject, those below another one with both names."""
    for name in GROUPS[group]:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {sub}", each) for sub, each in command.commands.items())
        else:
            yield name, command


def _sentence(command: click.Command) -> str:
    return command.get_short_help_str(200)


def _section(name: str, command: click.Command) -> str:
    with click.Context(command, info_name=name) as context:
        context.show_default = True
        usage = " ".join(["mcpvisor", name, *command.collect_usage_pieces(context)])
        options = [option for option in command.get_params(context) if isinstance(option, click.Option)]
        records = [option.get_help_record(context) for option in options if "--help" not in option.opts]
    help_text = "\n\n".join(_paragraphs(inspect.cleandoc(command.help or "")))
    listed = "\n".join(_option(*record) for record in records if record is not None)
    return "\n\n".join(part for part in (f"## {name}", f"```text\n{usage}\n```", help_text, listed) if part)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; what click shall not wrap is for the shell."""
    for part in text.split("\n\n"):
        if part.startswith("\b"):
            lines = [line.strip() for line in part.splitlines()[1:]]
            yield "```sh\n" + "\n".join(lines) + "\n```"
        else:
            yield paragraph(" ".join(part.split()))


def _option(names: str, text: str) -> str:
    extra = _EXTRA.search(text)
    notes = [_note(part) for part in extra[1].split("; ")] if extra else []
    shown = f" ({', '.join(notes)})" if notes else ""
    return bullet(f"**`{names}`**{shown}: {_EXTRA.sub('', text)}")


def _note(text: str) -> str:
    """Return in words what click writes: `default: 100`, `0<=x<=1000`, `x>=0`."""
    if "x" in text and "=" in text:
        return text.replace("<=x<=", " to ").replace("x>=", "from ")
    return f"default `{text.removeprefix('default: ')}`"
