"""The page without the bot: Home, commands, shortcuts, forms, reactions, and how it all looks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize, expect

from slack_sandbox import ADA, OPS, RANDOM, ROSA, Sandbox, Shortcut, SlashCommand, Surfaces
from slack_sandbox.delivery.http import AppReply, Parcel
from tests.browser.players import PATIENCE_MS
from tests.browser.shots import shot
from tests.browser.test_page import browser, expect_back, open_tool, pytestmark

__all__ = ["browser", "pytestmark"]

SURFACES = Surfaces(
    commands=(
        SlashCommand(name="/countersign", usage_hint="[mine | help]", description="What waits"),
    ),
    shortcuts=(
        Shortcut(name="My approvals", callback_id="mine", type="global"),
        Shortcut(name="Ask an agent about this", callback_id="ask", type="message"),
    ),
)


def plain(text: str) -> dict[str, str]:
    return {"type": "plain_text", "text": text}


def option(name: str) -> dict[str, Any]:
    return {"text": plain(name), "value": name.lower()}


def a_field(name: str, kind: str, **more: Any) -> dict[str, Any]:
    element = {"type": kind, "action_id": name, **more}
    label = plain(name.replace("_", " ").capitalize())
    return {"type": "input", "block_id": name, "optional": True, "label": label, "element": element}


def a_form(**changes: Any) -> dict[str, Any]:
    choices = [option("One"), option("Two")]
    return {
        "type": "modal",
        "title": plain("Edit, then approve"),
        "submit": plain("Approve with changes"),
        "blocks": [
            {"type": "alert", "level": "warning", "text": plain("Read this first")},
            a_field("reason", "plain_text_input", multiline=True),
            a_field("environment", "static_select", options=choices),
            a_field("country", "external_select", min_query_length=0),
            a_field("next_time", "radio_buttons", options=choices),
            a_field("groups", "checkboxes", options=choices),
            a_field("until", "datetimepicker", initial_date_time=1_800_000_000),
            a_field("people", "multi_users_select", placeholder=plain("Choose people")),
        ],
        **changes,
    }


def a_card() -> list[dict[str, Any]]:
    buttons = [
        {"type": "button", "action_id": "approve", "style": "primary", "text": plain("Approve")},
        {"type": "button", "action_id": "reject", "text": plain("Reject…")},
        {"type": "overflow", "action_id": "more", "options": [option("Details")]},
    ]
    cells = [[{"type": "raw_text", "text": text} for text in row] for row in (("Id", "Sum"), "12")]
    state = {"type": "mrkdwn", "text": ":hourglass_flowing_sand: *Needs approval* · 🔺 High risk"}
    asked = {"type": "mrkdwn", "text": f"Requested by <@{ROSA}>. 1 of 2 ✅"}
    feedback = {
        "type": "feedback_buttons",
        "positive_button": {"text": plain("Good"), "value": "1"},
        "negative_button": {"text": plain("Bad"), "value": "0"},
    }
    return [
        {"type": "section", "text": state},
        {"type": "header", "text": plain("Deploy payments 1.4.2 to production")},
        {"type": "table", "rows": cells},
        {"type": "context", "elements": [asked]},
        {"type": "actions", "block_id": "buttons", "elements": buttons},
        {"type": "card", "title": plain("A card"), "body": plain("Of its own")},
        {
            "type": "container",
            "title": plain("More"),
            "is_collapsible": True,
            "child_blocks": [{"type": "section", "text": plain("Inside")}],
        },
        {"type": "context_actions", "elements": [feedback]},
    ]


def a_home() -> dict[str, Any]:
    message_only = {"table", "card", "context_actions"}
    return {
        "type": "home",
        "blocks": [block for block in a_card() if block["type"] not in message_only],
    }


@dataclass
class Bench:
    """A sandbox whose app takes everything, and answers with `answer`."""

    sandbox: Sandbox
    got: list[dict[str, Any]] = field(default_factory=list)
    answer: Any = None
    is_open: bool = True

    async def send(self, parcel: Parcel) -> AppReply:
        self.got.append(parcel.payload)
        return AppReply(ok=True, body=self.answer)

    async def heard(self, kind: str) -> dict[str, Any]:
        """Wait for an interaction of a kind."""

        def of_kind() -> list[dict[str, Any]]:
            return [payload for payload in self.got if payload.get("type") == kind]

        await self.sandbox.until(lambda: bool(of_kind()))
        return of_kind()[-1]

    def call(self, method: str, **values: Any) -> dict[str, Any]:
        answer = self.sandbox.answer(method, values)
        assert answer["ok"], answer
        return answer

    async def open_form(self, **changes: Any) -> None:
        """Answer the last click with a form."""
        ticket = (await self.heard("block_actions"))["trigger_id"]
        self.call("views.open", trigger_id=ticket, view=a_form(**changes))

    def where(self, user: str, channel: str = OPS, **more: str) -> str:
        query = "".join(f"&{name}={value}" for name, value in more.items())
        return f"{self.sandbox.url}/?as={user}&channel={channel}{query}"


@pytest_asyncio.fixture(loop_scope="session")
async def bench() -> AsyncIterator[Bench]:
    async with Sandbox(clock=time.time, surfaces=SURFACES) as sandbox:
        opened = Bench(sandbox)
        sandbox.use(opened)
        yield opened


Scheme = Literal["light", "dark"]
SIZES: dict[str, tuple[int, int, Scheme]] = {
    "desk": (1440, 900, "light"),
    "phone-dark": (390, 844, "dark"),
}


@pytest_asyncio.fixture(params=SIZES, loop_scope="session")
async def page(request: pytest.FixtureRequest, browser: Browser) -> AsyncIterator[Page]:
    width, height, scheme = SIZES[request.param]
    size = ViewportSize(width=width, height=height)
    async with await browser.new_context(viewport=size, color_scheme=scheme) as profile:
        page = await profile.new_page()
        page.set_default_timeout(PATIENCE_MS)
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        yield page
        name = request.node.name.replace("[", "-").replace("]", "")
        await shot(page, f"{name}")
        assert faults == []


async def test_home_is_shown_follows_the_app_and_its_buttons_work(page: Page, bench: Bench) -> None:
    dm = bench.sandbox.dm_id(ADA)
    await page.goto(bench.where(ADA, dm))
    await page.get_by_test_id("tab-home").click()
    await expect(page.get_by_test_id("home")).to_contain_text("not published its Home")
    opened = [payload["event"] for payload in bench.got if "event" in payload]
    assert [event["tab"] for event in opened if event["type"] == "app_home_opened"] == [
        "messages",
        "home",
    ]
    bench.call("views.publish", user_id=ADA, view=a_home())
    await expect(page.get_by_test_id("home-view")).to_contain_text("Needs approval")
    await expect(page.get_by_test_id("composer")).to_be_hidden()
    await page.locator('[data-action-id="approve"]').click()
    click = await bench.heard("block_actions")
    assert (click["container"]["type"], click["view"]["type"]) == ("view", "home")
    await bench.open_form()
    await expect(page.get_by_test_id("modal")).to_be_visible()
    await page.reload()
    await expect(page.get_by_test_id("home-view")).to_be_visible()
    await expect(page.get_by_test_id("modal")).to_have_count(0)
    await page.get_by_test_id("tab-home").press("ArrowRight")
    await expect(page.get_by_test_id("tab-messages")).to_be_focused()
    await expect(page.get_by_test_id("composer")).to_be_visible()


async def test_menu_of_the_last_card_can_be_seen_whole(page: Page, bench: Bench) -> None:
    for number in range(12):
        bench.call("chat.postMessage", channel=OPS, text=f"Message {number}")
    words = ("Details", "Ask a question…", "I'm on it", "Snooze…", "Withdraw…")
    menu = {"type": "overflow", "action_id": "menu", "options": [option(label) for label in words]}
    actions = [{"type": "actions", "elements": [menu]}]
    bench.call("chat.postMessage", channel=OPS, text="A card", blocks=actions)
    await page.goto(bench.where(ROSA))
    await page.locator('[data-action-id="menu"]').click()
    seen = await page.get_by_test_id("messages").bounding_box()
    for word in words:
        item = await page.get_by_role("menuitem", name=word).bounding_box()
        assert seen is not None
        assert item is not None
        assert seen["y"] <= item["y"]
        assert item["y"] + item["height"] <= seen["y"] + seen["height"]


async def test_slash_offers_commands_with_their_hints(page: Page, bench: Bench) -> None:
    await page.goto(bench.where(ROSA))
    composer = page.get_by_test_id("composer")
    await composer.press_sequentially("/")
    commands = page.get_by_role("listbox", name="Commands").get_by_role("option")
    await expect(commands).to_have_count(2)
    await expect(commands.first).to_contain_text("[mine | help]")
    await composer.press_sequentially("co")
    await expect(commands).to_have_count(1)
    await composer.press("Enter")
    await expect(composer).to_have_value("/countersign ")
    await expect(page.get_by_test_id("composer-usage")).to_contain_text("[mine | help]")
    await composer.press_sequentially("mine")
    await composer.press("Enter")
    await bench.sandbox.until(lambda: any(payload.get("command") for payload in bench.got))
    assert bench.got[-1]["text"] == "mine"
    await expect(page.get_by_test_id("composer-usage")).to_be_hidden()


async def test_bot_is_invited_where_it_is_not(page: Page, bench: Bench) -> None:
    await page.goto(bench.where(ROSA, RANDOM))
    await expect(page.get_by_text("is not in this channel")).to_be_visible()
    await expect(page.get_by_test_id("hint")).to_be_hidden()
    await page.get_by_test_id("composer").fill("/invite @countersign")
    await page.get_by_test_id("composer").press("Enter")
    await expect(page.get_by_text("is not in this channel")).to_have_count(0)
    assert bench.sandbox.has_bot(RANDOM)


async def test_shortcuts_stand_in_both_menus(page: Page, bench: Bench) -> None:
    ts = await bench.sandbox.say(ADA, OPS, "The build is red")
    await page.goto(bench.where(ROSA))
    await page.get_by_test_id("composer-plus").press("Enter")
    await page.get_by_role("menuitem", name="My approvals").press("Enter")
    assert (await bench.heard("shortcut"))["callback_id"] == "mine"
    await page.get_by_test_id(f"message-{ts}").hover()
    await page.get_by_test_id(f"more-{ts}").click()
    await page.get_by_role("menuitem", name="Ask an agent about this").click()
    assert (await bench.heard("message_action"))["message"]["text"] == "The build is red"


async def test_form_opens_in_the_window_that_clicked_alone(page: Page, bench: Bench) -> None:
    bench.call("chat.postMessage", channel=OPS, text="Approval needed", blocks=a_card())
    other = await page.context.new_page()
    await other.goto(bench.where(ADA))
    await page.goto(bench.where(ADA))
    await page.locator('[data-action-id="approve"]').click()
    await bench.open_form()
    await expect(page.get_by_test_id("modal")).to_be_visible()
    ts = await bench.sandbox.say(ROSA, OPS, "Anybody?")
    await expect(other.get_by_test_id(f"message-{ts}")).to_be_visible()
    await expect(other.get_by_test_id("modal")).to_have_count(0)
    for name in ("modal-submit", "modal-cancel"):
        box = await page.get_by_test_id(name).bounding_box()
        assert box is not None
        assert box["height"] <= 44  # one line
    await other.close()


async def test_options_are_searched_by_the_keyboard(page: Page, bench: Bench) -> None:
    bench.call("chat.postMessage", channel=OPS, text="Approval needed", blocks=a_card())
    await page.goto(bench.where(ADA))
    await page.locator('[data-action-id="approve"]').click()
    await bench.open_form()
    bench.answer = {"options": [option("Germany"), option("Ghana")]}
    box = page.get_by_role("combobox", name="Country")
    await box.press_sequentially("g")
    await expect(page.get_by_role("option", name="Germany")).to_be_visible()
    assert (await bench.heard("block_suggestion"))["value"] == "g"
    await box.press("ArrowDown")
    await box.press("Enter")
    await expect(box).to_have_value("Ghana")
    bench.answer = None
    await page.get_by_test_id("modal-submit").click()
    values = (await bench.heard("view_submission"))["view"]["state"]["values"]
    assert values["country"]["country"]["selected_option"]["value"] == "ghana"
    assert values["until"]["until"]["selected_date_time"] == 1_800_000_000


async def test_reactions_are_drawn_and_own_messages_changed(page: Page, bench: Bench) -> None:
    bench.sandbox.scopes.add("reactions:write")
    ts = await bench.sandbox.say(ROSA, OPS, "@countersign deploy @rosa")
    await page.goto(bench.where(ROSA))
    bench.call("reactions.add", channel=OPS, timestamp=ts, name="hourglass_flowing_sand")
    message = page.get_by_test_id(f"message-{ts}")
    waits = page.get_by_test_id("reaction-hourglass_flowing_sand")
    await expect(waits).to_have_text("⏳1")
    await waits.click()
    await expect(waits).to_have_attribute("aria-pressed", "true")
    await message.hover()
    await page.get_by_test_id(f"more-{ts}").click()
    await page.get_by_role("menuitem", name="Edit message").click()
    await expect(page.get_by_test_id("edit-text")).to_have_value("@countersign deploy @rosa")
    await page.get_by_test_id("edit-text").fill("never mind")
    await page.get_by_test_id("edit-save").click()
    await expect(message).to_contain_text("never mind(edited)")


async def test_own_name_is_tinted_and_not_the_message(page: Page, bench: Bench) -> None:
    ts = bench.call("chat.postMessage", channel=OPS, text=f"For <@{ROSA}> :zzz: 🛑")["ts"]
    other = bench.call("chat.postMessage", channel=OPS, text=f"For <@{ADA}>")["ts"]
    await page.goto(bench.where(ROSA))
    mine = page.get_by_test_id(f"message-{ts}")
    await expect(mine.locator(".mention-me")).to_have_text("@Rosa Ortiz")
    script = "node => getComputedStyle(node).backgroundColor"
    tinted = await mine.evaluate(script)
    assert tinted == await page.get_by_test_id(f"message-{other}").evaluate(script)
    await expect(mine.locator(".emoji svg")).to_have_count(2)


async def test_bell_has_the_text_of_the_phone_for_each_person(page: Page, bench: Bench) -> None:
    await page.goto(bench.where(ADA))
    root = await bench.sandbox.say(ROSA, OPS, "@ada please look")
    ts = bench.call("chat.postMessage", channel=OPS, thread_ts=root, text="Approval needed")["ts"]
    bench.call("chat.update", channel=OPS, ts=ts, text="Approved by Ada")
    await open_tool(page, "bell", "Enter")
    listed = page.get_by_test_id("bell-list").get_by_role("listitem")
    await expect(listed).to_have_count(2)
    await expect(listed.first).to_contain_text("Approval needed")
    await expect(listed.first).to_contain_text("Reads now: Approved by Ada")
    await page.keyboard.press("Escape")
    await expect_back(page, "bell")


async def test_name_is_whole_at_the_top_and_nothing_is_wider_than_the_page(
    page: Page, bench: Bench
) -> None:
    bench.call("chat.postMessage", channel=OPS, text="Approval needed", blocks=a_card())
    await page.goto(bench.where(ROSA))
    await expect(page.locator('[data-action-id="approve"]')).to_be_visible()
    label = page.get_by_test_id("person-switch").locator(".person-label")
    assert await label.evaluate("node => node.scrollWidth <= node.clientWidth")
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


async def test_neutral_page_has_no_examples(page: Page) -> None:
    async with Sandbox(clock=time.time, with_demo=False) as sandbox:
        await page.goto(f"{sandbox.url}/?as={ROSA}&channel={OPS}")
        await expect(page.locator(".side-group h2").first).to_have_text("Channels")
        await expect(page.get_by_test_id("hint")).to_be_hidden()
        await expect(page.locator("body")).not_to_contain_text("deploy payments")


async def test_time_is_that_of_the_persons_zone(page: Page, bench: Bench) -> None:
    bench.call("chat.postMessage", channel=OPS, text="<!date^1800000000^{date_num} {time}|x>")
    hours = []
    for user in (ROSA, "U0MIACHENF"):
        await page.goto(bench.where(user))
        hours.append(await page.locator("time.date").inner_text())
    assert hours == ["2027-01-15 9:00 AM", "2027-01-15 4:00 PM"]


async def test_theme_and_phone_can_be_chosen(browser: Browser, bench: Bench) -> None:
    size = ViewportSize(width=1280, height=900)
    async with await browser.new_context(viewport=size, color_scheme="light") as profile:
        page = await profile.new_page()
        await page.goto(bench.where(ROSA))
        await page.get_by_test_id("theme").click()
        colour = "getComputedStyle(document.body).backgroundColor"
        assert await page.evaluate(colour) == "rgb(26, 28, 32)"
        await page.get_by_test_id("phone").click()
        frame = page.frame_locator('[data-testid="phone-frame"]')
        await expect(frame.get_by_test_id("tools-toggle")).to_be_visible()
        assert await frame.locator("body").evaluate("node => node.clientWidth") == 390
        await shot(page, "phone-frame")
        await page.get_by_test_id("phone").click()
        await expect(page.get_by_test_id("composer")).to_be_visible()


@pytest.mark.parametrize("look", SIZES)
async def test_axe_finds_nothing_serious(browser: Browser, bench: Bench, look: str) -> None:
    pytest.importorskip("axe_playwright_python", reason="run make check to install it")
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    width, height, scheme = SIZES[look]
    bench.sandbox.scopes.add("reactions:write")
    root = await bench.sandbox.say(ROSA, OPS, "@countersign deploy @ada")
    bench.call("chat.postMessage", channel=OPS, thread_ts=root, text="x", blocks=a_card())
    bench.call("reactions.add", channel=OPS, timestamp=root, name="eyes")
    bench.call("views.publish", user_id=ADA, view=a_home())
    faults: list[str] = []
    size = ViewportSize(width=width, height=height)
    async with await browser.new_context(
        viewport=size, color_scheme=scheme, reduced_motion="reduce"
    ) as profile:
        page = await profile.new_page()
        page.set_default_timeout(PATIENCE_MS)

        async def look_at(name: str) -> None:
            await page.evaluate(axe)
            report = await page.evaluate("axe.run({resultTypes: ['violations']})")
            await shot(page, f"axe-{look}-{name}")
            faults.extend(
                f"{name}: {violation['id']}: {node['target']} {node['failureSummary']}"
                for violation in report["violations"]
                if violation["impact"] in {"serious", "critical"}
                for node in violation["nodes"]
            )

        await page.goto(bench.where(ADA, thread=root))
        await expect(page.locator('[data-action-id="approve"]')).to_be_visible()
        await look_at("thread")
        await page.locator('[data-action-id="approve"]').click()
        await bench.open_form()
        await expect(page.get_by_test_id("modal")).to_be_visible()
        await look_at("form")
        await page.goto(bench.where(ADA, bench.sandbox.dm_id(ADA), tab="home"))
        await expect(page.get_by_test_id("home-view")).to_be_visible()
        await look_at("home")
        for name in ("roster", "trouble", "bell", "help"):
            await open_tool(page, name)
            await expect(page.get_by_test_id(name)).to_be_visible()
            await asyncio.wait_for(look_at(name), 60)
            await page.keyboard.press("Escape")
    assert not faults, "\n".join(faults)


async def test_rare_blocks_are_drawn_or_named(page: Page, bench: Bench) -> None:
    rows = [[{"type": "raw_text", "text": f"{n}"}] for n in ("Id", *range(1, 6))]
    data = {"type": "data_table", "caption": "Orders", "page_size": 2, "rows": rows}
    chart = {"type": "data_visualization", "title": "Sales", "chart": {"type": "pie"}}
    cards = [{"type": "card", "title": plain(name)} for name in ("One", "Two")]
    carousel = {"type": "carousel", "elements": cards}
    ts = bench.call("chat.postMessage", channel=OPS, text="x", blocks=[data, carousel, chart])["ts"]
    await page.goto(bench.where(ROSA))
    message = page.get_by_test_id(f"message-{ts}")
    await expect(message.get_by_text("Page 1 of 3")).to_be_visible()
    await message.get_by_role("button", name="Next").click()
    await expect(message.locator("tbody tr")).to_have_text(["3", "4"])
    await expect(message.locator(".block-card")).to_have_count(2)
    await expect(message.get_by_test_id("unsupported")).to_contain_text("data visualization")
