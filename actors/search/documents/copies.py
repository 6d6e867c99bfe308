"""Which documents are copies, and whose they are more likely to be. Pure.

Whoever wants to be taken for an honest tool copies its name or its text; both copies match a query equally well, and
many of them would crowd out the original. Copies therefore only share places: among those that are told apart by
nothing but their server, the one whose server copies least comes first. A server copies as much as the share of its
documents whose name, or longest sentence, another server has, too. Where that says nothing - two accounts of one
service, say - the order stays as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from actors.search.document import Document
from actors.search.documents.postings import Floats, Ints
from actors.search.language.text import SENTENCE_END, squash

Prints = npt.NDArray[np.int64]
"""Per document the fingerprint of its name and that of its longest sentence; 0 stands for none."""

NAME, TEXT = 0, 1

_MAX_TEXT_CHARS = 3000
_MAX_NAME_CHARS = 300
_MIN_TEXT_CHARS = 12  # squashed: shorter sentences are said by honest servers of different things
_CLEARLY = 0.2  # so much more than another must a server copy, or nothing is concluded from it

CROWD = 4
"""So many copies push an original out of the first three. From here on the size of their servers counts, too: nobody
offers twenty tools to pass one off."""


def prints_of(documents: Sequence[Document]) -> Prints:
    """Return the fingerprints of documents, a row each; the same on every machine."""
    rows = [
        (_hash(document.name[:_MAX_NAME_CHARS], 1), _hash(_longest(document), _MIN_TEXT_CHARS))
        for document in documents
    ]
    return np.array(rows, np.int64).reshape(len(rows), 2)


def _longest(document: Document) -> str:
    return max(SENTENCE_END.split(document.description[:_MAX_TEXT_CHARS]), key=len)


def _hash(text: str, least_chars: int) -> int:
    squashed = squash(text)
    if len(squashed) < least_chars:
        return 0
    return int.from_bytes(blake2b(squashed.encode(errors="replace"), digest_size=8).digest(), "big", signed=True)


def copied_shares(prints: Prints, segment_of: Ints, sizes: Ints) -> Floats:
    """Return per server the share of its documents (0..1) that have a name or a text of another server."""
    copied = np.zeros(len(prints), np.bool_)
    for column in (NAME, TEXT):
        copied |= _held_by_several(prints[:, column], segment_of)
    shares: Floats = (np.bincount(segment_of, weights=copied, minlength=len(sizes)) / np.maximum(sizes, 1)).astype(
        np.float32
    )
    return shares


def _held_by_several(column: npt.NDArray[np.int64], segment_of: Ints) -> npt.NDArray[np.bool_]:
    order = np.lexsort((segment_of, column))
    prints, servers = column[order], segment_of[order]
    begins = np.ones(len(prints), np.bool_)
    begins[1:] = prints[1:] != prints[:-1]
    run = np.cumsum(begins) - 1
    moves = np.zeros(len(prints), np.int64)
    moves[1:] = (servers[1:] != servers[:-1]) & ~begins[1:]
    out = np.zeros(len(prints), np.bool_)
    out[order] = (np.bincount(run, weights=moves)[run] > 0) & (prints != 0)
    return out


def originals_first(
    ordered: Sequence[int],
    group: Callable[[int], Hashable | None],
    asked_for: Callable[[int], int],
    server: Callable[[int], int],
    copied: Floats,
    sizes: Ints,
    least: int,
) -> list[int]:
    """Return the documents with those of each group in places changed among themselves, the likely original first.

    `group` is None for a document that is no copy. Of each server the first of a group takes part: a server does not
    copy from itself. Groups of fewer than `least` documents stay as they are. Those whose server is asked for by name
    come first (`asked_for`, in words); then those whose server copies clearly less than the others' (`copied`, per
    server), or, of a crowd, does not have clearly fewer documents (`sizes`, per server).
    """
    places: dict[Hashable, dict[int, int]] = defaultdict(dict)
    for place, number in enumerate(ordered):
        if (key := group(number)) is not None:
            places[key].setdefault(server(number), place)
    out = list(ordered)
    for by_server in places.values():
        if len(by_server) < least:
            continue
        servers, held = list(by_server), list(by_server.values())
        members = [ordered[place] for place in held]
        fewest = copied[servers].min() + _CLEARLY
        most = sizes[servers].max() if len(members) >= CROWD else 0
        keys = {
            number: (-asked_for(number), bool(copied[own] >= fewest), bool(2 * sizes[own] < most))
            for number, own in zip(members, servers, strict=True)
        }
        ranked = sorted(members, key=keys.__getitem__)
        for place, number in zip(held, ranked, strict=True):
            out[place] = number
    return out
