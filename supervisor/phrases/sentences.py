"""What a sentence must be by which people ask for a tool: short plain text for nobody but the index. Pure."""

from __future__ import annotations

import re
from typing import Final

from actors.catalogue.lists.suspicions import alarms_of
from actors.search.documents.segment import MAX_SENTENCE_CHARS
from supervisor.metatools.texts import is_seen

MIN_SENTENCE_CHARS: Final = 3
_MARKUP: Final = re.compile(r"[<>{}`]|\|\||&#?\w{1,10};")
_ADDRESS: Final = re.compile(r"://|\b(?:javascript|data|mailto):\S")
_ORDER: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override) (?:all|any|the|your|my)? ?(?:previous|prior|above|earlier)\b"
)


def fault_of(sentence: str) -> str:
    """Return what is wrong with a sentence, whoever wrote it, in words without any of it; empty if nothing is."""
    if not MIN_SENTENCE_CHARS <= len(sentence) <= MAX_SENTENCE_CHARS:
        return f"has {len(sentence)} characters, not {MIN_SENTENCE_CHARS} to {MAX_SENTENCE_CHARS}"
    if sentence != " ".join(sentence.split()) or not all(map(is_seen, sentence)):
        return "has blanks or characters in it that cannot be seen"
    if not any(map(str.isalpha, sentence)):
        return "has no word in it"
    if _MARKUP.search(sentence):
        return "has markup in it"
    if _ADDRESS.search(sentence.lower()):
        return "has an address in it"
    if _ORDER.search(sentence.lower()) or alarms_of({"description": sentence}):
        return "is suspicious"
    return ""
