"""The slugs of installation names, by which their servers are called. Pure.

Programs that install servers for teams name the entries `{slug}-{team}-{generated id}`, or
`{slug}-{team}-{user}-{generated id}`; tools are called by the slug. A team of the second form is recognised by its
name, `team` and a number: otherwise it could be the last word of the slug.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

_INSTALLATION = re.compile(r"(?P<slug>[a-z0-9._-]*?[a-z0-9])(?:-team[0-9]+)?-[a-z0-9]+-(?P<id>[a-z0-9]{6,32})")
_GENERATED = re.compile(r"(?=.*[a-z])(?:[a-z]*[0-9]){3}.*|(?=.{8})(?:[a-z]*[0-9]){2}[a-z].*")
"""Letters and digits, three of these; or two among the letters of a longer word."""
_TERM = re.compile(
    r"[a-z]+(?:19|20)[0-9]{2}"
    r"|(?:aes|amd|arm|base|es|float|gpt|int|iso|md|oauth|py|python|rsa|sha|uint|utf|web|win)[0-9].*"
)
"""Words with a year or a number in them that people give to things."""


def installation_slug(name: str) -> str | None:
    """Return the slug of an installation name, `filesystem` of `filesystem-john-abc123`; None for any other name."""
    match = _INSTALLATION.fullmatch(name)
    if match is None or not _GENERATED.fullmatch(match["id"]) or _TERM.fullmatch(match["id"]):
        return None
    return match["slug"]


def derived_slugs(names: Collection[str], taken: Iterable[str]) -> dict[str, str]:
    """Return the slug of each installation name among `names` that no other entry has or would get.

    `taken` are the names and slugs of all entries; capital letters do not tell names apart.
    """
    slugs = {name: slug for name in names if (slug := installation_slug(name)) is not None}
    wanted = Counter(slugs.values())
    others = {name.casefold() for name in taken}
    return {name: slug for name, slug in slugs.items() if wanted[slug] == 1 and slug not in others}
