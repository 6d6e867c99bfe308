"""What a sentence must be by which people ask for a tool: short plain text for nobody but the index. Pure.

What a model wrote that read what a server wrote is looked at as if the server had written it. So there is no address in
it, no place of a file, nothing secret, and no word to a model; who asks for something in such words is found by the
definition alone. What the operator wrote, or read, may have made-up addresses and files in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from actors.catalogue.findings import LOOKALIKES
from actors.catalogue.offer import Tool
from actors.catalogue.suspicions import alarms_of
from actors.search.document import MAX_SENTENCE_CHARS, MAX_SENTENCES
from actors.search.text import squash
from actors.transport.redaction import without_secrets
from supervisor.metatools.texts import is_seen

_MIN_SENTENCE_CHARS: Final = 3
MIN_USABLE: Final = 2
"""A tool with fewer sentences has none: what is left then is an accident."""
_MAX_GIVEN: Final = 32
"""So many sentences of a tool are looked at."""
MAX_SHARED: Final = 2
"""A sentence that is given to more tools than that says nothing of any."""
_MAX_WORD_CHARS: Final = 40
_COPIED_CHARS: Final = 24
"""Letters and digits in a row which are in a description, too, only if they were copied."""
_MARKUP: Final = re.compile(r"[<>{}`]|\|\||&#?\w{1,10};")
_ADDRESS: Final = re.compile(r"://|\b(?:javascript|data|mailto):\S")
_ORDER: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override) (?:all|any|the|your|my)? ?(?:previous|prior|above|earlier)\b"
)


@cache
def _of_models() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return what is wrong with a sentence that matches: compiled for who has a model, and not at each start."""
    return (
        ("has markup in it", re.compile(r"[\[\]|*_^~=]|^#|##")),
        (
            "has an address in it",
            re.compile(
                r"@|\bwww\.|[\w-]\.(?:com|net|org|info|biz|io|dev|app|ai|co|me|xyz|top|site|online|link|page|edu|gov|[a-z]{2})\b"
                r"|\b\d{1,3}(?:\.\d{1,3}){3}\b|\blocalhost\b|:\d{2,5}\b(?<!\d:\d\d)"
            ),
        ),
        ("has the place of a file in it", re.compile(r"\\|(?:^|\s)\.{0,2}/|\S/\S*/|\b[a-z]:/")),
        (
            "speaks to a model",
            re.compile(
                r"\b(?:system|assistant|developer|human|user|important|note|warning|attention|instructions?) ?:"
                r"|\b(?:this|that|these|those|other|another|every|any|all|which|following|right|best) tools?\b"
                r"|\btool (?:calls?|use|names?|descriptions?|results?)\b|\bfunction calls?\b|\bsystem prompts?\b"
                r"|\b(?:use|using|call|calling|invoke|choose|prefer|pick|select|trust) (?:the|only|this|that|its?) "
                r"(?:\S{1,40} )?(?:tool|function|server|mcp)\b"
                r"|\b(?:always|never|must|should|only) (?:use|call|invoke|choose|prefer|pick|select|trust) "
                r"(?:this|it|the|me)\b"
                r"|\byou (?:must|should|shall|have to|need to|are|will now|may only)\b"
                r"|\b(?:ignore|disregard|forget|override|bypass) (?:\w{1,20} ){0,3}"
                r"(?:instructions?|prompts?|rules?|guidelines?|directions?|safety|tools?|servers?)\b"
                r"|\b(?:above|previous|prior|earlier|new|following) (?:instructions?|prompts?)\b"
                r"|\bas an? (?:ai|language model|assistant)\b|\b(?:regardless|irrespective) of\b"
                r"|\bwhatever (?:the|you|is|they|anybody)\b"
                r"|\b(?:any|every|all) (?:request|quer|question|prompt|message|task)"
            ),
        ),
    )


def fault_of(sentence: str) -> str:
    """Return what is wrong with a sentence, whoever wrote it, in words without any of it; empty if nothing is."""
    if not _MIN_SENTENCE_CHARS <= len(sentence) <= MAX_SENTENCE_CHARS:
        return f"has {len(sentence)} characters, not {_MIN_SENTENCE_CHARS} to {MAX_SENTENCE_CHARS}"
    if sentence != " ".join(sentence.split()) or not all(map(is_seen, sentence)):
        return "has blanks or characters in it that cannot be seen"
    if not any(map(str.isalpha, sentence)):
        return "has no word in it"
    read = _as_it_looks(sentence)
    if _MARKUP.search(read):
        return "has markup in it"
    if _ADDRESS.search(read):
        return "has an address in it"
    if _ORDER.search(read) or alarms_of({"description": sentence}):
        return "is suspicious"
    return ""


def fault_of_model(sentence: str, tool: Tool) -> str:
    """Return what is wrong with a sentence that a model wrote for a tool; empty if nothing is."""
    if fault := fault_of(sentence):
        return fault
    read = _as_it_looks(sentence)
    if max(map(len, sentence.split())) > _MAX_WORD_CHARS:
        return f"has a word of more than {_MAX_WORD_CHARS} characters in it"
    for fault, pattern in _of_models():
        if pattern.search(read):
            return fault
    if without_secrets(sentence) != sentence:
        return "has what looks like a secret in it"
    if not _is_a_word(tool.name) and tool.name.lower() in read:
        return "names the tool"
    bare = squash(sentence)
    return "is of the description" if len(bare) >= _COPIED_CHARS and bare in squash(tool.description) else ""


def checked(given: Mapping[int, Sequence[object]], tools: Sequence[Tool]) -> dict[int, tuple[str, ...]]:
    """Return what is usable of the sentences that a model gave to tools, by their places; no others have any."""
    kept = {at: [*_usable(given[at], tool)] for at, tool in enumerate(tools) if at in given}
    shared = Counter(bare for sentences in kept.values() for bare in {squash(sentence) for sentence in sentences})
    told = {at: [s for s in sentences if shared[squash(s)] <= MAX_SHARED] for at, sentences in kept.items()}
    return {at: tuple(some[:MAX_SENTENCES]) for at, some in told.items() if len(some) >= MIN_USABLE}


def _usable(given: Sequence[object], tool: Tool) -> Iterator[str]:
    """Yield sentences without faults, equal ones once."""
    known = set()
    for each in given[:_MAX_GIVEN]:
        if isinstance(each, str) and len(each) <= 2 * MAX_SENTENCE_CHARS:
            sentence = " ".join(each.split())
            if not fault_of_model(sentence, tool) and (bare := squash(sentence)) and bare not in known:
                known.add(bare)
                yield sentence


def _as_it_looks(sentence: str) -> str:
    """Return a sentence in lower case, with letters that look like others as these."""
    if sentence.isascii():
        return sentence.lower()
    return unicodedata.normalize("NFKC", sentence).lower().translate(LOOKALIKES)


def _is_a_word(name: str) -> bool:
    """Say whether a name is a word that people may use as well, such as `search`."""
    return name.isalpha() and name[1:] == name[1:].lower()
