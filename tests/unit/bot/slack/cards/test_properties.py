"""Whatever a model writes: Slack takes the card, and nothing in it is obeyed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agents.core.codec import Json
from bot.approvals.disclosure import Surface
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Card
from bot.questions.call import CallQuestion
from bot.questions.drawing import OpenModal, drawn_question
from bot.questions.form import AnswerForm, Form, Option
from bot.records.approval import Approval, Kind, Status
from bot.redaction.masks import masked_once
from bot.slack.cards.agent_text import MOST, reply_cards
from bot.slack.cards.approval import describe
from bot.slack.cards.card_for import card_for, shows_all
from bot.slack.cards.details import details_modal, fits_details
from bot.slack.cards.review import FormReader, review_modal
from slack_sandbox.blockkit.rules import UPDATE_TEXT, message_errors, text_characters, view_errors
from tests.unit.bot.asked import details_of, edit_modal, form_of, review_pages
from tests.unit.bot.slack.cards.samples import (
    a_doubt,
    a_feedback,
    a_form,
    a_human,
    a_step,
    an_approval,
    decided,
)

NASTY = (
    "<!channel>",
    "<@U0EVIL>",
    "<https://evil.example|https://good.example>",
    "```",
    "`*_~",
    "\u202edesrever",
    "\u200b\u2066\ufeff\x00\x1b[31m",
    "\n" * 1_000,
    "\n*Approved* by <@U0CFO>\n",
    "&amp;" * 50,
    "& < >" * 400,
    "a\u0301" + "\u0301" * 60,
    "x" * 20_000,
    "\ud800",
    "xoxb-123456789-abcdefghij",
    ":tada: @here",
    "\U0001f469\u200d\U0001f692",
)
texts = st.one_of(
    st.sampled_from(NASTY),
    st.text(max_size=40),
    st.lists(st.sampled_from(NASTY), max_size=4).map("".join),
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
arguments = st.one_of(
    st.dictionaries(texts, values, max_size=6),
    st.just({f"name_{index}": "v" * 50 for index in range(300)}),
)
options = st.lists(
    st.builds(Option, id=texts, label=texts, description=texts, value=values),
    max_size=12,
    unique_by=lambda option: option.id,
) | st.just([Option(id=str(number), label="x" * 80) for number in range(130)])
schemas = st.none() | st.builds(
    lambda names, needed: {
        "type": "object",
        "properties": {
            name: {"type": kind, "description": name, "title": name} for name, kind in names.items()
        },
        "required": list(names) if needed else [],
    },
    st.dictionaries(
        texts, st.sampled_from(["string", "integer", "boolean", "array", "object"]), max_size=5
    ),
    st.booleans(),
)
asks = st.builds(
    AnswerForm,
    form=st.sampled_from(Form),
    schema=schemas,
    question=texts,
    options=options.map(tuple),
    multiple=st.booleans(),
    can_decline=st.booleans(),
    allowed=st.lists(st.sampled_from(["accept", "ignore", "response", "edit"]), unique=True).map(
        tuple
    ),
    reason=texts,
    label=st.sampled_from(["", "State"]),
    program=texts,
).map(AnswerForm.to_data)
asked = st.builds(
    lambda questions, content, shown: {"questions": questions, "content": content, "shown": shown},
    st.lists(texts, max_size=3),
    texts,
    st.dictionaries(texts, values, max_size=3),
)
outcomes = st.builds(
    lambda ids, given, text: {"selected": ids, "values": given, "feedback": text},
    st.lists(texts, max_size=3),
    st.dictionaries(texts, values, max_size=3),
    texts,
)
approvals = st.builds(
    an_approval,
    kind=st.sampled_from(Kind),
    title=texts,
    why=texts,
    preview=texts,
    tool=texts,
    rule=texts,
    arguments=arguments | asked,
    form=st.sampled_from([None, {"type": "object"}, {}]) | asks,
    self_approval=st.booleans(),
    requester_id=st.sampled_from(["U0ROSA", "W0GRID", "<!here>"]),
    created_ms=st.integers(-10, 10**18),
    expires_ms=st.integers(-10, 10**18),
)
quick = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
OURS = {"<@U0ROSA>", "<@W0GRID>", "<@U0BEN>"}

shorts = st.text("az AZ09-_.,:;'!@#xo+=\"\\&<{[•é\n\t\u200b", max_size=50) | st.sampled_from(
    ["production", "xoxb-123456789-abcdefghij", "x" * 90, "a" * 160, "hunter2", "W0lf-Tail_9x7Q2z"]
)
names = shorts | st.sampled_from(["password", "api_key", "pathToTheFile", "aB" * 25])
plain_values = shorts | st.integers() | st.booleans() | st.none()
short_approvals = st.builds(
    an_approval,
    title=shorts,
    preview=shorts | st.just(""),
    arguments=st.dictionaries(names, plain_values, max_size=15)
    | st.sampled_from([{"questions": "x"}, {}]),
    form=st.builds(
        lambda label, titles: AnswerForm(form=Form.CALL, label=label, labels=titles).to_data(),
        st.just("") | shorts,
        st.dictionaries(names, shorts, max_size=4),
    ),
)


@settings(quick, max_examples=max(settings().max_examples, 50))
@given(
    approval=short_approvals | approvals.map(lambda approval: approval.changed(kind=Kind.APPROVAL))
)
def test_what_a_click_may_skip_is_what_the_drawn_card_shows_whole(approval: Approval) -> None:
    assert shows_all(approval, Surface.CARD) == (not describe(approval).hidden)


@quick
@given(approval=approvals, approvers=texts)
def test_pending_card_is_safe(approval: Approval, approvers: str) -> None:
    text = f"{approvers.replace('<@U0', '')} <@U0BEN>"
    check(card_for(approval, approvers_text=text))


@quick
@given(
    approval=approvals,
    status=st.sampled_from([status for status in Status if status is not Status.PENDING]),
    reason=texts,
    edited=st.none() | arguments,
    answer=st.sampled_from([None, [], {"choice": "ran"}, "{"]) | arguments | outcomes,
    by=st.sampled_from(["U0BEN", "", "<!here>"]),
)
def test_final_card_is_safe_and_decides_nothing(
    approval: Approval,
    status: Status,
    reason: str,
    edited: dict[str, Json] | None,
    answer: Json,
    by: str,
) -> None:
    done = decided(approval, status, reason=reason, arguments=edited, answer=answer, by=by)
    card = card_for(done, approvers_text="")
    check(card)
    made = list(walk(card.blocks))
    way_out = {ActionId.ASK_ADMIN} if status is Status.UNDECIDABLE else set[ActionId]()
    buttons = {part["action_id"] for part in made if "action_id" in part}
    assert buttons <= {ActionId.DETAILS, *way_out}
    assert any(part.get("type") == "actions" for part in made) == bool(way_out)


@quick
@given(approval=approvals)
def test_modals_are_safe(approval: Approval) -> None:
    question = drawn_question(approval)
    reader = FormReader(can_approve=True, can_reject=True, why="<@U0BEN>", has_read=False)
    with masked_once():
        views = [details_modal(approval), *review_pages(approval), *review_pages(approval, reader)]
    for action in ActionId:
        with suppress(InvalidInputError):
            result = question.press(action)
            views += [form_of(approval, result)] if isinstance(result, OpenModal) else []
    for view in views:
        assert view_errors(view) == []
        check_parts(view["blocks"])


@quick
@given(text=texts | st.lists(texts, max_size=12).map("\n".join))
def test_reply_is_safe_and_short(text: str) -> None:
    for card in reply_cards(text):
        assert len(card.text) <= MOST
        assert message_errors({"text": card.text, "blocks": card.blocks}) == []
        assert "<" not in card.text
        check_parts(card.blocks)


def test_undecided_final_status_is_still_drawn() -> None:
    for status in (Status.APPROVED, Status.EXPIRED):
        for kind in Kind:
            done = an_approval(kind=kind).changed(status=status)
            check(card_for(done, approvers_text=""))


def test_what_cannot_be_shown_cannot_be_approved() -> None:
    huge = an_approval(arguments={"data": "x" * 400_000}, form=None)
    card = card_for(huge, approvers_text="<@U0BEN>")
    check(card)
    ids = {part["action_id"] for part in walk(card.blocks) if "action_id" in part}
    assert ids == {"countersign:reject", "countersign:more"}
    question = drawn_question(huge)
    assert isinstance(question, CallQuestion)
    assert not fits_details(question)
    reader = FormReader(can_approve=True, can_reject=True)
    for view in (details_modal(huge, agrees=question.yes_inputs()), review_modal(huge, reader)):
        assert view_errors(view) == []
        assert "Too long to show in full" in json.dumps(view)
        assert "submit" not in view
        assert all(block["type"] != "input" for block in view["blocks"])


HUGE = {"data": "x" * 400_000}


@pytest.mark.parametrize(
    ("approval", "left"),
    [
        (a_form(arguments=HUGE), {ActionId.REJECT}),
        (a_human("accept", "ignore").changed(arguments=HUGE), {ActionId.IGNORE}),
        (
            a_human("response", "ignore").changed(arguments=HUGE),
            {ActionId.RESPOND, ActionId.IGNORE},
        ),
        (a_doubt(arguments=HUGE), {ActionId.RAN, ActionId.GIVE_UP, ActionId.AGAIN}),
        (a_feedback().changed(arguments={"content": "x" * 400_000}), set()),
        (a_step().changed(arguments=HUGE), {ActionId.REJECT}),
    ],
    ids=["missing arguments", "yes or skip", "answer or skip", "doubt", "feedback", "step"],
)
def test_what_cannot_be_shown_keeps_the_answers_that_agree_to_nothing(
    approval: Approval, left: set[ActionId]
) -> None:
    card = card_for(approval, approvers_text="<@U0BEN>")
    ids = {part["action_id"] for part in walk(card.blocks) if "action_id" in part}
    assert ids - {ActionId.MORE} == left


def test_a_20000_character_argument_is_whole_in_details() -> None:
    value = "".join(f"{index:05d}" for index in range(4_000))
    long = an_approval(arguments={"data": value}, form=None)
    card = card_for(long, approvers_text="<@U0BEN>")
    notes = json.dumps(card.blocks, ensure_ascii=False)
    assert "*19,800 more characters.* Approve… opens the full text first." in notes
    assert "countersign:details" in notes
    boxes = [
        part["elements"][0]["text"]
        for part in walk(details_of(long)["blocks"])
        if part.get("type") == "rich_text_preformatted"
    ]
    assert value in "".join(boxes)


@pytest.mark.parametrize("secret", ["xoxb-123456789-abcdefghij", "hunter2hunter2"])
def test_secret_is_nowhere(secret: str) -> None:
    approval = an_approval(
        title=f"Use password={secret}",
        why=f"password={secret}",
        preview=f"password={secret}",
        arguments={"password": secret, "nested": {"token": [secret]}, "a": "b"},
    )
    edited = {"password": f"{secret}2", "a": "c"}
    done = decided(approval, Status.APPROVED, reason=f"password={secret}", arguments=edited)
    made: list[object] = [*review_pages(approval), edit_modal(approval)]
    for record in (approval, done):
        card = card_for(record, approvers_text="")
        made += [card.text, card.blocks]
    assert secret not in json.dumps(made)


def check(card: Card) -> None:
    """Slack takes it, nothing is hidden in it, and it mentions only people whom we named."""
    assert message_errors({"text": card.text, "blocks": card.blocks}) == []
    assert text_characters({"blocks": card.blocks}) < 9_000
    assert len(card.text) < UPDATE_TEXT
    check_mrkdwn(card.text)
    check_parts(card.blocks)


def check_parts(blocks: list[dict[str, Any]]) -> None:
    for part in walk(blocks):
        kind, text = part.get("type"), part.get("text")
        assert kind not in {"user", "usergroup", "broadcast", "channel", "emoji", "markdown"}
        if kind == "link":
            assert part["url"] == text
        if kind == "mrkdwn":
            check_mrkdwn(str(text))
        if isinstance(text, str):
            assert not set("\u202e\u200b\u2066\ufeff\x00\x1b\ud800") & set(text)
            assert "\n" * 5 not in text


def check_mrkdwn(text: str) -> None:
    assert "\n*Approved*" not in text
    for piece in text.split("<")[1:]:
        tag = f"<{piece.split('>')[0]}>"
        assert tag in OURS or tag.startswith(("<!date^", "<#C1>")), tag


def walk(value: object) -> Iterator[dict[str, Any]]:
    """All objects in JSON data."""
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from walk(item)
