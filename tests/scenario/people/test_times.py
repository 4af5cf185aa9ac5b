"""What people type behind `/countersign away` and `delegate`: times, people, groups."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from bot.words import say
from slack_sandbox.workspace.people import ADA, BEN, BOT_USER, GUS
from tests.scenario.people.test_commands import listed
from tests.support.stage import Stage, a_stage, write_policy

PEOPLE = {"ada": ADA, "ben": BEN, "gus": GUS, "bot": BOT_USER}
# On a Monday at ten: what is typed, how many days later it is, and at which time.
TIMES = {
    "until fri 18:00": (4, "18:00"),
    "until Friday at 18:00": (4, "18:00"),
    "until on fri 6pm": (4, "18:00"),
    "until fri 12am": (4, "00:00"),
    "until fri 12:30pm": (4, "12:30"),
    "until fri": (4, "23:59"),
    "until mon 18:00": (0, "18:00"),
    "until mon 9:00": (7, "09:00"),
    "until mon": (0, "23:59"),
    "until today 18:00": (0, "18:00"),
    "until tomorrow": (1, "23:59"),
    "until tomorrow 9:00": (1, "09:00"),
    "until 18:00": (0, "18:00"),
    "until 9:00": (1, "09:00"),
    "until {date:%Y-%m-%d}": (3, "23:59"),
    "until {date:%Y-%m-%d}T18:00": (3, "18:00"),
    "until {date.day} {date:%b} 9am": (3, "09:00"),
    "until {date.day}. {date:%B}": (3, "23:59"),
    "for 3 days": (3, "10:00"),
    "for 1 week": (7, "10:00"),
}
NO_TIMES = (
    "until",
    "until at",
    "until someday",
    "until fri fri 18:00",
    "until 18",
    "until fri 25:00",
    "until fri 18:60",
    "until fri 13pm",
    "until fri 0am",
    "until 31 feb",
    "until 2026-13-01",
    "until 0000-01-01",
    "for some days",
    "for ever",
)
ANSWERS = {
    "help": "asks people before an AI agent acts",
    "away until 9000-01-01": "30 days or less",
    "approve everything": "“approve”",
    "<!channel>": "“&lt;!channel&gt;”",
    "x" * 9_000: "“xxx",
    "away": say("command.when"),
    "away until 2001-01-01": say("refuse.time_over"),
    "delegate @nobody until fri 18:00": "I don't know @nobody. Mention a person",
    "delegate off now": "I don't know off. Mention a person",
    "delegate {ben}": say("command.when"),
    "delegate {ben} fri 18:00": say("command.when"),
    "delegate {ben} until someday": "I couldn't read “until someday”",
    "delegate {ben} until fri 18:00 for": say("command.group"),
    "delegate {ben} until fri 18:00 for team others": say("command.group"),
    "delegate {ben} until fri 18:00 for nothing": "no group “nothing”",
    "delegate {ben} until fri 18:00 for <!here>": "no group with that name",
    "delegate {ben} until 2001-01-01": say("refuse.time_over"),
    "delegate {ben} until 9000-01-01": "30 days or less",
    "delegate {ada} until tomorrow": say("refuse.delegate_self"),
    "delegate {gus} until tomorrow": say("refuse.delegate_inactive"),
    "away until fri for {ada}": say("refuse.delegate_self"),
    "away until fri for {gus}": say("refuse.delegate_inactive"),
    "away until fri for {bot}": say("refuse.delegate_inactive"),
    "away until fri for @Noone Atall": say("command.person", name="@Noone Atall"),
    "stop 1": say("command.no_grant", n="1"),
    "permissions": say("command.grants_none"),
}
POLICY = f"""
version: 1
groups:
  team: {{users: [{ADA}, {BEN}]}}
rules: []
default:
  ask: {{approve: [{{from: [team]}}], delegation: true}}
"""


async def reply_to(stage: Stage, text: str, by: str = "Ada") -> str:
    """What `/countersign` answers; {ben} is a mention of Ben."""
    people = stage.sandbox.workspace.people
    names = {name: f"@{people[user_id].name}" for name, user_id in PEOPLE.items()}
    return str((await listed(stage, by, text.format(**names)))["text"])


def to_monday_at_ten(stage: Stage) -> datetime:
    """Let time pass until it is a Monday at ten where Ada is; return that moment."""
    zone = ZoneInfo(stage.sandbox.workspace.people[ADA].tz)
    now = datetime.fromtimestamp(stage.clock() / 1_000, tz=zone)
    day = now.replace(tzinfo=None) + timedelta(days=7 - now.weekday())
    monday = day.replace(hour=10, minute=0, second=0, microsecond=0, tzinfo=zone)
    stage.clock.forward(seconds=monday.timestamp() - stage.clock() / 1_000)
    return monday


async def test_a_time_is_read_as_people_mean_it(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket") as stage:
        monday = to_monday_at_ten(stage)
        date, read = monday + timedelta(days=3), {}
        for text in TIMES:
            answer = (await listed(stage, "Ada", f"away {text.format(date=date)}"))["text"]
            end = re.search(r"<!date\^(\d+)", answer)
            assert end is not None, (text, answer)
            moment = datetime.fromtimestamp(int(end[1]), tz=monday.tzinfo)
            read[text] = (moment.date() - monday.date()).days, f"{moment:%H:%M}"
        assert read == TIMES
        for text in NO_TIMES:
            assert await reply_to(stage, f"away {text}") == say("command.date", text=text)


async def test_what_is_typed_wrongly_is_answered_and_lends_nothing(tmp_path: Path) -> None:
    path = write_policy(tmp_path, POLICY)
    async with a_stage(tmp_path, "socket", COUNTERSIGN_POLICY=path) as stage:
        answers = {text: await reply_to(stage, text) for text in ANSWERS}
        assert {text: said for text, said in answers.items() if ANSWERS[text] not in said} == {}
        assert await reply_to(stage, "delegate") == say("command.handed_nothing")
        for text in ("delegate {ben} until tomorrow", "away until tomorrow"):
            assert "Guests can't" in await reply_to(stage, text, by="Gus")


async def test_an_absence_and_a_lent_right_are_replaced_and_ended(tmp_path: Path) -> None:
    path = write_policy(tmp_path, POLICY)
    async with a_stage(tmp_path, "socket", COUNTERSIGN_POLICY=path) as stage:
        for text in ("away until tomorrow", "away until fri"):
            assert "You won't be mentioned until" in await reply_to(stage, text)
        assert "Welcome back." in await reply_to(stage, "back")
        assert await reply_to(stage, "back") == say("command.not_away")

        for text in ("delegate {ben} until tomorrow", "delegate {ben} until fri"):
            assert f"<@{BEN}> can decide for you until" in await reply_to(stage, text)
        assert await reply_to(stage, "delegate {ada} until fri", "Ben") == say(
            "refuse.delegate_cycle"
        )
        own, lent = await reply_to(stage, "delegate"), await reply_to(stage, "delegate", "Ben")
        assert (own.count("<!date^"), lent.count("<!date^")) == (1, 1)
        assert lent.startswith(f"You can decide for <@{ADA}> until")
        assert f"Ended. <@{BEN}> can no longer decide" in await reply_to(stage, "delegate off")
        assert await reply_to(stage, "delegate off") == say("command.nothing_handed")
        assert await reply_to(stage, "delegate", "Ben") == say("command.handed_nothing")
