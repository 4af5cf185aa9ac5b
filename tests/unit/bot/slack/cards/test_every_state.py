"""What holds for each card in each state: its first line, text, buttons, menu, deadline and names.

The states are those that the browser draws, and all samples of other kinds of questions.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from bot.approvals.execution import execution_of
from bot.demo import DemoModel, build
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Card
from bot.layout.parts import approvers_words
from bot.people.approvers import approvers_of
from bot.questions.form import AnswerForm, Form
from bot.records.approval import Approval, ExecutionState, Status
from bot.slack.cards.card_for import card_for
from tests.browser.states import STATES as OF_CALLS
from tests.support.stores import SqliteStores
from tests.unit.bot.office import Office
from tests.unit.bot.slack.cards.samples import CARDS as SAMPLES, an_approval, decided
from tests.unit.bot.slack.cards.test_golden import MESSAGES
from tests.unit.bot.slack.cards.test_properties import walk
from tests.unit.bot.slack.cards.test_shape import STATES as MORE, draw

NO_CARDS = {*MESSAGES, "batch_empty"}
"""Messages beside cards, and the one that is left where all calls of a card have their own."""
RECORDS: dict[str, Approval] = {
    **{name: approval for name, (approval, _) in MORE.items()},
    **OF_CALLS,
    "answered": decided(an_approval(), Status.ANSWERED),
    "nobody": decided(an_approval(), Status.UNDECIDABLE, by="", reason="nobody is left"),
    "denied": decided(an_approval(), Status.DENIED, by="", reason="a rule denies it"),
}
CARDS: dict[str, Card] = {
    **{name: sample() for name, sample in SAMPLES.items() if name not in NO_CARDS},
    **{
        name: card_for(approval, approvers_text=approvers_words(approvers_of(approval)))
        for name, approval in RECORDS.items()
    },
}
ENDED = {
    name: approval for name, approval in RECORDS.items() if approval.status is not Status.PENDING
}
WAITING = [name for name in CARDS if "pending" in name or name in RECORDS.keys() - ENDED.keys()]
SYMBOLS = "👍⏳👀💬📣⚠️❓⚙️✅⛔✏️⏰↩️⏩⏹️🚨⏭️🔑"
_LINE = re.compile(rf"[{SYMBOLS}]+ \*[^*]+\*")
_DEADLINE = re.compile(r"Expires <!date\^\d+\^[^|]+\|[^>]+>; then [a-z'“” ]+\.")
_MARKS = re.compile(r"  ·  (?:please check|version \d+|🔺.*|🛑.*|Low risk)")


def first_line(card: Card) -> str:
    return str(card.blocks[0]["text"]["text"])


def parts(card: Card, kind: str) -> list[dict[str, Any]]:
    return [part for part in walk(card.blocks) if part.get("type") == kind]


def test_all_states_are_here() -> None:
    runs = {
        run.state for approval in RECORDS.values() if (run := execution_of(approval)) is not None
    }
    assert {approval.status for approval in RECORDS.values()} == set(Status)
    assert runs | {ExecutionState.READY, ExecutionState.LAPSED} == set(ExecutionState)
    assert "approval_stopped" in CARDS


def test_each_card_begins_with_a_symbol_and_a_state() -> None:
    lines = {name: first_line(card) for name, card in CARDS.items()}
    assert {name: line for name, line in lines.items() if not _LINE.match(line)} == {}


def test_each_text_alone_says_the_state_and_then_the_title() -> None:
    positions = {name: card.text.find(title_on(card)) for name, card in CARDS.items()}
    assert {name: at for name, at in positions.items() if at <= 0} == {}


def title_on(card: Card) -> str:
    """The title as it stands below the first line, without the full stop that may follow it."""
    title = card.blocks[1]
    words = (
        title["text"]["text"] if "text" in title else title["elements"][0]["elements"][0]["text"]
    )
    return str(words)[:100].rstrip(".")


@pytest.mark.parametrize("name", sorted(ENDED))
def test_each_text_of_what_is_over_begins_with_its_first_line(name: str) -> None:
    card = CARDS[name]
    state = first_line(card).split(" ", maxsplit=1)[1].replace("*", "")
    assert card.text.startswith(_MARKS.sub("", state).split("  ·  ")[0])
    for person in re.findall(r"<@\w+>", first_line(card)):
        assert person in card.text


def test_no_text_has_two_signs_at_the_end_of_a_sentence() -> None:
    twice = re.compile(r"(?:[.?!…]\.)(?!\.)(?:\s|$)")
    assert [name for name, card in CARDS.items() if twice.search(card.text)] == []


def test_the_requester_is_named_while_it_waits() -> None:
    for name in ("normal", "high", "low", "critical"):
        assert f"Requested by <@{OF_CALLS[name].requester_id}>." in CARDS[name].text


def test_each_button_has_a_label_that_begins_with_its_words() -> None:
    buttons = [part for card in CARDS.values() for part in parts(card, "button")]
    assert len(buttons) > 100
    for button in buttons:
        words = button["text"]["text"].removesuffix("…")
        assert button["accessibility_label"].startswith(f"{words}: ")
        assert len(button["accessibility_label"]) <= 75


def test_each_menu_has_at_most_five_options() -> None:
    menus = [menu for card in CARDS.values() for menu in parts(card, "overflow")]
    assert len(menus) > 20
    assert {menu["action_id"] for menu in menus} == {ActionId.MORE}
    assert {len(menu["options"]) for menu in menus} <= {1, 2, 3, 4, 5}


def test_each_deadline_is_a_date_with_its_consequence() -> None:
    assert len(WAITING) > 30
    for name in WAITING:
        texts = "\n".join(str(part["text"]) for part in parts(CARDS[name], "mrkdwn"))
        assert (name, len(_DEADLINE.findall(texts)), texts.count("Expires")) == (name, 1, 1)


def test_what_is_over_leads_to_its_details_alone() -> None:
    for name, record in ENDED.items():
        actions = {
            element["action_id"] for element in walk(CARDS[name].blocks) if "action_id" in element
        }
        is_stuck = record.status is Status.UNDECIDABLE
        way_out = {ActionId.ASK_ADMIN} if is_stuck else set[ActionId]()
        assert (name, actions) == (name, {ActionId.DETAILS, *way_out})


@given(
    names=st.lists(
        st.text("abXYZ019_-", min_size=1, max_size=20).filter(lambda text: text.strip("_-")),
        min_size=1,
        max_size=6,
        unique=True,
    )
)
@settings(deadline=None, max_examples=60)
def test_no_name_of_an_argument_has_an_underscore(names: list[str]) -> None:
    arguments = dict.fromkeys(names, 5)
    ask = AnswerForm(form=Form.CALL).to_data()
    approval = an_approval(title="Do it", preview="", why="", arguments=arguments, form=ask)
    assert "_" not in "".join(seen(draw(approval)))


def seen(card: Card) -> list[str]:
    """The words of all objects but what stands behind buttons."""
    shown = [block for block in card.blocks if block["type"] != "actions"]
    texts = [element["text"] for element in walk(shown) if isinstance(element.get("text"), str)]
    return [re.sub(r"<!date[^>]*>", "", text) for text in texts]


DEMO = {
    "deploy payments 1.4.2 to production": ["payments", "1.4.2", "production"],
    "deploy search 3.0.1 to staging with 5 replicas": ["search", "3.0.1", "staging"],
    "roll back payments in production": ["payments", "production"],
    "refund order 1234 120.50": ["1234", "120.50"],
    "restart cache on 2026-12-01": ["cache", "2026-12-01"],
    "announce to status and support: payments is back": ["status", "support", "payments is back"],
}
"""What people say to the demo, and the words of its arguments on the card."""


@pytest.mark.parametrize("words", DEMO)
async def test_no_value_of_the_demos_tools_stands_twice(storage: SqliteStores, words: str) -> None:
    office = Office(storage, [], make_agent=lambda _: build(DemoModel()))
    approval = await office.asked(f"<@UBOT> {words}")
    card = card_for(approval, approvers_text="")
    body = " ".join(seen(card))
    assert {value: body.count(value) for value in DEMO[words]} == dict.fromkeys(DEMO[words], 1)
