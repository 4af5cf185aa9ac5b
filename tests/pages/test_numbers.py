"""Numbers in the prose of pages: each comes from the code, from its example, or from others."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents import Tool
from agents.gates.choice import choose_tool
from agents.gates.followup import follow_up_tool
from bot.commands.call import STOP_S
from bot.leases import LEASE
from bot.maintenance.program_keys import USUAL_PERSONAL_KEY
from bot.people.break_glass import LEAST_REASON
from bot.policy.evaluation.conditions import TEXT_LIMIT
from bot.policy.refusals import LONGEST_MS
from bot.ports.people import MOST_MEMBERS
from bot.records.approval import CLAIM_MS
from bot.records.programs import WARNED_MS
from bot.records.terms import MAX_AGE_S, REMIND_S
from bot.redaction.rules import SHORTEST_VALUE
from bot.scheduler import BETWEEN_LOOKS, BETWEEN_TICKS
from bot.slack.directory import MAX_AGE
from bot.threads.worker import MAX_ATTEMPTS, MAX_CRASHES, MAX_CRASHES_AFTER_ANSWER
from bot.triggers.holds import ALIKE_WITHIN, MOST_ALIKE
from bot.triggers.signatures import OLDEST_S
from bot.triggers.starting import HOUR, MOST_IN_ALL, MOST_IN_CHANNEL, SAME_KEY
from bot.webhooks.endpoints import OVERLAP
from bot.webhooks.queues import WAITS
from bot.webhooks.sending import WHOLE_S
from bot.webhooks.worker import PAUSED_AFTER
from slack_sandbox.web.arrange import MOST
from slack_sandbox.workspace.people import first_cast
from storage.mongo.address import OPEN_FACTOR
from tests.mutants.__main__ import ENOUGH
from tests.pages.site import DOCS, ROOT, prose, written_pages
from tests.pages.test_writing import MOST_IN_FIRST_PARAGRAPH
from tests.unit.bot.words.test_nowhere_else import MOST_WORDS, PLACES

DAY_MS = 86_400_000
PEOPLE = len([person for person in first_cast("bot").people if not person.is_bot])
WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NAMES = {**dict(enumerate(WORDS, start=2)), 15: "fifteen", 30: "thirty"}
KUBERNETES = ROOT / "deploy" / "kubernetes" / "countersign.yaml"


def replicas() -> int:
    documents = yaml.safe_load_all(KUBERNETES.read_text("utf-8"))
    return next(
        int(document["spec"]["replicas"])
        for document in documents
        if document["kind"] == "Deployment"
    )


def most(made: Tool, name: str) -> int:
    schema: Any = made.definition.schema
    return int(schema["properties"][name]["maxItems"])


OF_CODE = (
    ("README.md", "act as any of {} people", PEOPLE),
    ("docs/tutorial.md", "{} minutes pass, and a reminder", REMIND_S // 60),
    (
        "docs/how-to/ask-people-for-information.md",
        "up to {} questions",
        most(follow_up_tool(), "questions"),
    ),
    (
        "docs/how-to/ask-people-for-information.md",
        "of 2 to {} options",
        most(choose_tool(), "options"),
    ),
    ("docs/how-to/ask-from-a-program.md", "ends within {} days", WARNED_MS // DAY_MS),
    ("docs/how-to/ask-from-a-program.md", "any tool, {} days", USUAL_PERSONAL_KEY.days),
    ("docs/how-to/decide-in-slack.md", "for {} minutes", CLAIM_MS // 60_000),
    ("docs/how-to/handle-emergencies.md", "At least {} characters", LEAST_REASON),
    ("docs/how-to/manage-secrets.md", "fewer than {} characters", SHORTEST_VALUE),
    ("docs/how-to/receive-webhooks.md", "within {} seconds", int(WHOLE_S)),
    ("docs/how-to/receive-webhooks.md", "within {} hours", OVERLAP // timedelta(hours=1)),
    ("docs/how-to/receive-webhooks.md", "is tried {} times", len(WAITS)),
    (
        "docs/how-to/receive-webhooks.md",
        "in {} days",
        round(sum(WAITS, timedelta()).total_seconds() / 86_400),
    ),
    ("docs/how-to/receive-webhooks.md", "After {} days of failures", PAUSED_AFTER.days),
    ("docs/how-to/repair.md", "agent failed {} times", MAX_ATTEMPTS),
    ("docs/how-to/repair.md", "process died {} times", MAX_CRASHES),
    ("docs/how-to/run-on-kubernetes.md", "runs {} replicas", replicas()),
    ("docs/how-to/start-agents-without-a-person.md", "for {} hours", SAME_KEY // HOUR),
    ("docs/how-to/start-agents-without-a-person.md", "{} starts in the channel", MOST_IN_CHANNEL),
    ("docs/how-to/start-agents-without-a-person.md", "{} in all", MOST_IN_ALL),
    ("docs/how-to/start-agents-without-a-person.md", "older than {} minutes", OLDEST_S // 60),
    (
        "docs/how-to/start-agents-without-a-person.md",
        "times within {} minutes",
        ALIKE_WITHIN.seconds // 60,
    ),
    ("docs/how-to/start-agents-without-a-person.md", "same text {} times", MOST_ALIKE),
    ("docs/how-to/translate.md", "at most {} characters", PLACES[r"button\..+|confirm\.(yes|no)"]),
    ("docs/how-to/use-mongodb.md", "{} times `timeoutMS`", OPEN_FACTOR),
    ("docs/how-to/write-a-policy.md", "within {} seconds", BETWEEN_LOOKS.seconds),
    ("docs/reference/policy-evaluation.md", "more than {} characters", TEXT_LIMIT),
    ("docs/reference/policy-evaluation.md", "within {} seconds", BETWEEN_LOOKS.seconds),
    ("docs/reference/sandbox.md", "at most {} days", MOST.days),
    ("docs/explanation/exactly-once.md", "record for {} seconds", LEASE.seconds),
    ("docs/explanation/exactly-once.md", "records every {} seconds", BETWEEN_TICKS.seconds),
    (
        "docs/explanation/exactly-once.md",
        "at most about {} seconds",
        (LEASE + BETWEEN_TICKS).seconds,
    ),
    ("docs/explanation/exactly-once.md", "({} minutes by default)", MAX_AGE_S // 60),
    ("docs/explanation/exactly-once.md", "exits within {} seconds", round(STOP_S + 0.5)),
    ("docs/explanation/exactly-once.md", "dies {} times", MAX_CRASHES),
    ("docs/explanation/exactly-once.md", "takes {} deaths", MAX_CRASHES_AFTER_ANSWER),
    ("docs/explanation/exactly-once.md", "again after {} seconds", LEASE.seconds),
    ("docs/explanation/limits.md", "up to {} members", MOST_MEMBERS),
    ("docs/explanation/security.md", "at most {} days", LONGEST_MS // DAY_MS),
    ("docs/explanation/security.md", "ends within {} minutes", MAX_AGE.seconds // 60),
    ("docs/explanation/who-decides.md", "more than {} members", MOST_MEMBERS),
    ("docs/explanation/who-decides.md", "at most {} minutes", MAX_AGE.seconds // 60),
    ("docs/explanation/who-decides.md", "at most {} days", LONGEST_MS // DAY_MS),
    ("docs/contributing/index.md", "at most {} words", MOST_WORDS),
    ("docs/contributing/testing.md", "below {} %", int(ENOUGH)),
    ("docs/contributing/writing.md", "at most {} words, the outcome first", MOST_WORDS),
    ("docs/contributing/writing.md", "at most {} words, without a link", MOST_IN_FIRST_PARAGRAPH),
)
"""Page, words around a number, and the number."""

OF_OTHERS = {
    "docs/how-to/connect-slack.md": ("half an hour",),
    "docs/how-to/decide-in-slack.md": ("After five minutes you know",),
    # The values of the page's own policy, which its cases play.
    "docs/how-to/escalate-and-expire.md": ("15 minutes", "45 minutes", "1 hour", "4 hours"),
    "docs/how-to/respect-quiet-hours.md": ("30 working minutes",),
    # Slack's: a click without an answer, and its repetitions.
    "docs/how-to/monitor.md": ("after 3 seconds", "at least 3 seconds"),
    "docs/explanation/exactly-once.md": ("after one minute and after five minutes",),
    "docs/how-to/translate.md": ("40 % longer",),
    "docs/reference/sandbox.md": ("frame of 390 px",),
    # How people write.
    "docs/contributing/writing.md": (
        "At most 25 words per sentence",
        '"at most 75 characters"',
    ),
}
"""Numbers that no code of ours decides, by page."""

UNITS = (
    "seconds?|minutes?|hours?|days?|weeks?|ms|s|min|px|%|times|bytes|KiB|KB|MiB|MB|GB"
    "|characters|words|scopes|members"
)
MEASURED = re.compile(
    rf"\b(?:\d[\d,.]*|one|{'|'.join(NAMES.values())}) (?:working )?(?:{UNITS})(?!\w)", re.IGNORECASE
)
PAGES = [page for page in written_pages() if page.stem != "measurements"]


def said_on(page: Path) -> str:
    """The prose of a page without code, a blank between words."""
    text = re.sub(r"\]\([^)]*\)", "]", prose(page))
    return re.sub(r"\s+", " ", text)


def written(number: int) -> tuple[str, ...]:
    """The ways to write a number."""
    word = NAMES.get(number, "")
    return tuple(spelling for spelling in (f"{number:,}", word, word.capitalize()) if spelling)


@pytest.mark.parametrize(("page", "phrase", "number"), OF_CODE)
def test_a_number_on_a_page_is_that_of_the_code(page: str, phrase: str, number: int) -> None:
    before, _, after = phrase.partition("{}")
    figures = re.findall(rf"{re.escape(before)}(\S+){re.escape(after)}", said_on(ROOT / page))
    assert figures
    assert [figure for figure in figures if figure not in written(number)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_quantity_on_a_page_has_a_source(page: Path) -> None:
    name = page.relative_to(ROOT).as_posix()
    text = re.sub(r"`[^`]*`", "`", said_on(page))
    for place, phrase, number in OF_CODE:
        for spelling in written(number) if place == name else ():
            text = text.replace(re.sub(r"`[^`]*`", "`", phrase.format(spelling)), "")
    for phrase in OF_OTHERS.get(name, ()):
        assert phrase in text, "it is not on the page: remove it here"
        text = text.replace(phrase, "")
    assert MEASURED.findall(text) == []


def test_a_quantity_is_noticed() -> None:
    assert MEASURED.findall("after 15 seconds, 1,000 bytes or Ten minutes; 3 of 5") == [
        "15 seconds",
        "1,000 bytes",
        "Ten minutes",
    ]
    assert written(1_000) == ("1,000",)
    assert written(5) == ("5", "five", "Five")
