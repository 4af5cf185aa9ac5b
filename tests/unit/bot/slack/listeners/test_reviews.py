"""The form about a card: its pages, who may agree in it, and what a forged one does: nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from agents import tool
from agents.chat.agent import ChatModelAgent
from agents.models import ScriptedModel, call, say
from bot.approvals.disclosure import Opened, has_opened, pages_read
from bot.layout.action_ids import ActionId, encode, encode_page
from bot.layout.short_ids import short_id
from bot.records.approval import Approval, Status
from bot.slack import modals
from bot.slack.modals import Window
from tests.support.force import forced
from tests.support.stores import SqliteStores
from tests.unit.bot.counter_stage import (
    ASK,
    PAY,
    Counter,
    Views,
    a_click,
    a_click_inside,
    a_submission,
    is_untouched,
    picked,
    typed,
)
from tests.unit.bot.office import ADA, BEN, CHANNEL, ROSA, THREAD_ID, Office

BODY = "Pack your desk. " * 700
"""It fills six pages."""


def an_agent(ran: list[tuple[str, object]]) -> Callable[[ScriptedModel], ChatModelAgent]:
    @tool(gate="review", title="Write to {to}")
    def write(to: str, body: str) -> str:
        """Write a mail."""
        ran.append(("write", to))
        return "written"

    return lambda model: ChatModelAgent(name="A", model=model, tools=[write])


async def a_mail(storage: SqliteStores) -> tuple[Counter, Approval]:
    ran: list[tuple[str, object]] = []
    asks = call("write", {"to": "Mia", "body": BODY}, id="c1")
    office = Office(storage, [asks, say("Done.")], make_agent=an_agent(ran), ran=ran)
    await office.hear(ASK)
    return Counter.on(office), await office.the_approval()


def turned(approval: Approval, page: str, counter: Counter, who: str = ADA, **more: Any) -> Any:
    value = encode_page(page, approval.approval_id, approval.digest)
    view = counter.views.opened[-1]
    return a_click_inside(approval, ActionId.PAGE_NEXT, view, who, value=value, **more)


def inputs(view: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {block["block_id"]: block for block in view["blocks"] if block["type"] == "input"}


def actions(view: dict[str, Any]) -> list[str]:
    rows = [block["elements"] for block in view["blocks"] if block["type"] == "actions"]
    return [button["action_id"].removeprefix("countersign:") for row in rows for button in row]


def label(view: dict[str, Any]) -> str:
    return view["submit"]["text"] if "submit" in view else ""


# ---- who sees what -----------------------------------------------------------------------------


async def test_who_can_decide_reviews_and_is_told_why(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    await counter.send(a_click(approval, ActionId.DETAILS))
    (view,) = counter.views.opened
    assert (view["title"]["text"], label(view)) == ("Review", "Approve")
    assert "You can decide because you're in <#C1>." in str(view)
    assert list(inputs(view)) == ["reason"]
    assert actions(view) == ["page", "reject", "edit", "hand_over"]


async def test_all_arguments_stand_in_it_also_those_of_the_title(counter: Counter) -> None:
    await counter.send(a_click(await counter.office.the_approval(), ActionId.DETAILS))
    text = str(counter.views.opened[0])
    for part in ("To: ", "Mia", "Amount: ", "How: ", "card"):
        assert part in text


async def test_who_asked_reads_why_they_cannot_decide_and_can_withdraw(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    await counter.send(a_click(approval, ActionId.DETAILS, ROSA))
    (view,) = counter.views.opened
    assert (view["title"]["text"], label(view)) == ("Details", "")
    alerts = [block["text"]["text"] for block in view["blocks"] if block["type"] == "alert"]
    assert alerts == ["You can't approve your own request. Anyone else in <#C1> can approve."]
    assert inputs(view) == {}
    assert actions(view) == ["page", "withdraw"]


async def test_who_asked_reads_which_group_can_decide(storage: SqliteStores) -> None:
    counter, approval = await a_ruled(storage)
    await counter.send(a_click(approval, ActionId.DETAILS, ROSA))
    (view,) = counter.views.opened
    words = "You can't approve your own request. Anyone in <!subteam^S0SRE> can approve."
    assert words in [block["text"]["text"] for block in view["blocks"] if block["type"] == "alert"]


@pytest.mark.parametrize("who", [ROSA, "UGUS", "USTRANGER"])
async def test_a_review_of_somebody_without_a_right_approves_nothing(
    counter: Counter, who: str
) -> None:
    approval = await counter.office.the_approval()
    sent = a_submission(approval, ActionId.REVIEW_MODAL, typed("reason", "fine"), who)
    assert json.loads((await counter.send(sent)).body)["response_action"] == "update"
    await is_untouched(counter)


# ---- pages -------------------------------------------------------------------------------------


async def test_the_button_of_the_form_reads_on_to_the_yes(storage: SqliteStores) -> None:
    counter, approval = await a_mail(storage)
    page = "request"
    for number in range(1, 7):
        sent = a_submission(approval, ActionId.REVIEW_MODAL, typed("reason", "hm"), page=page)
        answer = json.loads((await counter.send(sent)).body)
        assert answer["response_action"] == "update"
        assert f"Page {number} of 6" in str(answer["view"])
        assert inputs(answer["view"])["reason"]["element"]["initial_value"] == "hm"
        assert counter.office.ran == []
        page = f"text.{number}"
    sent = a_submission(approval, ActionId.REVIEW_MODAL, typed("reason", "hm"), page=page)
    assert (await counter.send(sent)).body == ""
    assert counter.office.ran == [("write", "Mia")]


async def test_who_jumps_to_the_last_page_has_not_read_the_rest(storage: SqliteStores) -> None:
    counter, approval = await a_mail(storage)
    await counter.send(a_click(approval, ActionId.DETAILS))
    await counter.send(turned(approval, "text.6", counter))
    assert label(counter.views.opened[-1]) == "Next page"
    sent = a_submission(approval, ActionId.REVIEW_MODAL, {}, page="text.6")
    assert "Page 1 of 6" in (await counter.send(sent)).body
    await is_untouched(counter)
    assert not has_opened(await counter.office.the_approval(), ADA, Opened.DETAILS)


async def test_one_person_reads_for_nobody_else(storage: SqliteStores) -> None:
    counter, approval = await a_mail(storage)
    await counter.send(a_click(approval, ActionId.DETAILS))
    for number in range(1, 7):
        await counter.send(turned(approval, f"text.{number}", counter))
    kept = await counter.office.the_approval()
    assert has_opened(kept, ADA, Opened.DETAILS)
    assert pages_read(kept, BEN) == 0
    sent = a_submission(approval, ActionId.REVIEW_MODAL, {}, BEN, page="text.6")
    assert "Page 1 of 6" in (await counter.send(sent)).body


async def test_what_was_typed_stays_on_each_page(storage: SqliteStores) -> None:
    counter, approval = await a_mail(storage)
    await counter.send(a_click(approval, ActionId.DETAILS))
    for page in ("text.1", "history", "technical", "request"):
        values = typed("reason", "so far")
        await counter.send(turned(approval, page, counter, values=values))
        block = inputs(counter.views.opened[-1])["reason"]
        assert block["element"]["initial_value"] == "so far"


async def test_a_page_that_slack_does_not_show_was_not_read(storage: SqliteStores) -> None:
    counter, approval = await a_mail(storage)
    await counter.send(a_click(approval, ActionId.DETAILS))
    click = turned(approval, "text.1", counter)
    counter.views.failing = True
    await counter.send(click)
    assert pages_read(await counter.office.the_approval(), ADA) == 0


async def test_a_forged_page_shows_nothing(
    storage: SqliteStores, subtests: pytest.Subtests
) -> None:
    cases = ("text.1", "text.0=", "text.99999=", "nothing=", "=", "text.1.2=", None, 5, "text.7=")
    counter, approval = await a_mail(storage)
    await counter.send(a_click(approval, ActionId.DETAILS))
    about = encode_page("request", approval.approval_id, approval.digest).partition("=")[2]
    view = counter.views.opened[-1]
    for value in cases:
        with subtests.test(value=value):
            given = f"{value}{about}" if isinstance(value, str) and value.endswith("=") else value
            click = a_click_inside(approval, ActionId.PAGE_NEXT, view, value=given)
            counter.views.opened.clear()
            assert (await counter.send(click)).status == 200
            assert "isn't one I made" in str(counter.views.opened[-1])
            assert pages_read(await counter.office.the_approval(), ADA) == 0


async def test_a_form_whose_metadata_was_altered_is_refused(
    counter: Counter, subtests: pytest.Subtests
) -> None:
    cases: list[object] = ["", "request", "x=apr_1.2", None, "text.1=apr_0.00"]
    approval = await counter.office.the_approval()
    for about in cases:
        with subtests.test(about=about):
            sent = a_submission(approval, ActionId.REVIEW_MODAL, {})
            sent["view"]["private_metadata"] = about
            assert "isn't one I made" in (await counter.send(sent)).body
            await is_untouched(counter)


async def test_history_and_technical_say_what_is_on_record(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    await counter.send(a_click(approval, ActionId.APPROVE, ROSA))
    counter.office.clock.forward(seconds=1)
    counter.office.directory.add("UTOM")
    await counter.send(a_click(approval, ActionId.APPROVE, "UTOM"))
    await counter.send(a_click(approval, ActionId.DETAILS))
    await counter.send(turned(approval, "history", counter))
    rows = [block for block in counter.views.opened[-1]["blocks"] if block["type"] == "rich_text"][
        -1
    ]
    texts = [row["elements"][-1]["text"] for row in rows["elements"]]
    assert texts[0] == " requested it"
    assert texts[1].startswith(" was refused: ")
    _, _, who, refused, decider, end = rows["elements"][2]["elements"]
    assert who["user_id"] == "UTOM"
    assert refused["text"] == " was refused: You're not an approver for this. Anyone in "
    assert decider == {"type": "channel", "channel_id": CHANNEL}
    assert end["text"] == " can decide."
    await counter.send(turned(approval, "technical", counter))
    text = str(counter.views.opened[-1])
    for part in (approval.approval_id, approval.digest, THREAD_ID, "pay"):
        assert part in text


# ---- critical ----------------------------------------------------------------------------------


def ruled(storage: SqliteStores, **rule: Any) -> Office:
    ask = {"approve": [{"from": ["sre"]}], **rule}
    policy = forced(default={"ask": ask}, groups={"sre": {"usergroups": ["S0SRE"]}})
    office = Office(storage, [PAY, say("Paid.")], policy=policy, is_gated=False)
    office.directory.groups["S0SRE"] = frozenset({ADA, BEN})
    return office


async def a_ruled(storage: SqliteStores, **rule: Any) -> tuple[Counter, Approval]:
    office = ruled(storage, **rule)
    await office.hear(ASK)
    return Counter.on(office), await office.the_approval()


async def test_what_is_critical_takes_a_reason_and_its_name(storage: SqliteStores) -> None:
    counter, approval = await a_ruled(storage, risk="critical")
    await counter.send(a_click(approval, ActionId.APPROVE))
    view = counter.views.opened[-1]
    assert "Critical" in str(view["blocks"][1])
    assert list(inputs(view)) == ["reason", "name"]
    assert not any(block["optional"] for block in inputs(view).values())
    name = short_id(approval.approval_id) if "Mia" not in approval.title else "Mia"
    for values, faults in (
        ({}, {"reason", "name"}),
        (typed("reason", "checked"), {"name"}),
        ({**typed("reason", " "), **typed("name", name)}, {"reason"}),
        ({**typed("reason", "checked"), **typed("name", name.upper() + "x")}, {"name"}),
    ):
        answer = await counter.send(a_submission(approval, ActionId.REVIEW_MODAL, values))
        assert set(json.loads(answer.body)["errors"]) == faults
    assert counter.office.ran == []
    good = {**typed("reason", "checked"), **typed("name", f" {name} ")}
    assert (await counter.send(a_submission(approval, ActionId.REVIEW_MODAL, good))).body == ""
    assert len(counter.office.ran) == 1


@pytest.mark.parametrize("form", [ActionId.GRANT_MODAL, ActionId.BATCH_MODAL])
async def test_nothing_else_approves_what_is_critical(
    storage: SqliteStores, form: ActionId
) -> None:
    counter, approval = await a_ruled(storage, risk="critical", grants=GRANTS)
    boxes = {"selected_options": [{"value": encode(approval.approval_id, approval.digest)}]}
    values = {**typed("for", "1h"), **typed("times", "2"), "cards0": {ActionId.VALUE: boxes}}
    await counter.send(a_submission(approval, form, {**values, **typed("reason", "x")}))
    await counter.send(a_click(approval, ActionId.GRANT))
    assert counter.office.ran == []
    assert (await counter.office.the_approval()).votes == ()


# ---- the next time -----------------------------------------------------------------------------

GRANTS = {"max_time": "2h", "max_uses": 5, "vary": []}


@pytest.mark.parametrize(
    ("value", "uses", "for_s"), [("ask", None, 0), ("time", 5, 3_600), ("uses", 5, 7_200)]
)
async def test_the_next_time_is_asked_about_or_allowed(
    storage: SqliteStores, value: str, uses: int | None, for_s: int
) -> None:
    counter, approval = await a_ruled(storage, grants=GRANTS)
    await counter.send(a_click(approval, ActionId.DETAILS))
    options = inputs(counter.views.opened[-1])["next_time"]["element"]["options"]
    assert [option["text"]["text"] for option in options] == [
        "Ask again every time",
        "Allow this for 1h",
        "Allow this 5 more times",
    ]
    sent = a_submission(approval, ActionId.REVIEW_MODAL, picked("next_time", value))
    assert (await counter.send(sent)).body == ""
    grants = list(await storage.grants.current(THREAD_ID, now_ms=0))
    assert [(grant.max_uses, grant.until_ms - grant.created_ms) for grant in grants] == (
        [(uses, for_s * 1_000)] if uses else []
    )


@pytest.mark.parametrize("rule", [{}, {"risk": "high", "grants": GRANTS}])
async def test_where_it_is_not_offered_a_forged_wish_approves_nothing(
    storage: SqliteStores, rule: dict[str, Any]
) -> None:
    counter, approval = await a_ruled(storage, **rule)
    await counter.send(a_click(approval, ActionId.DETAILS))
    assert "next_time" not in inputs(counter.views.opened[-1])
    sent = a_submission(approval, ActionId.REVIEW_MODAL, picked("next_time", "time"))
    assert "isn't one I made" in (await counter.send(sent)).body
    assert counter.office.ran == []


async def test_a_grant_is_as_narrow_as_its_ticks(storage: SqliteStores) -> None:
    counter, approval = await a_ruled(storage, grants={**GRANTS, "vary": ["amount", "how"]})
    await counter.send(a_click(approval, ActionId.GRANT))
    only = inputs(counter.views.opened[-1])["only"]["element"]
    assert only["initial_options"] == only["options"]
    ticked = {"selected_options": [only["options"][0]]}
    values = {**typed("for", "1h"), **typed("times", "2"), "only": {ActionId.VALUE: ticked}}
    await counter.send(a_submission(approval, ActionId.GRANT_MODAL, values))
    (grant,) = await storage.grants.current(THREAD_ID, now_ms=0)
    assert grant.vary == ("how",)


# ---- rejections --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "words", "reason"),
    [
        ("later", "after the sale", "Not now, ask again later: after the sale"),
        ("fix", "", "Wrong details, ask again with other details"),
        ("never", "", "Shouldn't be done, don't ask again"),
        ("other", "we moved on", "we moved on"),
    ],
)
async def test_a_rejection_tells_the_agent_what_it_may_do(
    counter: Counter, value: str, words: str, reason: str
) -> None:
    approval = await counter.office.the_approval()
    values = {**picked("canned", value), **typed("reason", words)}
    assert (await counter.send(a_submission(approval, ActionId.REJECT_MODAL, values))).body == ""
    done = await counter.office.storage.approvals.get(approval.approval_id)
    assert done.decision is not None
    assert done.decision.reason == reason


@pytest.mark.parametrize("value", ["", "0", "always", ["later"], {"a": 1}])
async def test_a_forged_reason_rejects_nothing(counter: Counter, value: object) -> None:
    approval = await counter.office.the_approval()
    sent = a_submission(approval, ActionId.REJECT_MODAL, picked("canned", value))
    assert "isn't one I made" in (await counter.send(sent)).body
    await is_untouched(counter)


async def test_another_reason_needs_words(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    sent = a_submission(approval, ActionId.REJECT_MODAL, picked("canned", "other"))
    assert set(json.loads((await counter.send(sent)).body)["errors"]) == {"reason"}
    await is_untouched(counter)


# ---- handing over, asking ----------------------------------------------------------------------


def handing(to: object, day: object = "2027-01-20", what: object = "all") -> dict[str, Any]:
    return {
        "to": {ActionId.VALUE: {"selected_user": to}},
        "day": {ActionId.VALUE: {"selected_date": day}},
        **picked("what", what),
    }


async def test_a_right_is_handed_over_from_the_card(storage: SqliteStores) -> None:
    counter, approval = await a_ruled(storage)
    counter.office.directory.add("UTOM")
    await counter.send(a_click(approval, ActionId.HAND_OVER))
    assert counter.views.opened[-1]["callback_id"] == ActionId.HAND_OVER_MODAL
    sent = a_submission(approval, ActionId.HAND_OVER_MODAL, handing("UTOM"))
    assert "Delegated" in (await counter.send(sent)).body
    await counter.send(a_click(approval, ActionId.DETAILS, "UTOM"))
    assert "You can decide because you're <@UADA>'s delegate." in str(counter.views.opened[-1])
    await counter.send(a_click(approval, ActionId.APPROVE, "UTOM"))
    assert len(counter.office.ran) == 1


@pytest.mark.parametrize(
    ("values", "place", "words"),
    [
        (handing(ADA), "to", "delegate to yourself"),
        (handing(ROSA), "to", "requested this"),
        (handing(None), "to", "Choose a person"),
        (handing("<!here>"), "to", "Choose a person"),
        (handing(BEN, "soon"), "day", "Use a date"),
        (handing(BEN, None), "day", "Use a date"),
        (handing(BEN, "2020-01-01"), "day", "in the future"),
        (handing(BEN, "2029-01-01"), "day", "30 days"),
    ],
)
async def test_what_cannot_be_handed_over_is_said_at_its_input(
    storage: SqliteStores, values: dict[str, Any], place: str, words: str
) -> None:
    counter, approval = await a_ruled(storage)
    answer = await counter.send(a_submission(approval, ActionId.HAND_OVER_MODAL, values))
    assert words in json.loads(answer.body)["errors"][place]
    assert list(await storage.delegations.current("T1", now_ms=counter.office.clock())) == []


async def test_a_ring_of_rights_is_refused(storage: SqliteStores) -> None:
    counter, approval = await a_ruled(storage)
    await counter.send(a_submission(approval, ActionId.HAND_OVER_MODAL, handing(BEN)))
    answer = await counter.send(a_submission(approval, ActionId.HAND_OVER_MODAL, handing(ADA), BEN))
    assert "delegated to you" in json.loads(answer.body)["errors"]["to"]


async def test_the_form_lists_what_waits_and_whose_right_a_new_one_ends(
    storage: SqliteStores,
) -> None:
    counter, approval = await a_ruled(storage)
    counter.office.directory.add("UTOM")
    await counter.send(a_submission(approval, ActionId.HAND_OVER_MODAL, handing("UTOM")))

    await counter.send(a_click(approval, ActionId.HAND_OVER))
    shown = json.dumps(counter.views.opened[-1], ensure_ascii=False)
    assert "All requests includes new ones and the 1 waiting for you now:" in shown
    assert f"• {approval.title}" in shown
    assert "<@UTOM>, your delegate until" in shown

    counter.office.clock.forward(seconds=1)
    answer = await counter.send(a_submission(approval, ActionId.HAND_OVER_MODAL, handing(BEN)))
    assert "instead of <@UTOM>." in answer.body


def asking(text: str, to: object) -> dict[str, Any]:
    person = {"person": {ActionId.VALUE: {"selected_user": to}}}
    return {**typed("question", text), **picked("whom", "other"), **person}


async def test_a_question_goes_to_somebody_else_who_answers_it(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    sent = a_submission(approval, ActionId.ASK_BACK_MODAL, asking("is it due?", BEN))
    assert (await counter.send(sent)).body == ""
    (asked,) = (await counter.office.the_approval()).dialog
    assert (asked.to, asked.by) == (BEN, ADA)
    for who, number in ((ROSA, 2), (BEN, 3)):
        counter.office.clock.forward(seconds=1)
        await counter.office.hear(f"{who} says", user_id=who, ts=f"1900000000.00000{number}")
    (asked,) = (await counter.office.the_approval()).dialog
    assert (asked.answered_by, asked.answer) == (BEN, f"{BEN} says")


@pytest.mark.parametrize("to", [None, "", "<!channel>", "UNOBODY", 5])
async def test_nobody_outside_of_the_channel_is_asked(counter: Counter, to: object) -> None:
    approval = await counter.office.the_approval()
    sent = a_submission(approval, ActionId.ASK_BACK_MODAL, asking("is it due?", to))
    assert "person" in json.loads((await counter.send(sent)).body)["errors"]
    assert (await counter.office.the_approval()).dialog == ()


# ---- late, and slow ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "unused"),
    [
        (ActionId.EDIT_MODAL, "Your changes weren't applied."),
        (ActionId.REJECT_MODAL, "Your rejection wasn't counted."),
        (ActionId.REVIEW_MODAL, "Your approval wasn't counted."),
        (ActionId.SNOOZE_MODAL, "What you wrote wasn't sent."),
    ],
)
async def test_a_form_that_comes_late_says_who_was_first(
    counter: Counter, form: ActionId, unused: str
) -> None:
    approval = await counter.office.the_approval()
    await counter.office.decide(approval, Status.REJECTED, by=BEN, reason="no")
    counter.office.clock.forward(seconds=1)
    values = {**typed("reason", "x"), **picked("when", "in.60000")}
    answer = json.loads((await counter.send(a_submission(approval, form, values))).body)
    assert (answer["response_action"], answer["view"]["title"]["text"]) == ("update", "Too late")
    text = answer["view"]["blocks"][0]["text"]["text"]
    assert "Rejected by <@UBEN>" in text
    assert unused in text
    assert "isn't saved" in str(answer["view"]["blocks"][1])


async def test_a_form_that_came_after_the_deadline_says_that_nothing_ran(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    counter.office.clock.forward(hours=9)
    sent = a_submission(approval, ActionId.REVIEW_MODAL, {})
    answer = json.loads((await counter.send(sent)).body)
    assert answer["view"]["title"]["text"] == "Too late"
    assert "Nothing ran." in str(answer["view"])


async def test_a_form_on_top_of_another_leaves_with_it(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    sent = a_submission(approval, ActionId.REJECT_MODAL, picked("canned", "later"))
    sent["view"]["previous_view_id"] = "V0"
    assert json.loads((await counter.send(sent)).body) == {"response_action": "clear"}


async def test_a_button_in_a_form_opens_its_form_above(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    await counter.send(a_click(approval, ActionId.DETAILS))
    await counter.send(a_click_inside(approval, ActionId.REJECT, counter.views.opened[0]))
    assert counter.views.ways == ["open", "push"]
    assert counter.views.opened[-1]["callback_id"] == ActionId.REJECT_MODAL


async def test_what_is_refused_in_a_form_is_said_there(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    await counter.send(a_click(approval, ActionId.DETAILS, ROSA))
    view = counter.views.opened[0]
    await counter.send(a_click_inside(approval, ActionId.HAND_OVER, view, ROSA))
    assert counter.views.opened[-1]["title"]["text"] == "Not done"


@dataclass
class Awaited(Views):
    """Tells when something is open."""

    is_open: asyncio.Event = field(default_factory=asyncio.Event)

    async def views_open(self, *, trigger_id: str, view: dict[str, Any]) -> dict[str, Any]:
        self.is_open.set()
        return await super().views_open(trigger_id=trigger_id, view=view)


async def test_a_slow_form_opens_at_once_and_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modals, "PATIENCE_S", 0)
    views, is_ready = Awaited(), asyncio.Event()
    window = Window(cast(AsyncWebClient, views), "1.2")

    async def work() -> None:
        await is_ready.wait()
        await window.show({"title": "the form"})

    task = asyncio.ensure_future(window.while_doing(work()))
    await views.is_open.wait()
    assert "One moment…" in str(views.opened[0])
    is_ready.set()
    await task
    assert views.ways == ["open", "update"]
    assert views.opened[1] == {"title": "the form"}


def card_of(view: dict[str, Any]) -> dict[str, Any]:
    """The choice that the form of an edit begins with."""
    element = inputs(view)["argument_2"]["element"]
    return {"argument_2": {ActionId.VALUE: {"selected_option": element["initial_option"]}}}


async def test_an_edit_of_what_is_critical_takes_a_reason_and_its_name(
    storage: SqliteStores,
) -> None:
    counter, approval = await a_ruled(storage, risk="critical", edit=True)
    await counter.send(a_click(approval, ActionId.EDIT))
    view = counter.views.opened[-1]
    assert {"reason", "name"} <= set(inputs(view))
    assert "Mia" not in str(inputs(view)["name"])  # it is typed, not copied from its field
    values = {**typed("argument_0", "Mia"), **typed("argument_1", "4"), **card_of(view)}
    for more, faults in (
        ({}, {"reason", "name"}),
        ({**typed("reason", "a typo"), **typed("name", "something else")}, {"name"}),
    ):
        answer = await counter.send(a_submission(approval, ActionId.EDIT_MODAL, values | more))
        assert set(json.loads(answer.body)["errors"]) == faults
    assert counter.office.ran == []
    given = {**values, **typed("reason", "a typo"), **typed("name", "Mia")}
    assert (await counter.send(a_submission(approval, ActionId.EDIT_MODAL, given))).body == ""
    assert counter.office.ran == [("pay", ("Mia", 4, "card"))]


async def test_who_has_no_right_hands_nothing_over(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    await counter.send(a_click(approval, ActionId.HAND_OVER, ROSA))
    assert counter.views.opened == []
