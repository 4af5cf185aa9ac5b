"""All words that people read in Slack stand in the catalogue, each short enough for its place."""

from __future__ import annotations

import ast
import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[4]
ENGLISH: dict[str, str] = json.loads((ROOT / "bot/words/en.json").read_text(encoding="utf-8"))
ROOMS = (
    "bot/slack",
    "bot/questions",
    "bot/layout",
    "bot/people",
    "bot/records",
    "bot/policy/refusals.py",
    "bot/errors.py",
    "bot/approvals",
    "bot/audit",
    "bot/freezes",
    "bot/maintenance",
    "bot/notifications",
    "bot/threads",
    "bot/leases.py",
    "bot/scheduler.py",
    "bot/tasks.py",
)
ONLY_FOR_OPERATORS = {
    "bot/threads/named_agents.py",
    "bot/threads/runs/model_limits.py",
    "bot/maintenance/clocks.py",
    "bot/maintenance/retention.py",
    "bot/approvals/outcome.py",
    "bot/maintenance/pending.py",
    "bot/maintenance/audit_sealer.py",
}
# Two words and more, or one with a capital as on a button.
_WORDY = re.compile(r"[A-Za-z]{2,}.* .*[A-Za-z]{2,}|^[A-Z][a-z]{2,}[.…!?]?$", re.DOTALL)
# What was used, as errors name it: `bot.errors` says it in the reader's language.
_THING = re.compile(r"this (answer|button|choice|command|form|menu|page|shortcut)")
# Patterns of dates.
_DATE = re.compile(r"\{date_\w+\}.*|EEE, MMM d")
_PLURAL = re.compile(r"\.(one|few|many|other)$")
_PLACE = re.compile(r"\{[a-z_]+\}")
_LOGS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
_NO_WORDS = {
    "say",
    "compile",
    "getLogger",
    "cast",
    "TypeVar",
    "NewType",
    "ContextVar",
    "namedtuple",
}
_FOR_DEVELOPERS = {
    "AssertionError",
    "DeliveryError",
    "DirectoryError",
    "InvalidInputError",
    "KeyError",
    "LookupError",
    "NotImplementedError",
    "RuntimeError",
    "SettingsError",
    "TypeError",
    "ValueError",
}

# Texts of logs, of the audit, for the agent, what people type, and a name in a digest, by file.
NOT_FOR_PEOPLE: dict[str, int] = {
    "bot/approvals/due/thread_reactions.py": 1,
    "bot/audit/entries.py": 1,
    "bot/approvals/break_glass.py": 2,
    "bot/slack/connect.py": 1,
    "bot/approvals/ask_agent.py": 5,
    "bot/threads/outbox.py": 1,
    "bot/threads/runs/task_board.py": 2,
    "bot/threads/closing.py": 3,
    "bot/records/messages.py": 2,
    "bot/records/terms.py": 1,
    "bot/scheduler.py": 2,
    "bot/audit/report.py": 1,
    "bot/leases.py": 1,
    "bot/layout/forms/schema.py": 3,
    "bot/questions/base.py": 2,
    "bot/questions/human.py": 1,
    "bot/questions/step.py": 1,
    "bot/slack/agent_view.py": 1,
    "bot/slack/calls.py": 3,
    "bot/errors.py": 3,
    "bot/slack/ratelimit.py": 1,
}
# Texts that stand elsewhere, by file: it may only get shorter.
ELSEWHERE: dict[str, int] = {}
# Keys that nothing says: it may only get shorter.
UNUSED: set[str] = set()
# Texts of more than twelve words: it may only get shorter.
LONG = {
    "refuse.reply_option",
    "line.reveal_first",
    "line.turned",
    "line.doubt_checked",
    "line.restored_approval",
    "line.restored_question",
    "line.restored_doubt",
    "form.edit_help",
    "form.grant_help",
    "form.grant_scope",
    "form.recorded_words",
    "refuse.noted",
    "refuse.about_elsewhere",
    "refuse.about_busy",
    "refuse.bad_delegate",
    "refuse.to_withdraw",
    "refuse.begun",
    "error.database",
    "error.ours",
    "error.not_kept",
    "error.run_ended",
    "error.unreadable",
    "error.turn_ours",
    "error.model_key",
    "error.model_model",
    "error.model_quota",
    "error.model_length",
    "error.model_request",
    "error.record",
    "error.broken",
    "error.unread",
    "error.kept_nowhere",
    "message.lost_archived",
    "message.lost_removed",
    "message.lost_thread",
    "home.grant_withheld",
    "message.ask_deleted",
    "message.ask_deleted_withdrawn",
    "message.edited_late",
    "message.answer_kept",
    "message.restored_cut",
    "message.restored_unread",
    "command.help",
    "command.verdict",
    "command.away_alone",
    "command.handed",
    "command.handed_ended",
    "command.away",
    "command.date",
    "nobody.remedy",
}
MOST_WORDS = 12
# Characters of a text with its values left out, by the place where it stands.
PLACES = {
    r"button\..+|confirm\.(yes|no)": 30,
    r"confirm\..+_title": 100,
    r"confirm\..+": 300,
    r"form\.(.+_(submit|title)|cancel|close|review|details|edit|reject|critical|ask)": 24,
    r"form\.(withdraw|snooze|hand_over|grant|override|too_late|not_done|recorded|handed)": 24,
    r"form\.(approved_no_grant|revealed|countersign)|home\.title": 24,
    r"form\.(reason|snooze|ask|allow|page)_[a-z]+(_help)?|home\.(filter|show|expires)_.+": 75,
}


