"""What a card says of where in a program its request arose."""

from __future__ import annotations

from bot.records.approval import Approval
from bot.records.origin import ClaimedSource, RequestDoor, RequestOrigin
from bot.slack.cards.card_for import card_for
from bot.slack.cards.details import details_modal
from tests.unit.bot.slack.cards.samples import an_approval

JOB = ClaimedSource(
    framework="GitHub Actions",
    agent="acme/shop",
    run="4711",
    call="toolu_7",
    url="https://github.com/acme/shop/actions/runs/4711",
)


def from_program(source: ClaimedSource) -> Approval:
    origin = RequestOrigin(
        door=RequestDoor.API, program="prg_1", program_name="deploy", owner="UADA", source=source
    )
    return an_approval().changed(origin=origin)


def elements_of(approval: Approval) -> list[dict[str, object]]:
    blocks = card_for(approval, approvers_text="Mia").blocks
    return [part for block in blocks if block["type"] == "context" for part in block["elements"]]


def test_a_card_has_one_small_line_that_names_the_source() -> None:
    text = (
        "From GitHub Actions · acme/shop · 4711 · https://github.com/acme/shop/actions/runs/4711, "
        "as the program says."
    )
    assert {"type": "plain_text", "text": text, "emoji": False} in elements_of(from_program(JOB))


def test_details_name_the_call_too() -> None:
    assert "4711 · toolu_7 · https://github.com" in str(details_modal(from_program(JOB)))


def test_a_source_neither_mentions_nor_formats_nor_links() -> None:
    forged = ClaimedSource(agent="*Approved by* <@UMIA>", run=":white_check_mark:\nSee <http://x>")
    (part,) = (
        part for part in elements_of(from_program(forged)) if "Approved by" in str(part["text"])
    )
    assert (part["type"], part["emoji"]) == ("plain_text", False)
    assert "\n" not in str(part["text"])


def test_a_secret_in_a_source_is_masked() -> None:
    leaky = ClaimedSource(url="https://ci.test/?token=ghp_16C7e42F292c6912E7710c838347Ae178B4a")
    assert "ghp_16C7" not in str(card_for(from_program(leaky), approvers_text="Mia").blocks)


def test_a_card_without_a_source_has_no_such_line() -> None:
    assert "as the program says" not in str(card_for(an_approval(), approvers_text="Mia").blocks)
