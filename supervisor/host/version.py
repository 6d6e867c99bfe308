"""The version of the installed package. Reading it takes a part of the time until a command runs."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("mcpvisor")
except PackageNotFoundError:  # run from a checkout that is not installed
    VERSION = "0+unknown"
