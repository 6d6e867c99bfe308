"""The weights of the ranking. Shares and similarities are in 0..1; lengths are in words unless the name says otherwise.

They were chosen on development queries; `docs/background/search-quality.md` says what each technique gives. Average
field lengths are constants and not measured on the catalogue: the weight of a word in a document then depends on that
document alone, so that replacing one server touches no other, and no server can move the scores of the others by being
wordy.
"""

from __future__ import annotations

from typing import Literal

import msgspec

FieldName = Literal[
    "name",
    "server",
    "title",
    "summary",
    "description",
    "parameter",
    "parameter_text",
    "joined",
    "instructions",
    "said",
]


class Field(msgspec.Struct, frozen=True):
    """One field of BM25F: its weight, how strongly its length counts (b, 0..1) and its usual length in words."""

    weight: float
    length_norm: float
    usual_words: float


# the document's side
FIELDS: dict[FieldName, Field] = {
    "name": Field(2.2, 0.3, 3.1),
    "server": Field(3.5, 0.0, 1.5),
    "title": Field(1.0, 0.3, 3.0),
    "summary": Field(1.2, 0.4, 11.0),
    "description": Field(0.75, 0.4, 30.0),
    "parameter": Field(0.6, 0.9, 8.0),
    "parameter_text": Field(0.35, 0.9, 45.0),
    "joined": Field(1.76, 0.0, 3.0),
    "instructions": Field(0.15, 0.4, 60.0),
    "said": Field(0.8, 0.4, 11.0),
}
SATURATION = 0.8  # k1 of BM25
DEPRECATED = 0.8  # what words count of a document that its server advises against: its successor has the same ones
REPEAT_LIMIT = 4  # a word counts at most this often per field: repeating it is free, so it is worth little

# a query word's alternatives
SYNONYM = 0.45
ABBREVIATION = 0.85
OTHER_FORM = 0.95  # another form of the same word (files for file)
TYPO_ONE = 0.85
TYPO_TWO = 0.5
PREFIX = 0.7
GLUED_NEIGHBOURS = 0.9
PHRASES = 0.7
INTENTS = 0.7  # a need that a turn of phrase stands for
EXPLAINED = 0.6  # a word that a turn of phrase explains
RARITY_CAP = 1.25  # the idf of an alternative is at most this many times that of the word typed

# a query word's weight by its role
VERB = 0.78
LOW_INFORMATION = 0.8
WEAK = 0.5  # a word of everyday English, which may be rare among tools and says little all the same
ARGUMENT = 0.5  # what is written as a name, or says what something is about, and is no name here
NUMBER = 0.3
IN_PATH = 0.35
IN_QUOTES = 0.5
UNKNOWN = 0.15  # share of the greatest idf that an unknown word adds to what should be matched
UNKNOWN_CJK = 0.03

# the whole score
IDF_FLOOR = 0.15
SENTENCES_PRIOR = 1000  # how often people say a word is read from so many documents and those that have sentences
NAME_COVERAGE = 0.35
QUERY_COVERAGE = 0.45
SERVER_PRIOR = 0.2
NAMED_SERVER = 0.3  # how much better the documents of a server are that the query names in full
VERB_CONTRADICTION = 0.12
SENTENCES_FROM = 24  # from this many words on every sentence is scored on its own
WHOLE_QUERY = 0.35  # share of the whole query's score beside the best sentence's
COURTESY = 0.6  # weight of a sentence that greets, thanks or tells the circumstances
REFERRED = 0.4  # weight of what a wish leaves to the one before
MIN_MATCHED = 0.13  # share of the query's idf mass below which a document does not match

# meanings, if the index has an embedder
SEMANTIC = 0.65  # weight of the nearness of meanings beside 1 for the words, where these match nothing
SEMANTIC_SURE = 0.3  # share of that weight that is lost where the words match perfectly
SEMANTIC_EXPLAINED = 0.9  # share that is lost where rules of paraphrase explain every word
SEMANTIC_WORDS = 24  # in a query of more words it is lowered: so many are about as much as is embedded
SEMANTIC_NEAREST = 10  # so many documents are found by their meaning alone

# bounds
MAX_QUERY_CHARS = 4000
MAX_QUERY_WORDS = 400
MAX_QUERY_TERMS = 60
