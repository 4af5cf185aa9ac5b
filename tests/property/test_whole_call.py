"""I2: no surface says yes to what it does not show, unless its reader has opened the rest.

Arbitrary calls: long texts with marked ends, previews, secrets, invisible characters, many and
nested arguments. Three properties. What each surface would let through is drawn on it. No surface
has a button or a form that says yes without the whole call: cards, copies, lists, Home, batches,
replies, pages of the review, and the forms that the buttons open. And a forged yes from each
surface, by somebody who has opened nothing, lets nothing run.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from pydantic import StringConstraints
from typing_extensions import TypedDict

from agents import Agent, ChatModelAgent, tool
from agents.models import ScriptedModel, Turn, call, say
from bot.approvals.disclosure import Opened, Surface, guesses, has_opened
from bot.approvals.overview import HomeData
from bot.layout.action_ids import MOST_TARGETS, ActionId, encode, encode_all
from bot.layout.blocks import Block
from bot.ports.people import Person
from bot.ports.threads import BatchWords
from bot.questions.drawing import drawn_question
from bot.questions.form import AnswerForm, Form
from bot.records.approval import Approval, Status, StoredBatch
from bot.slack.cards.batch import batch_modal
from bot.slack.cards.batch_card import batch_card
from bot.slack.cards.break_glass import override_modal
from bot.slack.cards.buttons import way_in
from bot.slack.cards.card_for import card_for, shows_all
from bot.slack.cards.grants import grant_modal
from bot.slack.cards.review import REQUEST, FormReader, count_pages, review_modal, text_page
from bot.slack.home.state import HomeState, Shown
from bot.slack.home.view import HomePage, home_view, list_blocks
from bot.slack.side_messages.private import choice_card
from bot.slack.slash_commands.lists import _shown
from bot.threads.agents import Catalog
from bot.words import say as words
from tests.support.force import forced
from tests.support.stores import SqliteStores
from tests.unit.bot.asked import AGREES, form_of, opened_by
from tests.unit.bot.counter_stage import (
    Counter,
    a_click,
    a_click_inside,
    a_submission,
    picked,
    typed,
)
from tests.unit.bot.layout.forms_stage import submitted
from tests.unit.bot.office import ADA, Office
from tests.unit.bot.slack.cards.samples import DECIDED, GLASS, GRANTS, an_approval
from tests.unit.bot.slack.cards.test_every_builder import NAMES as PEOPLE, READER as CLOCK

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
PIECES = [
    *("paid", "5", " ", "\n", "q q q ", "\u202e", "\u200b", "\u00a0", "\u0430", '"', "`x`", "{"),
    *("token=abc123abc123", SECRET, "4111111111111111"),
    *("long text " * 30, "word " * 700, "a\nb\n" * 20),
]
bodies = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
MARK = re.compile("[sexy][0-9]{3}z")
"""Begins and ends a text of a call (s, e), and of the others beside it on a card (x, y)."""


@st.composite
def marked(draw: st.DrawFn) -> str:
    """A text whose beginning and end are told apart from all others."""
    number = draw(st.integers(0, 999))
    return f"s{number:03}z {draw(bodies)} e{number:03}z"


leaves = marked() | st.booleans() | st.integers(0, 99)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["to", "note"]), inner, max_size=2)
    ),
    max_leaves=4,
)
NAMES = ["to", "amount", "memo", "password", *(f"field_{n}" for n in range(24))]
calls = st.dictionaries(st.sampled_from(NAMES), values, max_size=4) | st.fixed_dictionaries(
    {name: marked() for name in NAMES[4:]}
)
previews = st.just("") | marked()
many = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    max_examples=max(settings().max_examples, 25),
)


def holding(arguments: Mapping[str, Any], preview: str, title: str, secret: bool) -> Approval:
    schema: dict[str, Any] = {"type": "object", "properties": {name: {} for name in arguments}}
    ask = AnswerForm(
        form=Form.CALL, secret=("password",) if secret else (), named=("to",), schema=schema
    )
    return an_approval(
        title=title,
        why="",
        preview=preview,
        arguments=arguments,
        form=ask.to_data(),
        terms=GRANTS,
        position=1,
    )


def marks_in(arguments: Mapping[str, Any], preview: str, title: str, secret: bool) -> set[str]:
    """The marks of all that runs, but for what its author declared secret."""
    open_ones = {n: value for n, value in arguments.items() if not (secret and n == "password")}
    return set(MARK.findall(json.dumps([open_ones, preview, title])))


def texts_of(blocks: object) -> str:
    """All that is read in blocks: their texts, and what is filled into inputs."""
    if isinstance(blocks, list):
        return "\n".join(map(texts_of, blocks))
    if isinstance(blocks, dict):
        values = [blocks.get(name) for name in ("text", "initial_value")]
        own = [text for text in values if isinstance(text, str)]
        rest = [
            texts_of(inner) for name, inner in blocks.items() if name not in {"value", "block_id"}
        ]
        return "\n".join([*own, *rest])
    return ""


def actions_in(blocks: object) -> list[tuple[str, str]]:
    """The action ids of all that can be pressed, with their labels."""
    if isinstance(blocks, list):
        return [action for block in blocks for action in actions_in(block)]
    if not isinstance(blocks, dict):
        return []
    text = blocks.get("text")
    label = str(text.get("text")) if isinstance(text, dict) else ""
    own = [(str(blocks["action_id"]), label)] if "action_id" in blocks else []
    return [*own, *(action for value in blocks.values() for action in actions_in(value))]


def _on_batch_card(approval: Approval) -> list[Block]:
    first = approval.changed(batch=StoredBatch(owner_id=approval.approval_id))
    other = first.changed(approval_id="apr_" + "f" * 32, title="Another one")
    card = batch_card([first, other], BatchWords(), approvers_text="")
    return list(card.blocks)


READER = FormReader(can_approve=True, can_reject=True, has_read=False)
DRAWN: dict[Surface, list[Callable[[Approval], list[Block]]]] = {
    Surface.CARD: [lambda approval: list(card_for(approval, approvers_text="").blocks)],
    Surface.LINE: [_on_batch_card],
    Surface.LISTED: [lambda approval: list(batch_modal(approval, [approval])["blocks"])],
    Surface.FORM: [
        lambda approval: list(form_of(approval, grant_modal(approval, GRANTS.grants))["blocks"]),
        lambda approval: list(form_of(approval, override_modal(approval, GLASS))["blocks"]),
    ],
    Surface.EDIT_FORM: [
        lambda approval: list(form_of(approval, opened_by(approval, ActionId.EDIT))["blocks"])
    ],
    Surface.REVIEW: [lambda approval: list(review_modal(approval, READER)["blocks"])],
}
"""How each surface draws a call."""
DIRECT = {ActionId.APPROVE, ActionId.APPROVE_ALL, ActionId.GRANT, ActionId.EDIT, ActionId.OVERRIDE}
cut = {"memo": f"s001z {'q ' * 250} e001z"}
lines = {"memo": "s001z one\ntwo e001z"}
"""It has no line of its own, and a card and a form of several show all of it."""


@many
@given(calls, previews, st.just("Pay it") | marked(), st.booleans())
@example({"memo": "s001z late e001z"}, "s002z Once e002z", "Pay it", False)
@example(cut, "", "Pay it", False)
@example({"to": "x"}, f"s001z {'q ' * 250} e001z", "Pay it", False)
@example(lines, "s002z Once e002z", "Pay it", False)
def test_a_surface_that_can_say_yes_shows_all_that_runs(
    arguments: dict[str, Any], preview: str, title: str, secret: bool
) -> None:
    approval = holding(arguments, preview, title, secret)
    wanted = marks_in(arguments, preview, title, secret)
    for surface, pictures in DRAWN.items():
        if guesses(approval) or not shows_all(approval, surface):
            continue
        for draw in pictures:
            shown = texts_of(draw(approval))
            assert wanted <= set(MARK.findall(shown)), f"{surface} hides a part"
    card = card_for(approval, approvers_text="").blocks
    if (str(ActionId.APPROVE), "Approve") in actions_in(card):
        assert shows_all(approval, Surface.CARD)
        assert not guesses(approval)
    elsewhere = [choice_card("Mean this?", [approval]).blocks, way_in(drawn_question(approval))]
    assert not DIRECT & {name for name, _ in actions_in(elsewhere)}


huge = {"memo": f"s001z {'word ' * 60_000} e001z"}


def several(approval: Approval, count: int) -> list[Approval]:
    """A call and others, on one card."""
    first = approval.changed(batch=StoredBatch(owner_id=approval.approval_id))
    others = [
        first.changed(approval_id=f"apr_{number:032x}", title=f"x{number:03}z y{number:03}z")
        for number in range(1, count)
    ]
    return [first, *others]


def _batch_card(approval: Approval, count: int) -> Block:
    card = batch_card(several(approval, count), BatchWords(), approvers_text="")
    return {"blocks": card.blocks}


def _overview(approval: Approval) -> HomeData:
    reader = Person(user_id=ADA, team_id="T1", name="Ada")
    return HomeData(person=reader, at_ms=DECIDED, waiting=(approval,), mine=(approval,))


def _home(approval: Approval, show: Shown) -> HomePage:
    state, overview = HomeState(show=show), _overview(approval)
    return HomePage(overview=overview, state=state, names=PEOPLE, reader=CLOCK)


LISTS: dict[str, Callable[[Approval], object]] = {
    "Home": lambda approval: home_view(_home(approval, Shown.WAITING)),
    "own requests on Home": lambda approval: home_view(_home(approval, Shown.MINE)),
    "a list": lambda approval: list_blocks(_home(approval, Shown.WAITING)),
    "one of a list": lambda approval: _shown(approval, PEOPLE, CLOCK, ADA),
    "a reply": lambda approval: choice_card("Mean this?", [approval]).blocks,
}
"""Where calls are named, and nothing more of them is shown for certain."""
CARDS: dict[str, Callable[[Approval], object]] = {
    "the card": lambda approval: card_for(approval, approvers_text="").blocks,
    "a copy": lambda approval: card_for(approval, approvers_text="", lead=["For you."]).blocks,
    "a card of two": lambda approval: _batch_card(approval, 2),
    "a card of many": lambda approval: _batch_card(approval, MOST_TARGETS + 1),
}
COUNTS = {"a card of two": 2, "a card of many": MOST_TARGETS + 1}


def says_yes(picture: object) -> bool:
    """Whether one click there agrees to something: a button without a form, or a submission."""
    if isinstance(picture, dict) and picture.get("callback_id") in AGREES:
        submit = picture.get("submit", {}).get("text", words("form.page_next"))
        return bool(submit != words("form.page_next"))
    return any(name in AGREES and not label.endswith("…") for name, label in actions_in(picture))


def check_picture(approval: Approval, name: str, picture: object, *, wanted: set[str]) -> None:
    """Where it says yes, all is on it, and nothing is masked by a guess."""
    if says_yes(picture):
        assert not guesses(approval), f"{name} says yes to what is masked"
        assert wanted <= set(MARK.findall(texts_of(picture))), f"{name} hides a part"


def check_review(approval: Approval, wanted: set[str]) -> None:
    """Turn the pages as somebody does who has opened nothing before."""
    masked, count, seen = bool(guesses(approval)), count_pages(approval), set[str]()
    for number in range(count + 1):
        reader = FormReader(
            can_approve=True, has_read=False, is_masked=masked, pages=max(number - 1, 0)
        )
        view = review_modal(approval, reader, page=text_page(number) if number else REQUEST)
        seen |= set(MARK.findall(texts_of(view)))
        if says_yes(view):
            assert not masked
            assert wanted <= seen, f"page {number} of {count} of the review says yes"


def check_several(approval: Approval, marks_of: Callable[[Approval], set[str]]) -> None:
    """A form of several shows all of each call that it lists, and takes a yes to those alone."""
    calls_of_turn = several(approval, 3)
    view = batch_modal(approval, calls_of_turn)
    offered, shown = json.dumps(view["blocks"]), set(MARK.findall(texts_of(view)))
    listed = [call for call in calls_of_turn if call.approval_id in offered]
    assert says_yes(view) == bool(listed)
    for listed_call in listed:
        assert not guesses(listed_call)
        assert marks_of(listed_call) <= shown, "the form of several hides a part"


@many
@given(calls, previews, st.just("Pay it") | marked(), st.booleans())
@example({"memo": "s001z late e001z"}, "s002z Once e002z", "Pay it", False)
@example({"memo": "late", "to": SECRET}, "", "Pay it", False)
@example(cut, "", "Pay it", False)
@example(huge, "", "Pay it", False)
@example(lines, "s002z Once e002z", "Pay it", False)
@example({"memo": f"s001z {'word ' * 900} e001z"}, "", "Pay it", False)
def test_no_button_and_no_form_says_yes_beside_less_than_the_whole_call(
    arguments: dict[str, Any], preview: str, title: str, secret: bool
) -> None:
    approval = holding(arguments, preview, title, secret)
    wanted = marks_in(arguments, preview, title, secret)
    for name, draw in LISTS.items():
        actions = {action for action, _ in actions_in(draw(approval))}
        assert not (DIRECT | AGREES) & actions, f"{name} says yes"
    for name, draw in CARDS.items():
        picture = draw(approval)
        count = COUNTS.get(name, 1)
        beside = {f"{mark}{number:03}z" for number in range(1, count) for mark in "xy"}
        check_picture(approval, name, picture, wanted=wanted | beside)
    check_review(approval, wanted)
    check_several(approval, lambda call: marks_in(arguments, preview, call.title, secret))


Trimmed = Annotated[str, StringConstraints(strip_whitespace=True)]


@tool(gate="review", title="Pay", preview=lambda memo, effect, more: effect)
def pay(memo: Trimmed, effect: str, more: dict[str, Any]) -> str:
    """Pay.

    Args:
        memo: For the books.
        effect: What it does.
        more: Further data.
    """
    RAN.append(memo)
    return "paid"


Options = TypedDict(  # type: ignore[misc]
    "Options", {f"o{number}": int for number in range(120)}, total=False
)


@tool(gate="review", title="Tune")
def tune(memo: Trimmed, options: Options) -> str:
    """Tune.

    Args:
        memo: For the books.
        options: What to set.
    """
    RAN.append(memo)
    return "tuned"


RAN: list[str] = []
RULE = {
    "approve": [{"from": ["sre"]}],
    "grants": {"max_time": "1h", "max_uses": 3, "vary": ["memo"]},
    "break_glass": {"by": ["sre"], "alert": "C0ALERT"},
}


def an_agent(model: ScriptedModel) -> Agent:
    return ChatModelAgent(name="A", model=model, tools=[pay, tune])


@dataclass(frozen=True)
class Asked:
    """Two calls that wait: the one in question, and another beside it."""

    counter: Counter
    approval: Approval
    other: Approval

    async def now(self) -> Approval:
        return await self.counter.office.storage.approvals.get(self.approval.approval_id)

    async def is_untouched(self) -> bool:
        """Whether nothing was decided about it, changed in it, or ran."""
        current, memo = await self.now(), self.approval.arguments["memo"]
        is_open = current.status is Status.PENDING and not current.votes
        return is_open and current.digest == self.approval.digest and memo not in RAN


@asynccontextmanager
async def asked(given: dict[str, Any], name: str = "pay") -> AsyncIterator[Asked]:
    """An agent wants two calls, which Ada may decide."""
    RAN.clear()
    storage = SqliteStores(None)
    await storage.open()
    try:
        force = forced(default={"ask": RULE}, groups={"sre": {"users": [ADA]}})
        other = {"memo": "late", "effect": "", "more": {}}
        turns: list[Turn] = [[call(name, given, id="c1"), call("pay", other, id="c2")], say("done")]

        async def no_name(_: str) -> str:
            return ""

        office = Office(storage, turns, policy=force, make_agent=an_agent)
        await office.hear("<@UBOT> pay")
        catalog = Catalog(
            {"*": office.agent},
            make_runner=lambda _: office.runner,
            checkpoints=storage.checkpoints,
            channel_name=no_name,
        )
        counter = Counter.on(office, catalog.check_call)
        waiting = sorted(await office.open_approvals(), key=lambda approval: approval.position)
        yield Asked(counter, *waiting)
    finally:
        await storage.close()


def forged(approval: Approval, other: Approval) -> dict[str, tuple[Surface, dict[str, Any]]]:
    """A yes from each surface, by what it should show."""
    click = a_click(approval, ActionId.APPROVE)
    private = {name: value for name, value in click.items() if name != "message"}
    moved = {**click, "message": {"ts": "1.1", "text": "x"}}
    home = {"type": "home", "callback_id": "countersign:home", "private_metadata": ""}
    value = encode(approval.approval_id, approval.digest)
    ticks = {"type": "checkboxes", "selected_options": [{"value": value}]}
    several = a_click(approval, ActionId.APPROVE_ALL)
    pairs = [(card.approval_id, card.digest) for card in (approval, other)]
    several["actions"][0]["value"] = encode_all(pairs)
    amount = {**typed("for", "1h"), **typed("times", "2"), **typed("reason", "as usual")}
    sure = {"sure": {"countersign:value": {"selected_options": [{"value": "yes"}]}}}
    why = {**typed("what", "All is on fire."), **typed("why_now", "It burns right now."), **sure}
    note = typed("reason", "fine")
    given = approval.arguments
    edits: list[dict[str, Any]] = []
    for memo in ("changed", f"{given['memo']} "):
        texts = [memo, given["effect"], json.dumps(given["more"])]
        inputs = [typed(f"argument_{n}", text) for n, text in enumerate(texts)]
        edits.append({name: value for field in inputs for name, value in field.items()})
    edited, unchanged = edits
    review = a_submission(approval, ActionId.REVIEW_MODAL, note, page="technical")
    return {
        "a private answer": (Surface.ELSEWHERE, private),
        "another message": (Surface.ELSEWHERE, moved),
        "Home": (Surface.ELSEWHERE, a_click_inside(approval, ActionId.APPROVE, home)),
        "a card of several": (Surface.ELSEWHERE, several),
        "the card": (Surface.CARD, click),
        "the form of several": (
            Surface.LISTED,
            a_submission(
                other,
                ActionId.BATCH_MODAL,
                {"cards0": {"countersign:value": ticks}, **picked("rest", "open")},
            ),
        ),
        "the form of a permission": (
            Surface.FORM,
            a_submission(approval, ActionId.GRANT_MODAL, amount),
        ),
        "the form of an override": (
            Surface.FORM,
            a_submission(approval, ActionId.OVERRIDE_MODAL, why),
        ),
        "the form of an edit": (
            Surface.EDIT_FORM,
            a_submission(approval, ActionId.EDIT_MODAL, edited),
        ),
        "the form of an edit that changes nothing": (
            Surface.EDIT_FORM,
            a_submission(approval, ActionId.EDIT_MODAL, unchanged),
        ),
        "a page of the review": (Surface.ELSEWHERE, review),
    }


async def play(given: dict[str, Any], way: str) -> None:
    """Somebody who has opened nothing says yes in one way, where that shows not all."""
    async with asked(given) as stage:
        surface, payload = forged(stage.approval, stage.other)[way]
        if guesses(stage.approval) or not shows_all(stage.approval, surface):
            await stage.counter.send(payload)
            assert await stage.is_untouched()


async def press(given: dict[str, Any], button: ActionId) -> None:
    """Somebody who has opened nothing presses a button of the card, whether it is there or not."""
    async with asked(given) as stage:
        approval = stage.approval
        await stage.counter.send(a_click(approval, button))
        for view in stage.counter.views.opened:
            if button != ActionId.BATCH or approval.approval_id in json.dumps(view["blocks"]):
                wanted = marks_in(given, given["effect"], approval.title, False)
                check_picture(approval, button, view, wanted=wanted)
        if not await stage.is_untouched():
            assert button == ActionId.APPROVE
            assert shows_all(approval, Surface.CARD)


@pytest.mark.parametrize("button", [*sorted(DIRECT), ActionId.BATCH, ActionId.DETAILS])
@settings(many, max_examples=max(settings().max_examples // 20, 3))
@given(
    memo=marked(),
    effect=previews,
    more=st.dictionaries(st.sampled_from(NAMES), values, max_size=3),
)
@example(memo="s001z late e001z", effect="s002z Once e002z", more={})
@example(memo=cut["memo"], effect="s002z Once e002z", more={})
@example(memo="s001z late e001z", effect=f"s002z {'q ' * 250} e002z", more={})
def test_no_button_opens_a_form_that_says_yes_without_the_whole_call(
    button: ActionId, memo: str, effect: str, more: dict[str, Any]
) -> None:
    asyncio.run(press({"memo": memo, "effect": effect, "more": more}, button))


COUNTING = [
    *("the card", "the form of several", "the form of a permission", "the form of an override"),
    *("the form of an edit", "the form of an edit that changes nothing"),
]


@pytest.mark.parametrize("way", COUNTING)
async def test_a_yes_from_what_shows_all_counts(way: str) -> None:
    """So what the test below sends is refused for what is not shown, and for nothing else."""
    async with asked({"memo": "soon", "effect": "", "more": {"to": "acme"}}) as stage:
        _, payload = forged(stage.approval, stage.other)[way]
        await stage.counter.send(payload)
        current = await stage.now()
        assert current.status is Status.APPROVED
        assert (current.digest != stage.approval.digest) == (way == "the form of an edit")


WAYS = [
    *("a private answer", "another message", "Home", "a card of several", "the card"),
    *("the form of several", "the form of a permission", "the form of an override"),
    *("the form of an edit", "the form of an edit that changes nothing", "a page of the review"),
]


@pytest.mark.parametrize("way", WAYS)
@settings(many, max_examples=max(settings().max_examples // 10, 5))
@given(
    memo=marked(),
    effect=previews,
    more=st.dictionaries(st.sampled_from(NAMES), values, max_size=3),
)
@example(memo="s001z late e001z", effect="", more={})
@example(memo=cut["memo"], effect="s002z Once e002z", more={})
@example(memo="s001z late e001z", effect=f"s002z {'q ' * 250} e002z", more={})
def test_a_forged_yes_from_what_does_not_show_all_lets_nothing_run(
    way: str, memo: str, effect: str, more: dict[str, Any]
) -> None:
    asyncio.run(play({"memo": memo, "effect": effect, "more": more}, way))


async def test_an_edit_that_changes_nothing_is_no_yes_to_a_page_that_was_not_turned() -> None:
    """The card shows the whole call, and the first of two pages of the form does not."""
    async with asked({"memo": "soon", "options": {"o119": 5}}, "tune") as stage:
        assert shows_all(stage.approval, Surface.CARD)
        form = form_of(stage.approval, opened_by(stage.approval, ActionId.EDIT))
        inputs = [block["label"]["text"] for block in form["blocks"] if block["type"] == "input"]
        assert inputs
        assert not any("O119" in label for label in inputs)
        values = submitted(form["blocks"], argument_0="soon ")
        edit = a_submission(stage.approval, ActionId.EDIT_MODAL, values)
        await stage.counter.send(edit)
        assert await stage.is_untouched()
        await stage.counter.office.approvals.note_details(stage.approval, ADA)
        await stage.counter.send(edit)
        assert (await stage.now()).status is Status.APPROVED


async def test_who_opened_all_that_can_be_shown_says_yes_to_nothing_that_is_longer(
    subtests: pytest.Subtests,
) -> None:
    """They have turned each page that there is, and had them revealed."""
    async with asked({"memo": huge["memo"], "effect": SECRET, "more": {}}) as stage:
        await stage.counter.send(a_click(stage.approval, ActionId.REVEAL))
        pages = count_pages(stage.approval)
        for number in range(1, pages + 1):
            newest = await stage.now()
            await stage.counter.office.approvals.note_page(newest, ADA, number, of=pages)
        assert has_opened(await stage.now(), ADA, Opened.CLEAR)
        assert has_opened(await stage.now(), ADA, Opened.DETAILS)
        for way, (_, payload) in forged(stage.approval, stage.other).items():
            with subtests.test(way):
                await stage.counter.send(payload)
                assert await stage.is_untouched()
