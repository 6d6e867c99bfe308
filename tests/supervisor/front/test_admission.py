"""Who may ask for which page: every route that there is has its row, and nobody gets by without the role for it."""

from __future__ import annotations

import re

import pytest

from supervisor.front.pages import rights
from supervisor.front.pages.app import create_app
from supervisor.front.pages.rights import ANYBODY, AUDITORS, MEMBERS, may_ask
from supervisor.front.pages.sockets import PATHS
from supervisor.front.wiring import ROUTES
from supervisor.identity.people import ROLES, Person, Role
from supervisor.identity.requester import Requester
from tests.supervisor.front.pages.test_api import view

ADMINS = {
    "POST /api/trust",
    *("POST /api/reload", "POST /api/servers", "PATCH /api/servers/<path:server>", "DELETE /api/servers/<path:server>"),
    "POST /api/servers/<server>/<order>",
    *("GET /api/access-tokens", "POST /api/access-tokens", "DELETE /api/access-tokens/<id_>"),
    *(
        "GET /api/questions",
        "GET /api/questions/<question>",
        "POST /api/questions/<question>",
        "GET /questions",
        "GET /questions/<question>",
    ),
    *("POST /questions/<question>",),
}
"""What is for an admin, as it is not in the table of rights."""


def routes() -> set[str]:
    app = create_app()
    for add in ROUTES.values():
        add(view(), app)
    found = {f"GET {path}" for path in PATHS} | {"GET /"}
    for rule in app.url_map.iter_rules():
        path = re.sub(r"<any\(.*?\):order>", "<order>", rule.rule)
        found |= {f"{method} {path}" for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}}
    return {route.replace("{server}", "<server>") for route in found}


def test_every_route_has_its_row() -> None:
    assert routes() - {*ANYBODY, *MEMBERS, *AUDITORS} == ADMINS
    assert {*ANYBODY, *MEMBERS, *AUDITORS} <= routes()


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("route", sorted(routes()))
def test_a_route_is_for_its_roles_alone(route: str, role: Role) -> None:
    method, rule = route.split()
    needed = 0 if route in {*ANYBODY, *MEMBERS} else 1 if route in AUDITORS else 2
    assert may_ask(Requester(person=Person(user="x", role=role)), method, rule) == (ROLES.index(role) >= needed)


def test_what_is_new_is_for_an_admin() -> None:
    assert not may_ask(Requester(person=Person(user="x", role="auditor")), "GET", "/api/new")
    assert rights.REQUESTER.get().person.may("admin"), "where nobody is asked who they are"
