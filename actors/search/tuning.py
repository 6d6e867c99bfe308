"""The weights of the ranking, in one frozen value. A weight of zero switches its technique off.

The defaults were chosen on development queries; `docs/search.md` says what each technique gives. Average field lengths
are constants and not measured on the catalogue: the weight of a word in a document then depends on that document alone,
so that replacing one server touches no other, and no server can move the scores of the others by being wordy.
"""

from __future__ import annotations

from typing import Literal

import msgspec

FieldName = Literal[
    "name", "server", "title", "summary", "description", "parameter", "parameter_text", "joined", "instructions"
]


class Field(msgspec.Struct, frozen=True):
    """One field of BM25F: its weight, how strongly its length counts (b, 0..1) and its usual length in words."""

    weight: float
    length_norm: float
    usual_words: float


DEFAULT_FIELDS: dict[FieldName, Field] = {
    "name": Field(2.2, 0.3, 3.1),
    "server": Field(3.5, 0.0, 1.5),
    "title": Field(1.0, 0.3, 3.0),
    "summary": Field(1.2, 0.4, 11.0),
    "description": Field(0.75, 0.4, 30.0),
    "parameter": Field(0.6, 0.9, 8.0),
    "parameter_text": Field(0.35, 0.9, 45.0),
    "joined": Field(1.76, 0.0, 3.0),
    "instructions": Field(0.15, 0.4, 60.0),
}


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """All weights. Shares and similarities are in 0..1; lengths are in words unless the name says otherwise."""

    # the document's side: changing these needs a new analysis
    fields: dict[FieldName, Field] = msgspec.field(default_factory=lambda: dict(DEFAULT_FIELDS))
    saturation: float = 0.8  # k1 of BM25
    repeat_limit: int = 4  # a word counts at most this often per field: repeating it is free, so it is worth little

    # a query word's alternatives
    synonym: float = 0.45
    abbreviation: float = 0.85
    other_form: float = 0.95  # another form of the same word (files for file); 1 makes all forms equal
    typo_one: float = 0.85
    typo_two: float = 0.5
    prefix: float = 0.7
    glued_neighbours: float = 0.9
    phrases: float = 0.7
    intents: float = 0.7  # a need that a turn of phrase stands for; 0 reads words only
    explained: float = 0.6  # a word that a turn of phrase explains
    rarity_cap: float = 1.25  # the idf of an alternative is at most this many times that of the word typed

    # a query word's weight by its role
    verb: float = 0.78
    low_information: float = 0.8
    weak: float = 0.5  # a word of everyday English, which may be rare among tools and says little all the same
    argument: float = 0.5  # what is written as a name, or says what something is about, and is no name here
    number: float = 0.3
    in_path: float = 0.35
    in_quotes: float = 0.5
    unknown: float = 0.15  # share of the greatest idf that an unknown word adds to what should be matched
    unknown_cjk: float = 0.03

    # the whole score
    idf_floor: float = 0.15
    name_coverage: float = 0.35
    query_coverage: float = 0.45
    server_prior: float = 0.2
    named_server: float = 0.3  # how much better the documents of a server are that the query names in full
    verb_contradiction: float = 0.12
    sentences_from: int = 24  # from this many words on every sentence is scored on its own
    whole_query: float = 0.35  # share of the whole query's score beside the best sentence's
    courtesy: float = 0.6  # weight of a sentence that greets, thanks or tells the circumstances
    referred: float = 0.4  # weight of what a wish leaves to the one before
    min_matched: float = 0.13  # share of the query's idf mass below which a document does not match

    # meanings, if the index has an embedder
    semantic: float = 0.65  # weight of the nearness of meanings beside 1 for the words, where these match nothing
    semantic_sure: float = 0.3  # share of that weight that is lost where the words match perfectly
    semantic_explained: float = 0.9  # share that is lost where rules of paraphrase explain every word
    semantic_words: int = 24  # in a query of more words it is lowered: so many are about as much as is embedded
    semantic_nearest: int = 10  # so many documents are found by their meaning alone

    # bounds
    max_query_chars: int = 4000
    max_query_words: int = 400
    max_query_terms: int = 60


DEFAULT_TUNING = Tuning()
"""The weights in use."""
