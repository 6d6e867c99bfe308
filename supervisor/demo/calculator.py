"""A demo server of the modern era (2026-07-28): arithmetic without `eval`. `python -m supervisor.demo.calculator`."""

from __future__ import annotations

import ast
import operator
import statistics
from collections.abc import Callable
from typing import Any

from supervisor.demo.stdio_server import StdioServer

MAX_CHARS = 200
OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}

server = StdioServer("calculator", era="modern", instructions="Arithmetic and simple statistics.")


@server.tool(
    "Calculate the value of an arithmetic expression such as (2 + 3) * 4",
    expression={"type": "string", "description": "Numbers, + - * / % and parentheses"},
    read_only=True,
)
def calculate(arguments: dict[str, Any]) -> dict[str, Any]:
    expression = str(arguments["expression"])
    if len(expression) > MAX_CHARS:
        raise ValueError(f"an expression has at most {MAX_CHARS} characters")
    try:
        return {"value": _value(ast.parse(expression, mode="eval").body)}
    except (SyntaxError, ZeroDivisionError) as error:
        raise ValueError(str(error)) from None


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATIONS:
            return OPERATIONS[type(op)](_value(left), _value(right))
    raise ValueError("only numbers, + - * / % and parentheses are understood")


@server.tool(
    "Mean, median and standard deviation of a list of numbers",
    numbers={"type": "array", "items": {"type": "number"}, "description": "At least one number"},
    read_only=True,
)
def describe_numbers(arguments: dict[str, Any]) -> dict[str, Any]:
    numbers = [float(number) for number in arguments["numbers"]]
    if not numbers:
        raise ValueError("there are no numbers")
    return {
        "count": len(numbers),
        "mean": statistics.fmean(numbers),
        "median": statistics.median(numbers),
        "stdev": statistics.stdev(numbers) if len(numbers) > 1 else 0.0,
    }


if __name__ == "__main__":
    server.serve()
