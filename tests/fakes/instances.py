"""Values that fit a JSON Schema, made from the schema alone, as a model that reads it would: the least, or all of it.

Enough of the language for the schemas of the tests; what is not understood raises, so that no test passes by accident.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

TEXTS = {
    "email": "a@example.org",
    "date": "2026-02-03",
    "date-time": "2026-02-03T04:05:06Z",
    "time": "04:05:06Z",
    "uri": "https://example.org/a",
    "uuid": "12345678-1234-4234-8234-123456789abc",
    "ipv4": "192.0.2.1",
    "hostname": "example.org",
}
PATTERNS = {"^[a-z]{2}-[0-9]+$": "ab-12", "^#[0-9a-f]{6}$": "#00ff00", "^\\d{4}$": "2026", "^x-": "x-a"}
UNDERSTOOD = frozenset(
    {
        *("$schema", "$defs", "definitions", "$id", "$comment", "title", "description", "default", "examples"),
        *("type", "const", "enum", "anyOf", "oneOf", "allOf", "$ref", "format", "pattern", "minLength", "maxLength"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "items", "prefixItems"),
        *("minItems", "maxItems", "uniqueItems", "properties", "required", "additionalProperties", "nullable"),
        *("patternProperties", "minProperties", "propertyNames", "deprecated", "readOnly", "dependentRequired"),
    }
)


class Instances:
    """Makes values of one schema. `everything`: optional properties too, references at most four deep."""

    def __init__(self, root: Any, *, everything: bool = False) -> None:
        self._root = root
        self._everything = everything

    def make(self) -> Any:
        return self._value(self._root, 0)

    def _value(self, schema: Any, depth: int) -> Any:
        if schema is True or schema == {}:
            return "anything"
        unknown = schema.keys() - UNDERSTOOD
        assert not unknown, f"the generator does not know {unknown}"
        if "$ref" in schema:
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            return self._value({**self._target(schema["$ref"]), **beside}, depth + 1)
        for key in ("const", "enum"):
            if key in schema:
                return schema[key] if key == "const" else schema[key][0]
        if "allOf" in schema:
            return self._value(self._merged(schema), depth)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self._value(schema[key][0], depth)
        return self._typed(schema, depth)

    def _typed(self, schema: Any, depth: int) -> Any:
        kind = schema.get("type", "object" if "properties" in schema else "string")
        match kind[0] if isinstance(kind, list) else kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "string":
                return self._text(schema)
            case "integer" | "number":
                return self._number(schema)
            case "boolean":
                return True
            case "null":
                return None
        raise AssertionError(f"the generator does not know the type {kind}")

    def _object(self, schema: Any, depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        wanted = list(schema.get("required", []))
        if self._everything and depth < 4:
            wanted += [name for name in properties if name not in wanted]
        made = {name: self._value(properties.get(name, {}), depth) for name in wanted}
        more = schema.get("additionalProperties")
        for pattern, inner in schema.get("patternProperties", {}).items():
            made[PATTERNS[pattern]] = self._value(inner, depth)
        while len(made) < schema.get("minProperties", 0):
            made[f"key{len(made)}"] = self._value(more if isinstance(more, dict) else {}, depth)
        return made

    def _array(self, schema: Any, depth: int) -> list[Any]:
        made = [self._value(item, depth) for item in schema.get("prefixItems", [])]
        least = max(schema.get("minItems", 0), int(self._everything and depth < 4 and "items" in schema))
        return made + [self._value(schema.get("items", {}), depth) for _ in range(len(made), least)]

    def _text(self, schema: Any) -> str:
        if "pattern" in schema:
            return PATTERNS[schema["pattern"]]
        text = TEXTS[schema["format"]] if "format" in schema else "text"
        return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength")]

    def _number(self, schema: Any) -> Any:
        step = schema.get("multipleOf", 1)
        least = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        number = -(-least // step) * step
        return number + step if number == schema.get("exclusiveMinimum") else number

    def _merged(self, schema: Any) -> Any:
        """Return an `allOf` of objects as one schema."""
        parts = [self._target(part["$ref"]) if "$ref" in part else part for part in schema["allOf"]]
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        merged: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        for part in [*parts, rest]:
            merged["properties"] |= part.get("properties", {})
            merged["required"] = [*merged["required"], *part.get("required", [])]
        return merged

    def _target(self, ref: str) -> Any:
        node = self._root
        for part in unquote(ref.removeprefix("#")).split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            node = node[int(key)] if isinstance(node, list) else node[key]
        return node
