"""A sentence model for the search: read from an installed package, run by numpy. No network, no framework."""

from supervisor.neural.model import SentenceModel as SentenceModel
from supervisor.neural.package import MINILM as MINILM
from supervisor.neural.package import Source as Source
from supervisor.neural.package import load as load
