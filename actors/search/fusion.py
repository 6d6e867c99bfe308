"""Words and meanings in one score. Pure; one matrix product and a few passes over arrays of one number per document.

What the words say stays the greater part, and the better they match, the less meanings count: who writes the words of
a tool means that tool. A query none of whose words is known finds nothing, whatever its meaning: everything is near to
something, so nearness alone says nothing. The few documents nearest in meaning take part without a matching word.
"""

from __future__ import annotations

import numpy as np

from actors.search.corpus import Corpus
from actors.search.embedding import query_levels
from actors.search.postings import Bools, Floats
from actors.search.rank import Allowed
from actors.search.scoring import Scores

_LEAST_NEAREST = 0.2
"""If even the nearest document is farther away than this cosine, meanings count less for all of them."""

_TINY = 1e-6


def fused(
    corpus: Corpus, query: str, scores: Scores | None, mask: Bools | None, allowed: Allowed | None
) -> Scores | None:
    """Return the scores with the meanings' part; as they are without an embedder, or if no document matches.

    The greatest possible score stays the same: a document that is first by words and by meaning keeps its score.
    """
    weight = corpus.tuning.semantic
    if scores is None or corpus.embedder is None or not weight:
        return scores
    matching = scores.matching(corpus.tuning.min_matched)
    if not matching.any():
        return scores
    cosines = corpus.meanings.cosines(query_levels(corpus.embedder, query))
    near = _nearest(corpus, cosines, matching, mask, allowed)
    taking_part = matching | near
    greatest = max(_LEAST_NEAREST, float(cosines[taking_part].max()))
    top = scores.values[matching].max()
    weight *= 1 - min(1.0, float(top) / max(scores.perfect, _TINY))
    nearness = np.maximum(cosines, 0) * (np.float32(weight) / np.float32(greatest)) * top
    values = np.where(taking_part, (scores.values + nearness) / np.float32(1 + weight), 0).astype(np.float32)
    return Scores(values, scores.matched, scores.perfect, scores.chances, words=scores.values, near=near)


def _nearest(corpus: Corpus, cosines: Floats, matching: Bools, mask: Bools | None, allowed: Allowed | None) -> Bools:
    """Return the documents nearest in meaning, of those that may be seen; it is not asked again about matching ones."""
    visible = cosines if mask is None else np.where(mask, cosines, np.float32(0))
    most = corpus.tuning.semantic_nearest
    if allowed is None and 0 < most < len(visible):
        # all that are as near as the last one, in path order: ties must not fall by chance
        least = np.partition(visible, len(visible) - most)[len(visible) - most]
        candidates = np.flatnonzero(visible >= max(least, np.finfo(np.float32).tiny))
    else:
        candidates = np.flatnonzero(visible > 0)
    near: Bools = np.zeros(len(visible), np.bool_)
    taken = 0
    for number in candidates[np.lexsort((candidates, -visible[candidates]))].tolist():
        if taken == most:
            break
        if allowed is None or matching[number] or allowed(corpus.documents[number]):
            near[number] = True
            taken += 1
    return near
