"""What keeps the actors running and shows them to clients and operators."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("mcpvisor")
except PackageNotFoundError:  # run from a checkout that is not installed
    __version__ = "0+unknown"