def test_no_words_stand_outside_of_the_catalogue() -> None:
    texts = {path: _texts(ROOT / path) for path in _files()}
    faults = [
        f"{path}:{line}: {text!r}"
        for path, lines in texts.items()
        if len(lines) > (ELSEWHERE | NOT_FOR_PEOPLE).get(path, 0)
        for line, text in lines
    ]
    assert not faults, "say these by key, from bot/words/en.json:\n" + "\n".join(faults)


def test_no_exception_outlives_its_words() -> None:
    needed = {path for path in _files() if _texts(ROOT / path)}
    assert not {*ELSEWHERE, *NOT_FOR_PEOPLE} - needed, "take these out of the list"


def test_each_text_is_said_somewhere() -> None:
    unused = set(_unused())
    assert sorted(unused - UNUSED) == []
    assert sorted(UNUSED - unused) == [], "take these out of the list"


def test_each_text_fits_its_place() -> None:
    faults = [
        f"{key} has {len(_PLACE.sub('', text))} of {most} characters: {text!r}"
        for key, text in ENGLISH.items()
        if len(_PLACE.sub("", text)) > (most := _most(key))
    ]
    assert not faults, "\n".join(faults)


def test_each_text_has_at_most_twelve_words() -> None:
    long = {key for key, text in ENGLISH.items() if _words(text) > MOST_WORDS}
    assert sorted(long - LONG) == []
    assert sorted(LONG - long) == [], "take these out of the list"


def _most(key: str) -> int:
    fits = (most for place, most in PLACES.items() if re.fullmatch(place, _PLURAL.sub("", key)))
    return next(fits, 3_000)


def _words(text: str) -> int:
    return len(re.findall(r"\S*\w\S*", text))


def _files() -> list[str]:
    paths = []
    for room in ROOMS:
        place = ROOT / room
        paths += [place] if place.is_file() else sorted(place.rglob("*.py"))
    names = [str(path.relative_to(ROOT)) for path in paths]
    return [name for name in names if name not in ONLY_FOR_OPERATORS]


@functools.cache
def _texts(path: Path) -> list[tuple[int, str]]:
    return [*_found_in(path)]


def _found_in(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in a file that look like words for people, each with its line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left_out = {id(node) for part in _no_words(tree) for node in ast.walk(part)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in left_out and _is_worded(text):
                yield node.lineno, text
            case _:
                pass


def _is_worded(text: str) -> bool:
    is_name = _THING.fullmatch(text) or _DATE.fullmatch(text)
    return is_name is None and _WORDY.search(text) is not None


def _no_words(tree: ast.Module) -> Iterator[ast.AST]:
    """The parts of a file where a text is for developers, or is no words."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant()):
                yield node  # a docstring
            case ast.Call() if _name(node) in _LOGS | _NO_WORDS | _FOR_DEVELOPERS:
                yield node
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                yield node
            case ast.AnnAssign():
                yield node.annotation
            case ast.arg(annotation=ast.expr()):
                yield node
            case _:
                pass


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _unused() -> Iterator[str]:
    keys, patterns = set[str](), set[str]()
    for path in sorted((ROOT / "bot").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Constant(value=str(text)):
                    keys.add(text)
                case ast.JoinedStr(values=[ast.Constant(value=str(group)), *_]) if "." in group:
                    patterns.add(_pattern(node))
                case _:
                    pass
    for key in ENGLISH:
        plain = _PLURAL.sub("", key)
        if plain not in keys and not any(re.fullmatch(pattern, plain) for pattern in patterns):
            yield key


def _pattern(text: ast.JoinedStr) -> str:
    parts = [node.value if isinstance(node, ast.Constant) else None for node in text.values]
    return "".join("[a-z_]+" if part is None else re.escape(str(part)) for part in parts)
