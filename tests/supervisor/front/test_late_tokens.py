"""Whoever comes before the tokens are read is told to come again, not that theirs is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from supervisor.front.admission import Admission
from supervisor.front.edge.fields import Fields
from supervisor.front.edge.request import HttpRequest, NotAllowed
from supervisor.identity.operator_key import OperatorKey, endpoint, sign_pass
from supervisor.identity.requester import Requester
from supervisor.identity.tokens import SavedToken, TokenTable, digest_of, new_token
from supervisor.store.records import TOKENS
from tests.fakes.deployments import deployment
from tests.fakes.rows import MemoryRows

KEY, NOW, END = b"k" * 32, 100.0, endpoint(("127.0.0.1", 3001))


def request(token: str) -> HttpRequest:
    fields = Fields({b"authorization": f"Bearer {token}".encode()})
    asked = SimpleNamespace(
        fields=fields,
        query=b"",
        path="/mcp",
        target=b"/mcp",
        method="POST",
        address="127.0.0.1",
        sender="127.0.0.1",
        own_end=END,
        is_websocket=False,
    )
    return cast("HttpRequest", asked)


async def test_a_token_is_no_wrong_one_before_it_is_known_which_there_are() -> None:
    tokens, text = TokenTable(MemoryRows(TOKENS)), new_token()
    operator = OperatorKey(KEY, b"boot", lambda: NOW)
    admission = Admission(tokens, deployment(), operator, lambda: NOW)
    for _ in range(30):
        early = admission.admit(request(text))
        assert isinstance(early, NotAllowed)
        assert (early.status, early.lines) == (503, ((b"retry-after", b"1"),))
    assert admission.attempts.total == 0
    operators = sign_pass(KEY, operator.challenge(END)["challenge"], END, "POST", "/mcp")
    assert isinstance(admission.admit(request(operators)), Requester)
    for text_of_nobody in (operators, "x"):  # a pass is good once
        wrong = admission.admit(request(text_of_nobody))
        assert isinstance(wrong, NotAllowed)
        assert wrong.status == 401
    digest = digest_of(text)
    assert digest is not None
    tokens.take([SavedToken(digest=digest, user="ana", role="member", used_at=NOW)])
    assert isinstance(admission.admit(request(text)), Requester)
    other = admission.admit(request(new_token()))
    assert isinstance(other, NotAllowed)
    assert other.status == 401
