"""What people say, told in the words of tools: rules of paraphrase, and what they make of a sentence. Pure.

A rule is a line `cue => meaning`. The cue is what is said, word by word, in any form of each word - but a past
participle is met by itself alone, as it tells what happened and the other forms what is to be done:

- `a|b`: one of these; `..`: up to four words in between; `...`: up to ten, among which paths, addresses and keys do not
  count; `^` and `$`: the ends of the sentence;
- `#time`: "Tuesday", "5pm"; `#number`; `#who`: people and pronouns; `#file`: a path with an extension.

Articles and possessives are passed over, so no cue has any. The meaning is one or more needs, divided by `/`, each in
one or several words of which the best counts. The words of the cue are taken for what they mean: they count less
themselves, unless the meaning has them, too. Of two rules about the same words the one with the longer cue counts.

Rules are looked up by the word of their cue that the fewest rules have, and a gap is bounded, so a query costs as much
as it has words.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache

from actors.search import tuning
from actors.search.query import FILE_MARK, with_marks
from actors.search.text import stem, words
from actors.search.words.tables import ABBREVIATIONS, PEOPLE, PHRASES, RULES, SYNONYMS, TIMES, WEAK

_ARTICLES = "a an the my our your his their its this that these those some any please just also"
_PRONOUNS = "him them everyone everybody someone somebody anyone team people crew staff"
_PASSED_OVER = frozenset(_ARTICLES.split())
_WHO = PEOPLE | frozenset(_PRONOUNS.split())
_MAX_WORDS = 200
_GAPS = {"..": 4, "...": 10}
_CLOCK = re.compile(r"\d{1,2}(am|pm)")
_NUMBER = re.compile(r"\d+")
_START, _END = "^", "$"
_CLASSES = frozenset(("#time", "#number", "#who", "#file"))


@dataclass(frozen=True, slots=True)
class Understood:
    """What a text means beside its words; `taken` are those words that its cues explain."""

    needs: tuple[tuple[str, ...], ...]
    taken: frozenset[str]


NOTHING_MEANT = Understood((), frozenset())


@dataclass(frozen=True, slots=True)
class _Step:
    """One word of a cue: stems or classes, after at most `gap` other words."""

    options: frozenset[str]
    gap: int


@dataclass(frozen=True, slots=True)
class _Rule:
    number: int  # in the order of the lines
    steps: tuple[_Step, ...]
    at_start: bool
    at_end: bool
    needs: tuple[tuple[str, ...], ...]


Rules = Mapping[str, Sequence[_Rule]]
"""Rules by the stems, or the classes, of one word of their cue: that which the fewest rules have."""


def compile_rules(lines: Iterable[str]) -> Rules:
    """Return the rules of these lines, of which blank ones and comments (`# `) are none. Raises `ValueError`."""
    rules: list[_Rule] = []
    for line in lines:
        if not line.strip() or line.startswith("# "):
            continue
        cue, arrow, meaning = line.partition("=>")
        needs = tuple(tuple(need.split()) for need in meaning.split("/"))
        rule = _rule(len(rules), cue.split(), needs)
        if not arrow or not all(needs) or not rule.steps or "|" in meaning:  # or two rules that run into one
            raise ValueError(f"not a rule: {line!r}")
        rules.append(rule)
    held = Counter(option for rule in rules for step in rule.steps for option in step.options)
    out: dict[str, list[_Rule]] = defaultdict(list)
    for rule in rules:
        for key in min(rule.steps, key=lambda step: sum(held[option] for option in step.options)).options:
            out[key].append(rule)
    return out


def _cue(word: str) -> str:
    """Return what a word of a cue asks for: any form of the word, but a past participle itself."""
    return word if word.endswith("ed") else stem(word)


def _rule(number: int, cue: Sequence[str], needs: tuple[tuple[str, ...], ...]) -> _Rule:
    steps: list[_Step] = []
    gap = 0
    for element in cue:
        if element in _GAPS:
            gap = _GAPS[element]
        elif element not in (_START, _END):
            said = frozenset(element.split("|"))
            if said & _PASSED_OVER or any(word.startswith("#") for word in said - _CLASSES):
                raise ValueError(f"not a rule: {element!r} is never looked at")
            kinds = said & _CLASSES
            steps.append(_Step(frozenset(map(_cue, said - kinds)) | kinds, gap))
            gap = 0
    return _Rule(number, tuple(steps), cue[:1] == [_START], cue[-1:] == [_END], needs)


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    names: frozenset[str]


_OURS = compile_rules(RULES)  # here and not with the first query: it takes as long as twenty of these


def interpret(text: str, known: Rules = _OURS) -> Understood:
    """Return what a text means by these rules (default: ours). In other words it means no more than it says."""
    sentence = _read(text)
    places: dict[str, list[int]] = defaultdict(list)
    for place, word in enumerate(sentence):
        for name in word.names:
            places[name].append(place)
    candidates = [rule for _, rule in sorted(_candidates(places.keys(), known).items())]
    meanings = [(rule.needs, met) for rule in candidates if (met := _find(rule, sentence, places))]
    if not meanings:
        return NOTHING_MEANT
    meanings.sort(key=lambda meaning: (-len(meaning[1]), min(meaning[1])))
    taken: set[int] = set()
    needs: dict[tuple[str, ...], None] = {}
    for meant, met in meanings:
        if not met <= taken:
            taken |= met
            needs.update(dict.fromkeys(meant))
    return Understood(tuple(needs), frozenset(sentence[place].text for place in taken).difference(*needs))


def _candidates(said: AbstractSet[str], known: Rules) -> dict[int, _Rule]:
    """Return the rules whose words are all there in some order, by their numbers: only these are read word by word."""
    candidates: dict[int, _Rule] = {}
    for name in said:
        for rule in known.get(name, ()):
            for step in rule.steps:
                if said.isdisjoint(step.options):
                    break
            else:
                candidates[rule.number] = rule
    return candidates


def _read(text: str) -> list[_Word]:
    return [_Word(word, _names(word)) for word in words(with_marks(text))[:_MAX_WORDS] if word not in _PASSED_OVER]


def _names(word: str) -> frozenset[str]:
    names = {stem(word), _cue(word)}
    if word in TIMES or _CLOCK.fullmatch(word):
        names.add("#time")
    if word in _WHO:
        names.add("#who")
    if _NUMBER.fullmatch(word):
        names.add("#number")
    if word == FILE_MARK:
        names.add("#file")
    return frozenset(names)


def _find(rule: _Rule, sentence: Sequence[_Word], places: Mapping[str, Sequence[int]]) -> frozenset[int]:
    for begin in sorted({place for name in rule.steps[0].options for place in places.get(name, ())}):
        met = _match(rule, sentence, begin)
        if met:
            return met
    return frozenset()


def _match(rule: _Rule, sentence: Sequence[_Word], place: int) -> frozenset[int]:
    """Return the places of the words that a rule explains if its cue begins here; nothing if it does not."""
    if rule.at_start and place:
        return frozenset()
    places = [place]
    for step in rule.steps[1:]:
        left = step.gap
        for at in range(places[-1] + 1, len(sentence)):
            if not step.options.isdisjoint(sentence[at].names):
                places.append(at)
                break
            if sentence[at].text != FILE_MARK:  # "in /home/ana/guests.xlsx twice" is "in twice" of something
                left -= 1
                if left < 0:
                    return frozenset()
        else:
            return frozenset()
    if rule.at_end and places[-1] != len(sentence) - 1:
        return frozenset()
    return frozenset(places)


# Which words stand for which: the word lists as a map of stems.
#
# Alternatives of one word are combined by their maximum, never their sum, so a generous list cannot outweigh a match of
# the word itself; their weight stays below that of the word typed.

_SEVERAL_MEANINGS = 0.85
_MAX_ALTERNATIVE = 0.9

_PHRASES = tuple((re.compile(phrase), meant) for phrase, meant in PHRASES)
_ANY_PHRASE = re.compile("|".join(f"(?:{phrase})" for phrase, _ in PHRASES))

REAL_WORDS: frozenset[str] = frozenset(re.findall(r"[a-z]{2,}", " ".join((*SYNONYMS, *ABBREVIATIONS, *RULES)))) | WEAK
"""Words of our own lists. Who writes one of them means it: it is no misspelling of a word that a catalogue has."""


def phrases_in(text: str) -> list[tuple[str, ...]]:
    """Return what the turns of phrase of a lower-case text mean; few texts have any, which one look tells."""
    return [meant for pattern, meant in _PHRASES if pattern.search(text)] if _ANY_PHRASE.search(text) else []


@cache
def alternatives() -> Mapping[str, Mapping[str, float]]:
    """Return stem -> {stem of an alternative: weight below 1}."""
    out: dict[str, dict[str, float]] = {}

    def add(written: str, meant: str, weight: float) -> None:
        one, other = stem(written), stem(meant)
        if one != other:
            known = out.setdefault(one, {})
            known[other] = min(_MAX_ALTERNATIVE, max(known.get(other, 0.0), weight))

    for line in SYNONYMS:
        group = line.split()
        for written in group:
            for meant in group:
                add(written, meant, tuning.SYNONYM)
    for line in ABBREVIATIONS:
        written, _, text = line.partition("=")
        meanings = text.split()
        for meant in meanings:
            add(written, meant, tuning.ABBREVIATION * (1.0 if len(meanings) == 1 else _SEVERAL_MEANINGS))
    return out
