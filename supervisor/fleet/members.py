"""Who is in the fleet, as one node knows it: all members at first, then what the feed says. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from supervisor.fleet.placement import heir_of, rank
from supervisor.fleet.records import Node, NodeGone, NodeSeen


class Members:
    """All nodes that are members, by incarnation."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._lives: dict[str, Node] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def reset(self, nodes: Iterable[Node]) -> None:
        self._nodes = {node.incarnation: node for node in nodes}
        self._lives = {node.life: node for node in self._nodes.values()}

    def take(self, entry: NodeSeen | NodeGone) -> None:
        match entry:
            case NodeSeen(node=node):
                self._nodes[node.incarnation] = self._lives[node.life] = node
            case NodeGone(incarnation=incarnation):
                gone = self._nodes.pop(incarnation, None)
                if gone is not None and self._lives.get(gone.life) is gone:
                    del self._lives[gone.life]

    def find(self, incarnation: str) -> Node | None:
        return self._nodes.get(incarnation)

    def find_life(self, life: str) -> Node | None:
        return self._lives.get(life)

    def heir(self, session: str) -> Node | None:
        return heir_of(session, self._nodes.values())

    def all(self) -> list[Node]:
        return [*self._nodes.values()]

    def place(self, launch: str, configuration: str, most: int = 3) -> list[Node]:
        """Return where a launch is placed, best first, among those that have read the same configuration."""
        return rank(launch, (node for node in self._nodes.values() if node.configuration == configuration), most)
