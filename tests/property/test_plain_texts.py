"""No text that a program gets has Slack's markup: mentions become names, dates become text."""

from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import given, strategies as st

from bot.api.problems import ApiProblemError
from bot.api.states import state_of
from bot.records.approval import Decision, Execution, Status
from bot.records.origin import ProgramCall, RequestDoor, RequestOrigin
from bot.words.mrkdwn import clock, date, mention, untagged
from tests.contract.builders import DIGEST, an_approval

MARKUP = re.compile(
    r"<(?:@|#|!subteam\^)[A-Z0-9]+(?:\|[^<>]*)?>|<!(?:[a-z]+|date\^[^<>]*)(?:\|[^<>]*)?>"
)
IDS = st.from_regex(r"[UWSCG][A-Z0-9]{1,12}", fullmatch=True)
TIMES = st.integers(0, 4_000_000_000_000)
TAGS = st.one_of(
    IDS.filter(lambda name: name[0] in "UWS").map(mention),
    IDS.map(lambda name: f"<#{name}|ops>"),
    st.sampled_from(["<!here>", "<!channel|channel>", "<<@U1>@U2>", "<@<@U1>>", "<!<@U1>here>"]),
    TIMES.map(date),
    TIMES.map(clock),
)
TEXTS = st.lists(st.one_of(TAGS, st.text(max_size=9)), max_size=6).map("".join)
CALL = ProgramCall(program="prg_1", key_digest=DIGEST, fingerprint=DIGEST, wants="approval")
ORIGIN = RequestOrigin(door=RequestDoor.API, program="prg_1", program_name="ci", owner="U1")


async def name_of(slack_id: str) -> str:
    return f"name of {slack_id.lower()}"


@given(text=TEXTS, status=st.sampled_from([Status.UNDECIDABLE, Status.DENIED, Status.REJECTED]))
def test_a_request_has_no_markup(text: str, status: Status) -> None:
    approval = an_approval(approval_id=f"apr_{'0' * 32}").changed(
        asker=CALL,
        origin=ORIGIN,
        decision=Decision(status=status, by="", at_ms=2, reason=text),
        status=status,
        execution=Execution(text=text),
    )
    state = state_of(approval, url="", now_ms=3, is_usable=False, name_of=name_of)
    fields = asyncio.run(state).model_dump()
    reason = fields["failure"]["detail"] if fields["failure"] else fields["decision"]["reason"]
    for shown in (reason, fields["execution"]["summary"]):
        assert not MARKUP.search(shown or "")


@given(text=TEXTS)
def test_a_problem_has_no_markup(text: str) -> None:
    assert not MARKUP.search(ApiProblemError("decision-lapsed", text).detail)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("<!subteam^S1> has nobody left", "@oncall has nobody left"),
        ("<@U1>, <@U2> in <#C1|ops>", "Ada, U2 in C1"),
        ("a < b & c > d, <b>", "a < b & c > d, <b>"),
    ],
)
def test_names_stand_for_mentions_and_other_text_stays(text: str, plain: str) -> None:
    assert untagged(text, {"S1": "@oncall", "U1": "Ada"}) == plain
