"""A sentence model for the search: read from an installed package, run by numpy. No network, no framework."""

from supervisor.neural.model import SentenceModel
from supervisor.neural.package import MINILM, Source, load

__all__ = ["MINILM", "SentenceModel", "Source", "load"]
