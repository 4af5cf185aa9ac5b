"""Out of the ordinary: grants, overrides, batches, reasons, edits, votes taken back, nobody."""

from __future__ import annotations

from playwright.async_api import expect

from bot.words import say
from slack_sandbox import ADA, BEN, FINANCE, MIA, ROSA
from tests.browser.players import Player, demo, player
from tests.browser.test_page import browser, pytestmark

__all__ = ["browser", "demo", "player", "pytestmark"]

VOTED, _, _ = say("refuse.voted_already_who", who="|").partition("|")


async def test_grant_counts_and_ends(player: Player) -> None:
    await player.ask("refund order 1001 20.00", shows="Needs approval")
    await player.become(ADA)
    await player.look("asked")
    await player.pick("Details")
    await expect(player.form).to_contain_text("Next time")
    await player.look("review")
    await player.form.get_by_text("Allow this 5 more times").click()
    await player.submit()
    await player.sees("20.00 EUR were refunded")
    await player.sees("0 of 5 used")
    await player.look("counter")
    await player.become(ROSA)
    await player.reply("@countersign refund order 1001 20.00")
    await player.sees("1 of 5 used")
    await player.look("without-asking")
    await player.pick("Stop permission…")
    await player.look("confirm-revoke")
    await player.submit()
    await player.sees("Stopped by")
    await player.look("revoked")
    await player.reply("@countersign refund order 1001 20.00")
    await expect(player.pane.locator('[data-action-id="countersign:approve"]')).to_be_visible()
    await player.look("asked-again")


async def test_emergency_override(player: Player) -> None:
    await player.ask("deploy web 1.4.2 to staging", shows="Needs approval")
    await player.become(BEN)
    await player.press("approve")
    await player.sees("web 1.4.2 is live")
    await player.ask("deploy web 1.4.3 to staging", shows="Needs approval")
    await player.become(BEN)
    await player.press("approve")
    await player.sees("web 1.4.3 is live")
    await player.ask("roll back web in staging", shows="Needs approval")
    await player.look("asked")
    await player.pick("Details")
    await expect(player.form).to_contain_text("override")
    await player.look("details")
    await player.press("override", within=player.form)
    await expect(player.form).to_contain_text("Emergency override")
    await player.look("form")
    areas = player.form.locator("textarea")
    await areas.nth(0).fill("Down")
    await areas.nth(1).fill("Down")
    await player.form.get_by_role("checkbox").check()
    await player.submit()
    await expect(player.page.get_by_test_id("field-error").first).to_be_visible()
    await player.look("too-short")
    await areas.nth(0).fill("Payments are down for everybody")
    await areas.nth(1).fill("Finance is asleep, and customers cannot pay")
    await player.look("filled")
    await player.submit()
    await player.sees("Override by")
    await player.look("card")
    await player.become(MIA, channel=FINANCE, thread="")
    await expect(player.page.get_by_test_id("messages")).to_contain_text("emergency override")
    await player.look("alert")
    await player.talk_to_bot(MIA)
    messages = player.page.get_by_test_id("messages")
    await expect(messages).to_contain_text("Finance is asleep")
    await player.look("message")
    await player.press("seen", within=messages)
    await expect(messages).to_contain_text("Seen by @Mia Chen")
    await player.look("seen")


FIVE = "refund orders 1234 20.00, 1240 12.50, 1251 99.50, 1262 9.90, 1270 31.00"


async def test_five_refunds_have_one_card(player: Player) -> None:
    await player.ask(FIVE, shows="5 need approval")
    await player.become(ADA)
    await player.sees("5 refunds, 172.90 EUR in total")
    await player.look("asked")
    await player.press("batch")
    await player.look("choose")
    boxes = player.form.get_by_role("checkbox")
    await expect(player.form.get_by_role("checkbox", checked=True)).to_have_count(0)
    for number in (0, 1, 2, 4):
        await boxes.nth(number).check()
    await expect(player.form).to_contain_text("Approve 4 of 5")
    await expect(player.form).to_contain_text("Selected: 4 refunds")
    await player.look("chosen")
    await player.submit()
    await player.sees("1 needs approval  ·  4 ran")  # it is drawn anew no more: a menu stays open
    await player.look("partly")
    await player.pick("Reject all…")
    await player.look("reject")
    await player.form.get_by_text("Another reason").click()
    await player.form.locator("textarea").first.fill("already refunded by hand")
    await player.submit()
    await player.sees("4 ran, 1 rejected")
    await player.look("done")
    await player.press("batch_details")
    await player.look("details")


