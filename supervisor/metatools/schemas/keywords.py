"""Which keywords of JSON Schema (2020-12 and draft 7) hold schemas, and which hold what is none. Pure."""

from __future__ import annotations

DEFINITIONS = ("$defs", "definitions")
DATA = ("const", "enum", "default", "examples", "example")
"""Keywords whose value is data: a `$ref` in it is not a reference."""
NAMED = ("properties", "patternProperties", "dependentSchemas", *DEFINITIONS)
"""Keywords whose value has names for keys: a property may be called `$defs`, `enum` or `properties`."""
REMARKS = frozenset({"title", "$comment", "examples", "example"})
"""Keywords that say nothing about what is accepted."""
