"""The one shape of cards: what stands where, what is said once, and what is never markup."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from bot.layout.action_ids import ActionId
from bot.layout.blocks import Card
from bot.layout.preview import preview
from bot.questions.form import AnswerForm, Form
from bot.records.approval import (
    Approval,
    CardClaim,
    Comment,
    Emergency,
    Execution,
    ExecutionState,
    Status,
)
from bot.records.terms import Group, Requirement, Stage, Terms
from bot.slack.cards.card_for import card_for
from bot.slack.cards.details import pages_of
from bot.words import working_for
from slack_sandbox.blockkit.rules import message_errors
from tests.unit.bot.slack.cards.reading import buttons, said
from tests.unit.bot.slack.cards.samples import DECIDED, a_doubt, an_approval, decided
from tests.unit.bot.slack.cards.test_progress import TERMS, under

CHANNEL = "the members of this channel"
ARGUMENTS = {"service": "payments", "version": "1.4.2", "environment": "production", "replicas": 3}


def a_deploy(**changes: Any) -> Approval:
    """A call with four arguments, of which the title shows three."""
    ask = AnswerForm(form=Form.CALL, named=("service", "version", "environment"))
    fields = {
        "arguments": ARGUMENTS,
        "preview": "Replaces 1.4.1, one replica after another.",
        "why": "",
        "form": ask.to_data(),
        **changes,
    }
    return an_approval(**fields)


def at_risk(risk: str, **changes: Any) -> Approval:
    """The same under a rule."""
    stage = Stage(approve=(Requirement(name="ops", groups=("ops",)),))
    terms = Terms.model_validate(
        {
            "rules": ("r",),
            "stages": (stage,),
            "groups": {"ops": Group(here=True)},
            "risk": risk,
            "confirm": risk in {"high", "critical"},
        }
    )
    return a_deploy(terms=terms, **changes)


def draw(approval: Approval) -> Card:
    card = card_for(approval, approvers_text=CHANNEL)
    assert message_errors({"text": card.text, "blocks": card.blocks}) == []
    return card


def ran(state: ExecutionState, **changes: Any) -> Approval:
    run = Execution(state=state, at_ms=DECIDED, text="done")
    return decided(a_deploy(), Status.APPROVED, **changes).changed(execution=run)


STATES: dict[str, tuple[Approval, str]] = {
    "pending": (a_deploy(), "⏳ *Needs approval*"),
    "claimed": (a_deploy(claim=CardClaim().taken("UADA", 1_000)), "👀 *<@UADA> is on it*"),
    "asked": (
        a_deploy(dialog=(Comment(by="UADA", text="Why?", at_ms=1),)),
        "💬 *<@UADA> asked a question*",
    ),
    "escalated": (a_deploy(backups=("UBEN",), begun_ms=1), "📣 *Escalated to backup*"),
    "stuck": (a_deploy(stuck="nobody is left"), "⚠️ *No one can decide this*"),
    "in doubt": (a_doubt(), "❓ *May have run*"),
    "running": (ran(ExecutionState.STARTED), "⚙️ *Approved by <@U0BEN>*  ·  running"),
    "ran": (ran(ExecutionState.ENDED), "✅ *Approved by <@U0BEN>*  ·  ran"),
    "failed": (ran(ExecutionState.FAILED), "⚠️ *Failed*"),
    "rejected": (decided(a_deploy(), Status.REJECTED), "⛔ *Rejected by <@U0BEN>*"),
    "edited": (decided(a_deploy(), Status.APPROVED, arguments={"a": 1}), "✏️ *Edited by <@U0BEN>*"),
    "expired": (decided(a_deploy(), Status.EXPIRED, by=""), "⏰ *Expired "),
    "withdrawn": (decided(a_deploy(), Status.WITHDRAWN), "↩️ *Withdrawn by <@U0BEN>*"),
    "replaced": (
        decided(a_deploy(), Status.SUPERSEDED, by="").changed(newer_ts="1.1"),
        "⏩ *Replaced by",
    ),
    "called off": (decided(a_deploy(), Status.SUPERSEDED, by=""), "⏹️ *Cancelled*"),
    "cancelled": (decided(a_deploy(), Status.CANCELLED, by=""), "⏹️ *Cancelled*"),
    "overridden": (
        decided(a_deploy(), Status.APPROVED, emergency=Emergency(what="x", why_now="y")),
        "🚨 *Override by <@U0BEN>*",
    ),
}


@pytest.mark.parametrize("state", sorted(STATES))
def test_the_first_line_is_a_symbol_and_a_state(state: str) -> None:
    approval, words = STATES[state]
    assert draw(approval).blocks[0]["text"]["text"].startswith(words)


def test_the_text_for_notifications_changes_with_each_state() -> None:
    texts = [draw(approval).text for approval, _ in STATES.values()]
    assert len(set(texts)) == len(texts)


def test_nothing_is_said_twice() -> None:
    card = said(draw(a_deploy()))
    body = card[: card.index("countersign:")].split("accessibility_label", maxsplit=1)[0]
    assert [body.count(word) for word in ("payments", "1.4.2", "production")] == [1, 1, 1]
    assert '"Replicas "' in body


def test_a_title_that_is_cut_leaves_out_no_argument() -> None:
    title = f"Deploy payments 1.4.2 to production {'x' * 200}"
    card = draw(a_deploy(title=title))
    assert "Service: payments" in said(card)
    assert buttons(card)[ActionId.APPROVE]["text"]["text"] == "Approve…"


@given(
    arguments=st.dictionaries(
        st.sampled_from(["service", "version", "a_b", "note", "many"]),
        st.one_of(st.text(max_size=60), st.integers(), st.booleans(), st.none()),
        max_size=5,
    ),
    named=st.lists(st.sampled_from(["service", "version", "note"]), unique=True),
)
@settings(deadline=None, max_examples=60)
def test_each_argument_is_in_the_title_the_facts_or_counted(
    arguments: dict[str, Any], named: list[str]
) -> None:
    ask = AnswerForm(form=Form.CALL, named=tuple(named))
    title = f"Do {arguments.get('service')} {arguments.get('version')}"
    approval = a_deploy(title=title, arguments=arguments, form=ask.to_data())
    card = draw(approval)
    header = card.blocks[1]["text"]["text"]
    for name, value in arguments.items():
        label = name.replace("_", " ").capitalize()
        is_listed = f'"{label} "' in said(card) or f"{label}: " in said(card)
        is_in_title = name in named and 0 < len(str(value)) <= 40 and str(value) in header
        assert is_listed or is_in_title or "more character" in said(card)


@pytest.mark.parametrize(
    ("risk", "mark"),
    [
        ("low", "Low risk"),
        ("medium", ""),
        ("high", "🔺 *High risk*"),
        ("critical", "🛑 *Critical*"),
    ],
)
def test_a_risk_is_said_where_it_is_not_as_usual(risk: str, mark: str) -> None:
    line = draw(at_risk(risk)).blocks[0]["text"]["text"]
    assert line == "⏳ *Needs approval*" + (f"  ·  {mark}" if mark else "")


def test_high_is_confirmed_and_critical_has_a_form() -> None:
    high = buttons(draw(at_risk("high")))[ActionId.APPROVE]
    assert {text["type"] for text in high["confirm"].values()} == {"plain_text"}
    critical = buttons(draw(at_risk("critical")))[ActionId.APPROVE]
    assert ("confirm" in critical, critical["text"]["text"]) == (False, "Approve…")


def test_anyone_else_only_where_the_requester_is_left_out_and_in_the_group() -> None:
    assert "Anyone else in <#C1> can approve." in said(draw(a_deploy()))
    assert "Anyone in <#C1> can approve." in said(draw(a_deploy(self_approval=True)))
    away = a_deploy(members={"C1": ("UADA",)})
    assert "Anyone in <#C1> can approve." in said(draw(away))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, "Yes"),
        (False, "No"),
        ("true", "true"),
        ("Yes", '\\"Yes\\"'),
        (None, "not set"),
        ("", "empty text"),
        ("Not set", '\\"Not set\\"'),
        ([], "none"),
        ({}, "no fields"),
        (["a", "b"], "a, b"),
        ("2026-12-12", "12 Dec 2026"),
        ("2026-02-31", "2026-02-31"),
        ("2026-12-01T09:30:00Z", "1 Dec 2026 09:30 UTC"),
    ],
)
def test_values_are_words(value: object, words: str) -> None:
    card = said(draw(a_deploy(title="Do it", arguments={"order_id": value})))
    assert '"Order ID "' in card
    assert f'"text": "{words}"' in card


def test_a_name_is_its_authors_where_there_is_one() -> None:
    ask = AnswerForm(form=Form.CALL, labels={"order_id": "Order number"})
    card = a_deploy(arguments={"order_id": 5}, form=ask.to_data())
    assert '"Order number "' in said(draw(card))


def test_a_secret_in_a_name_is_masked_before_it_is_put_into_words() -> None:
    card = said(draw(a_deploy(arguments={"sk-abcdefghijklmnopqrstuvwxyz012345": 5})))
    assert "abcdefghijklmnop" not in card.lower()


def test_details_have_the_names_and_words_of_the_card() -> None:
    ask = AnswerForm(form=Form.CALL, labels={"day": "Due"}, named=("order_id",))
    arguments = {"order_id": "A-1", "day": "2026-12-01", "ship_back": False, "to": []}
    approval = a_deploy(arguments=arguments, form=ask.to_data())
    details = json.dumps(pages_of(approval)[0], ensure_ascii=False)
    for words in ("Order ID: ", "Due: ", "1 Dec 2026", "Ship back: ", '"No"', "none"):
        assert words in details
    assert "ship_back" not in details


def test_a_difference_is_a_box_and_lines_with_tabs_are_a_table() -> None:
    diff = preview("  allow 443\n- allow 22 from a\n+ allow 22 from b")
    assert diff.blocks[0]["elements"][0]["type"] == "rich_text_preformatted"
    table = preview("Invoice\tEUR\n" + "\n".join(f"{n}\t{n}.50" for n in range(10)))
    rows = table.blocks[0]["rows"]
    assert (table.blocks[0]["type"], len(rows)) == ("table", 9)
    assert table.hidden > 0
    assert "and 2 more rows" in json.dumps(table.blocks)
    assert preview("- one\n- two").blocks[0]["elements"][0]["type"] == "rich_text_section"


@pytest.mark.parametrize(
    ("risk", "line", "spoken"),
    [
        (
            "medium",
            "⏳ *Needs approval*  ·  Goes outside the company",
            "needed, goes outside the company:",
        ),
        (
            "low",
            "  ·  Goes outside the company  ·  Low risk",
            "needed, low risk, goes outside the company:",
        ),
        (
            "high",
            "  ·  🔺 *High risk*  ·  Goes outside the company",
            ", high risk, goes outside the company:",
        ),
    ],
)
def test_what_leaves_the_company_is_marked(risk: str, line: str, spoken: str) -> None:
    leaves = AnswerForm(form=Form.CALL, leaves=True).to_data()
    terms = TERMS.model_copy(update={"risk": risk})
    card = card_for(under(terms, form=leaves), approvers_text="")
    assert card.blocks[0]["text"]["text"].endswith(line)
    assert spoken in card.text


@pytest.mark.parametrize(
    ("name", "line", "spoken"),
    [
        ("Acme GmbH ", "Goes outside Acme GmbH", ", goes outside Acme GmbH:"),
        (
            "R&D <!here>",
            "Goes outside R&amp;D &lt;!here&gt;",
            ", goes outside R&amp;D &lt;!here&gt;:",
        ),
        ("x" * 99, f"Goes outside {'x' * 20}… 79 more", f"goes outside {'x' * 20}… 79 more"),
        (" ", "Goes outside the company", ", goes outside the company:"),
    ],
)
def test_the_company_is_named_where_its_name_is_known(name: str, line: str, spoken: str) -> None:
    leaves = AnswerForm(form=Form.CALL, leaves=True).to_data()
    with working_for(name):
        card = card_for(under(TERMS, form=leaves), approvers_text="")
    assert line in card.blocks[0]["text"]["text"]
    assert spoken in card.text