async def test_batch_of_equal_calls(player: Player) -> None:
    await player.ask("deploy one 1.0.0 and two 2.0.0 and three 3.0.0 to staging")
    await player.sees("three")
    await player.become(ADA)
    await player.look("asked")
    await player.press("batch")
    await player.look("choose")
    await player.form.get_by_role("checkbox", name="1. Deploy one").check()
    await player.form.get_by_role("checkbox", name="3. Deploy three").check()
    await expect(player.form).to_contain_text("Approve 2 of 3")
    await player.submit()
    await player.sees("1 needs approval  ·  2 ran")
    await player.look("partly")


async def test_escape_closes_a_form_also_when_the_focus_is_not_in_it(player: Player) -> None:
    await player.ask("deploy payments 2.0.0 to production", shows="Needs approval")
    await player.become(ADA)
    await player.pick("Details")
    await expect(player.form).to_be_visible()
    await player.page.evaluate("document.activeElement.blur()")
    await player.page.keyboard.press("Escape")
    await expect(player.form).to_have_count(0)
    await player.sees("Needs approval")


async def test_vote_is_taken_back(player: Player) -> None:
    await player.ask("deploy payments 2.0.0 to production", shows="Needs approval")
    await player.become(ADA)
    await player.press("approve")
    await player.agree()
    await player.sees("1 of 3 approvals")
    await player.pick("Details")
    await expect(player.form).to_contain_text(VOTED)
    await player.press("take_back", within=player.form)
    await expect(player.form).not_to_contain_text(VOTED)
    await player.look("taken-back")
    # Where the pointer rests on a name, Escape is for what is shown of that person first.
    await player.form.get_by_test_id("modal-close").hover()
    await expect(player.page.get_by_test_id("hover-card")).to_be_hidden()
    await player.page.keyboard.press("Escape")
    await expect(player.form).to_have_count(0)
    await player.sees("Needs approval")
    await player.press("approve")
    await player.agree()
    await player.sees("1 of 3 approvals")
    await player.become(ROSA)
    await player.look("requester")
    await player.pick("Withdraw")
    await player.look("form")
    await player.form.locator("textarea").fill("Found a bug in it")
    await player.submit()
    await player.sees("Withdrawn by")
    await player.look("withdrawn")


async def test_reasons_are_required(player: Player) -> None:
    await player.ask("refund order 2001 500.00", shows="Needs approval")
    await player.become(MIA)
    await player.look("asked")
    await player.press("approve")
    await player.look("approve-form")
    await player.submit()
    await expect(player.page.get_by_test_id("field-error")).to_be_visible()
    await player.look("missing")
    await player.page.keyboard.press("Escape")
    await player.press("reject")
    await player.look("reject-form")
    await player.submit()
    await expect(player.page.get_by_test_id("field-error")).to_be_visible()
    await player.look("reject-missing")
    await player.form.get_by_text("Already refunded").click()
    await player.submit()
    await player.sees("Already refunded")
    await player.sees("Rejected by")
    await player.look("rejected")


async def test_edit_that_changes_who_decides(player: Player) -> None:
    await player.ask("refund order 3001 30.00", shows="Needs approval")
    await player.become(BEN)
    await player.press("edit")
    await player.look("form")
    await player.form.get_by_label("amount").fill("300.00")
    await player.submit()
    await player.sees("Refund 300.00 EUR")
    await expect(player.private.last).to_contain_text(say("message.edit_others"))
    await player.look("edited")
    await player.press("approve")
    await expect(player.private.last).to_contain_text("not an approver for this")
    await player.look("no-longer")
    await player.become(ADA)
    await player.ask("deploy web 1.0.0 to production", shows="Needs approval")
    await player.become(BEN)
    await player.press("edit")
    await player.form.get_by_label("service").fill("nuclear")
    await player.submit()
    error = player.page.get_by_test_id("field-error")
    await expect(error).to_contain_text("Nobody deploys this from here.")
    await expect(error).not_to_contain_text("..")
    await player.look("denied")
    await player.page.keyboard.press("Escape")
    await player.become(ADA)
    await player.ask("deploy web 1.1.0 to production", shows="Needs approval")
    await player.become(BEN)
    await player.press("edit")
    await player.form.get_by_label("service").fill("payments")
    await player.submit()
    await player.sees("1 of 3 approvals")
    await expect(player.private.last).to_contain_text(say("message.edit_part", have=1, need=3))


async def test_nobody_could_decide(player: Player) -> None:
    await player.ask("deploy vault 1.0.0 to production", shows="No one can decide this")
    await player.look("asked")
    await player.ask("deploy nuclear 1.0.0 to production", shows="Nobody deploys this from here")
    await expect(player.pane).not_to_contain_text("Do not try")
    await player.look("denied")
