"""Every record of ours has an action, and the table of actions says what each means."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from bot.observability.actions import ACTIONS
from reference_pages.log_actions import action_of, calls

ROOT = Path(__file__).parents[4]
WORDS_OF_PEOPLE = {"text", "texts", "words", "body", "event", "payload", "answer", "arguments"}
"""Names of values that hold what people, models or requests say."""


def test_every_record_has_an_action_of_the_table() -> None:
    action_by_place = {
        place: action_of(call) for place, call, _ in calls() if place[:7] != "agents/"
    }
    assert len(action_by_place) > 15
    assert {place for place, action in action_by_place.items() if action not in ACTIONS} == set()


def test_every_action_of_the_table_is_used() -> None:
    used = {action_of(call) for _, call, _ in calls()}
    assert set(ACTIONS) - used == {"agents"}  # the log gives it to records without an action


def test_no_record_quotes_people_models_or_requests() -> None:
    wrong: list[str] = []
    for place, call, _ in calls():
        assert isinstance(call.args[0], ast.Constant), place  # a fixed text, and values beside it
        names = [node for value in call.args[1:] for node in ast.walk(value)]
        said = {node.id for node in names if isinstance(node, ast.Name)}
        said |= {node.attr for node in names if isinstance(node, ast.Attribute)}
        if said & WORDS_OF_PEOPLE:
            wrong.append(place)
    assert wrong == []


def test_every_record_names_what_it_is_about() -> None:
    """“not told: …” says nothing to who searches the log for what failed."""
    riddles = re.compile(r"(not|no|nobody|nothing) ")
    arguments = {place: call.args[0] for place, call, _ in calls()}
    texts = {
        place: argument.value
        for place, argument in arguments.items()
        if isinstance(argument, ast.Constant)
    }
    assert {place: text for place, text in texts.items() if riddles.match(str(text))} == {}


def test_nothing_else_writes_to_the_log() -> None:
    """A logger under another name would escape the walk above."""
    for package in ("agents", "bot", "storage"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            loggers = re.findall(r"^(\w+) = logging\.getLogger\(", text, re.MULTILINE)
            assert loggers in ([], ["logger"]), path
            assert not re.search(r"\blogging\.(debug|info|warning|error|exception)\(", text), path
            assert not re.search(r"\bprint\(", text), path
