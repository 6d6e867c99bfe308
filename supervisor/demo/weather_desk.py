"""A demo server whose list of tools changes while it runs (legacy era): opening a station adds a tool.

The weather is made up from the name of the place, so that nothing needs a network. `python -m
supervisor.demo.weather_desk`.
"""

from __future__ import annotations

import zlib
from typing import Any

from supervisor.demo.stdio_server import StdioServer

PLACE = {"type": "string", "description": "Name of a place, letters only"}
SKIES = ("clear sky", "scattered clouds", "light rain", "fog", "strong wind")

server = StdioServer("weather-desk", instructions="Made-up weather; open a station to get a tool for a place.")


def report(place: str) -> dict[str, Any]:
    number = zlib.crc32(place.casefold().encode())
    return {"place": place, "sky": SKIES[number % len(SKIES)], "temperature_c": number // 7 % 35 - 5}


@server.tool("Tell the weather of a place", place=PLACE, read_only=True)
def forecast(arguments: dict[str, Any]) -> dict[str, Any]:
    return report(str(arguments["place"]))


@server.tool("Open a weather station: a tool for that place appears", place=PLACE)
def open_station(arguments: dict[str, Any]) -> str:
    place = str(arguments["place"])
    if not place.isascii() or not place.isalpha():
        raise ValueError("a place has letters only")
    name = f"observe_{place.lower()}"
    description = f"Observe the weather at the station in {place}: sky and temperature"
    server.add_tool(name, description, {}, lambda _: report(place), read_only=True)
    server.announce_tools()
    return f"The station in {place} is open; its tool is {name}."


@server.tool("Close a weather station: its tool goes", place=PLACE)
def close_station(arguments: dict[str, Any]) -> str:
    place = str(arguments["place"])
    if not server.remove_tool(f"observe_{place.lower()}"):
        raise ValueError(f"there is no station in {place}")
    server.announce_tools()
    return f"The station in {place} is closed."


if __name__ == "__main__":
    server.serve()
