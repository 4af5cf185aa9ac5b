"""Nobody agrees to what they have not seen: the rule, at the use case, whatever the card draws."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agents import tool
from agents.chat.agent import ChatModelAgent
from agents.core.codec import Json
from agents.models import ScriptedModel, call, say
from bot.approvals.disclosure import MOST_SEEN, Opened, guesses, has_opened, is_yes, with_opened
from bot.audit.acts import Act
from bot.audit.report import story
from bot.errors import DeliveryError, NotSeenError
from bot.layout.action_ids import ActionId
from bot.questions.form import AnswerForm, Form, Option
from bot.records.approval import Approval, Decision, Kind, Status
from bot.slack.cards.card_for import card_for
from tests.support.stores import SqliteStores
from tests.unit.bot.counter_stage import ASK, Counter, a_click, a_submission, is_untouched, typed
from tests.unit.bot.office import ADA, BEN, GUS, ROSA, THREAD_ID, Office
from tests.unit.bot.slack.cards.samples import an_approval, asking

TOKEN = "tok3n-0f-4-bank"
RUN = call("run", {"command": f"API_KEY={TOKEN} ./deploy"}, id="c1")
LONG = call("run", {"command": "echo hi; " * 300}, id="c1")


def an_agent(ran: list[tuple[str, object]]) -> Callable[[ScriptedModel], ChatModelAgent]:
    @tool(gate="review", title="Run a command")
    def run(command: str, note: str = "") -> str:
        """Run it."""
        ran.append(("run", command))
        return "done"

    return lambda model: ChatModelAgent(name="A", model=model, tools=[run])


async def an_office(storage: SqliteStores, what: object = RUN) -> Office:
    ran: list[tuple[str, object]] = []
    office = Office(storage, [what, say("Done.")], make_agent=an_agent(ran), ran=ran)  # type: ignore[list-item]
    await office.hear(ASK)
    return office


async def nothing() -> None:
    """Slack took the form."""


# ---- what is a guess, what is a yes ------------------------------------------------------------


def holding(**arguments: object) -> Approval:
    return an_approval(arguments=arguments, form=None)


def test_guesses_are_named() -> None:
    approval = holding(token="abc", note="a b", command="API_KEY=abc x", card="4111111111111111")
    assert guesses(approval) == ("token", "command", "card")
    assert guesses(holding(note="password: `x`")) == ()


def test_what_is_declared_is_no_guess() -> None:
    ask = AnswerForm(form=Form.CALL, secret=("token",), shown=("order",))
    approval = asking(ask, arguments={"token": "abc", "order": "4111111111111111"})
    assert guesses(approval) == ()


def test_options_and_texts_are_agreed_to_as_well() -> None:
    options = (Option(id="a", label="use token=abc123"), Option(id="b", label="B"))
    ask = AnswerForm(form=Form.CHOICE, question="token=xyz or", options=options)
    assert guesses(asking(ask, arguments={})) == ("question", "option 1")
    text = asking(AnswerForm(form=Form.FEEDBACK), arguments={"content": "token=abc123"})
    assert guesses(text) == ("content",)


@pytest.mark.parametrize(
    "ask", [AnswerForm(form=Form.TEXTS), AnswerForm(form=Form.PROGRAM), AnswerForm(form=Form.HUMAN)]
)
def test_where_nobody_agrees_there_is_nothing_to_open(ask: AnswerForm) -> None:
    assert guesses(asking(ask, kind=Kind.QUESTION, arguments={"token": "abc"})) == ()


@pytest.mark.parametrize(
    "ask",
    [
        AnswerForm(form=Form.FIELDS),
        AnswerForm(form=Form.HUMAN, allowed=("accept", "ignore")),
        AnswerForm(form=Form.HUMAN, allowed=("edit",)),
    ],
)
def test_what_lets_a_call_run_is_agreed_to(ask: AnswerForm) -> None:
    assert guesses(asking(ask, arguments={"token": "abc"})) == ("token",)


def test_fields_of_a_question_without_a_call_are_not_agreed_to() -> None:
    assert guesses(asking(AnswerForm(form=Form.FIELDS), tool="", arguments={"token": "a"})) == ()


def chose(status: Status, answer: Json = None) -> Decision:
    return Decision(status=status, by=ADA, at_ms=1, answer=answer)


@pytest.mark.parametrize(
    ("approval", "decision", "agrees"),
    [
        (an_approval(), chose(Status.APPROVED), True),
        (an_approval(), chose(Status.REJECTED), False),
        (an_approval(), chose(Status.EXPIRED), False),
        (an_approval(kind=Kind.DOUBT), chose(Status.APPROVED), True),
        (an_approval(kind=Kind.DOUBT), chose(Status.ANSWERED), False),
        (asking(AnswerForm(form=Form.CHOICE)), chose(Status.ANSWERED, {"selected": ["a"]}), True),
        (asking(AnswerForm(form=Form.CHOICE)), chose(Status.REJECTED), False),
        (
            asking(AnswerForm(form=Form.CHOICE)).changed(kind=Kind.DOUBT),
            chose(Status.ANSWERED),
            False,
        ),
        (asking(AnswerForm(form=Form.FEEDBACK)), chose(Status.ANSWERED, {"accepted": True}), True),
        (asking(AnswerForm(form=Form.FEEDBACK)), chose(Status.ANSWERED, {"feedback": "no"}), False),
        (asking(AnswerForm(form=Form.FIELDS)), chose(Status.ANSWERED, {"values": {}}), True),
        (
            asking(AnswerForm(form=Form.FIELDS), tool=""),
            chose(Status.ANSWERED, {"values": {}}),
            False,
        ),
        (asking(AnswerForm(form=Form.HUMAN)), chose(Status.ANSWERED, '["x"]'), False),
        (
            asking(AnswerForm(form=Form.TEXTS), kind=Kind.QUESTION),
            chose(Status.ANSWERED, '["x"]'),
            False,
        ),
    ],
)
def test_what_is_a_yes(approval: Approval, decision: Decision, agrees: bool) -> None:
    assert is_yes(approval, decision) is agrees


def test_opened_is_bound_to_person_and_digest() -> None:
    approval = an_approval()
    seen = approval.changed(seen=with_opened(approval, ADA, Opened.CLEAR))
    assert has_opened(seen, ADA, Opened.CLEAR)
    assert has_opened(seen, ADA, Opened.DETAILS)
    assert not has_opened(seen, BEN, Opened.CLEAR)
    assert not has_opened(seen.changed(digest="e" * 64), ADA, Opened.CLEAR)
    half = approval.changed(seen=with_opened(approval, ADA, Opened.DETAILS))
    assert not has_opened(half, ADA, Opened.CLEAR)


def test_only_so_many_people_are_remembered() -> None:
    approval = an_approval()
    for number in range(MOST_SEEN + 5):
        seen = with_opened(approval, f"U{number}", Opened.CLEAR)
        approval = approval.changed(seen=with_opened(approval, f"U{number}", Opened.CLEAR))
        assert seen == approval.seen
    assert len(approval.seen) == MOST_SEEN
    assert not has_opened(approval, "U0", Opened.CLEAR)
    assert has_opened(approval, f"U{MOST_SEEN + 4}", Opened.CLEAR)


# ---- the use case ------------------------------------------------------------------------------


async def test_what_is_cut_has_to_be_opened(storage: SqliteStores) -> None:
    office = await an_office(storage, LONG)
    approval = await office.the_approval()
    with pytest.raises(NotSeenError, match=r"Some of this isn't on the card.*Details"):
        await office.decide(approval)
    await office.approvals.note_details(approval, ADA)
    await office.decide(await office.the_approval())
    assert len(office.ran) == 1


async def test_a_reveal_is_on_record_without_the_value(storage: SqliteStores) -> None:
    office = await an_office(storage)
    await office.approvals.reveal(await office.the_approval(), ADA, nothing)
    entries = await story(storage, thread_id=THREAD_ID)
    (entry,) = [record for record in entries if record.action == Act.REVEALED]
    assert entry.actor_id == ADA
    assert entry.detail["fields"] == ["command"]
    assert TOKEN not in str(entries)


async def test_what_slack_did_not_open_was_not_seen(storage: SqliteStores) -> None:
    office = await an_office(storage)
    approval = await office.the_approval()

    async def fails() -> None:
        raise DeliveryError("views.open", "expired_trigger_id")

    with pytest.raises(DeliveryError):
        await office.approvals.reveal(approval, ADA, fails)
    with pytest.raises(NotSeenError):
        await office.decide(await office.the_approval())


async def test_two_who_look_at_once_have_both_seen_it(storage: SqliteStores) -> None:
    office = await an_office(storage)
    stale = await office.the_approval()
    await office.approvals.reveal(stale, ADA, nothing)
    await office.approvals.reveal(stale, BEN, nothing)
    approval = await office.the_approval()
    assert has_opened(approval, ADA, Opened.CLEAR)
    assert has_opened(approval, BEN, Opened.CLEAR)


async def test_what_was_decided_meanwhile_is_not_marked(storage: SqliteStores) -> None:
    office = await an_office(storage)
    stale = await office.the_approval()
    await office.decide(stale, Status.REJECTED)
    await office.approvals.reveal(stale, ADA, nothing)
    await office.approvals.note_details(await storage.approvals.get(stale.approval_id), ADA)
    assert (await storage.approvals.get(stale.approval_id)).seen == ()
    assert Act.OPENED not in await office.acts()


async def test_a_reveal_of_what_is_no_guess_names_the_arguments(storage: SqliteStores) -> None:
    office = await an_office(storage, LONG)
    await office.approvals.reveal(await office.the_approval(), ADA, nothing)
    entries = await story(storage, thread_id=THREAD_ID)
    assert [entry.detail["fields"] for entry in entries if entry.action == Act.REVEALED] == [
        ["arguments"]
    ]


async def test_i12_why_a_yes_to_what_was_not_seen_was_refused_is_on_record(
    storage: SqliteStores,
) -> None:
    office = await an_office(storage)
    with pytest.raises(NotSeenError) as refused:
        await office.decide(await office.the_approval())
    entries = await story(storage, thread_id=THREAD_ID)
    whys = [entry.detail["why"] for entry in entries if entry.action == Act.REFUSED]
    assert whys == [str(refused.value)]


async def test_details_are_noted_once_for_each_person(storage: SqliteStores) -> None:
    office = await an_office(storage)
    for user_id in (ADA, ADA, BEN, ADA):
        await office.approvals.note_details(await office.the_approval(), user_id)
        office.clock.forward(seconds=1)
    entries = await story(storage, thread_id=THREAD_ID)
    assert [entry.actor_id for entry in entries if entry.action == Act.OPENED] == [ADA, BEN]


# ---- the buttons -------------------------------------------------------------------------------


async def test_reveal_shows_the_clear_text_to_who_may_decide(storage: SqliteStores) -> None:
    counter = Counter.on(await an_office(storage))
    approval = await counter.office.the_approval()
    assert TOKEN not in str(card_for(approval, approvers_text=""))
    assert (await counter.send(a_click(approval, ActionId.APPROVE))).status == 200
    assert TOKEN not in str(counter.views.opened)
    assert "Select Reveal…" in str(counter.views.opened[-1])
    assert "submit" not in counter.views.opened[-1]
    assert (await counter.send(a_click(approval, ActionId.REVEAL))).status == 200
    assert TOKEN in str(counter.views.opened)
    assert counter.views.opened[-1]["submit"]["text"] == "Approve"
    assert (await counter.send(a_click(approval, ActionId.APPROVE))).status == 200
    assert len(counter.office.ran) == 1


@pytest.mark.parametrize("user_id", [ROSA, GUS, "USTRANGER"])
async def test_reveal_is_refused_to_who_may_not_decide(storage: SqliteStores, user_id: str) -> None:
    counter = Counter.on(await an_office(storage))
    approval = await counter.office.the_approval()
    assert (await counter.send(a_click(approval, ActionId.REVEAL, user_id))).status == 200
    assert counter.private_text(user_id)
    assert counter.views.opened == []
    assert (await counter.office.the_approval()).seen == ()


async def test_details_are_open_to_all_and_keep_the_mask(storage: SqliteStores) -> None:
    counter = Counter.on(await an_office(storage))
    approval = await counter.office.the_approval()
    assert (await counter.send(a_click(approval, ActionId.DETAILS, ROSA))).status == 200
    assert TOKEN not in str(counter.views.opened)
    assert "redacted" in str(counter.views.opened)


async def test_the_form_of_an_edit_does_not_open_before(storage: SqliteStores) -> None:
    counter = Counter.on(await an_office(storage))
    approval = await counter.office.the_approval()
    assert (await counter.send(a_click(approval, ActionId.EDIT))).status == 200
    assert "Select Reveal…" in counter.private_text(ADA)
    forged = a_submission(approval, ActionId.EDIT_MODAL, typed("argument_1", "x"))
    assert "Reveal" in (await counter.send(forged)).body
    await is_untouched(counter)
