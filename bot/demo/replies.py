"""The demo model's words about the results of its calls: each kind of result in its own words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.core.asking.answers import Cancelled, NoApprovers, Withdrawn
from agents.gates.followup import FOLLOW_UP_NAME

_EDITED = "A person changed the arguments to "
_RESULT = ". The tool ran with these. Result: "
_QUIET = re.compile(
    r"(?P<kind>Rejected by a person|Nobody answered in time|"
    rf"{Cancelled.fact}|{Withdrawn.fact}|{NoApprovers.fact})"
    r"(?: \([^)]*\))?; the (?:call to '[^']*' did not run|questions are open)\."
)
_DENIED = "The rules here do not allow this call"
_FAULTS = {
    _DENIED: "was not possible, and nothing ran",
    "The tool failed: ": "did not work",
    "The call to ": "was not possible, and nothing ran",
    "There is no tool ": "was not possible, and nothing ran",
}
_UNKNOWN = "was started, and the process stopped before it finished"
_LOOKS = {
    "analyze_requirements",
    "check_balance",
    "create_design",
    "get_status",
    "get_weather",
    "search_attractions",
    "search_info",
}
"""Tools that change nothing: what they found is told as it is."""
_NAMES = {
    "allocate_budget": "The budget of {amount} for {project_name}",
    "announce": "The announcement in {channels}",
    "assign_team": "The team for {project_name}",
    FOLLOW_UP_NAME: "My question",
    "book_flight": "The flight from {origin} to {destination}",
    "book_hotel": "The hotel in {city}",
    "book_ticket": "The ticket to {location} for {passenger_name}",
    "deploy": "The deployment of {service} {version} to {environment}",
    "get_status": "The look at {service}",
    "refund_order": "The refund of {amount} for order {order_id}",
    "restart": "The restart of {service} on {day}",
    "roll_back": "The roll-back of {service} in {environment}",
    "send_mail": "The e-mail to {to}",
    "transfer_funds": "The transfer of {amount} from {from_account} to {to_account}",
}
_AFTER = {
    "deploy": "To go back: “roll back {service} in {environment}”.",
    "roll_back": "“status of {service}” says what runs now.",
}
"""Words that follow a call that ran: the next thing that people might want."""
_REASON = re.compile(r"Reason: (.*?)(?:\nDo not try the same call again|\Z)", re.DOTALL)

_MAY_ASK_AGAIN = {
    "ask again later": "You can ask me again later.",
    "ask again with other details": "Tell me the right details, and I will ask again.",
}
"""Words of reasons that let the agent ask again, and what people should do then."""


@dataclass(frozen=True, slots=True)
class Done:
    """A call of the demo model, and what became of it.

    Attributes:
        tool: Name of the tool.
        arguments: What the model asked for.
        result: What it was told.
    """

    tool: str
    arguments: Mapping[str, object]
    result: str


def is_answer(result: str) -> bool:
    """Whether people did answer a question."""
    return _QUIET.match(result) is None and not result.startswith(tuple(_FAULTS))


def report(results: Sequence[Done]) -> str:
    """Say in one message what became of one or more calls, in their order."""
    lines = [_result_line(done) for done in results]
    if len(lines) == 1:
        return lines[0]
    return "\n".join(["This is how it ended:", *(f"- {line}" for line in lines)])


def brief_report(results: Sequence[Done]) -> str:
    """The same below the cards of the calls: what these say is not said again.

    A call that a policy lets run without a card is told as briefly; what changes nothing has none,
    and is told as it is.
    """
    if len(results) == 1:
        return _briefly(results[0], "It")
    if all(_ran(done) for done in results):
        return "Both are done." if len(results) == 2 else f"All {len(results)} are done."
    lines = [_briefly(done, _what(done), in_list=True) for done in results]
    return "\n".join(["This is how it ended:", *(f"- {line}" for line in lines)])


def _briefly(done: Done, what: str, *, in_list: bool = False) -> str:
    if quiet := _QUIET.match(done.result):
        return _did_not_run(done, quiet, what=what, is_brief=True)
    if done.result.startswith(_EDITED):  # its card has the changes in place of the result
        _, result = _parts_of(done)
        sentence = _sentence(f"done, as a person changed it: {result}")
        return f"{what}: {sentence[:1].lower()}{sentence[1:]}" if in_list else sentence
    if not _ran(done):
        return _result_line(done)
    if in_list:
        return f"{what}: done."
    return f"Done. {_AFTER.get(done.tool, '').format_map(_shown(done))}".rstrip()


def _ran(done: Done) -> bool:
    """Whether it ran as it was asked for, and changed something."""
    starts = (*_FAULTS, _EDITED)
    is_known = _UNKNOWN not in done.result and not done.result.startswith(starts)
    return is_known and _QUIET.match(done.result) is None and done.tool not in _LOOKS


def _result_line(done: Done) -> str:
    quiet = _QUIET.match(done.result)
    if quiet:
        return _did_not_run(done, quiet, what=_what(done))
    for start, words in _FAULTS.items():
        if done.result.startswith(start):
            reason = _REASON.search(done.result) if start == _DENIED else None
            why = reason[1].strip() if reason else done.result.removeprefix(start)
            return _sentence(f"{_what(done)} {words}: {why}")
    if _UNKNOWN in done.result:
        return f"{_what(done)} was cut off. I do not know whether it took effect; please check."
    if done.result.startswith(_EDITED):
        return _edited(done)
    if done.tool in _LOOKS:
        return _sentence(done.result)
    return _sentence(f"done: {done.result}")


def _did_not_run(done: Done, quiet: re.Match[str], *, what: str, is_brief: bool = False) -> str:
    """Say why a call did not run; its reason stands on its card, and is left out of a brief."""
    if done.tool == FOLLOW_UP_NAME:
        return _unanswered(quiet)
    match = _REASON.search(done.result)
    reason = " ".join(match[1].split()) if match else ""
    why = f' The reason: "{reason}".' if reason and not is_brief else ""
    match quiet["kind"]:
        case "Rejected by a person":
            none_given = "" if reason or is_brief else " No reason was given."
            return f"{what} was rejected.{why}{none_given} {_after_rejection(reason)}"
        case "Nobody answered in time":
            return (
                f"{what} did not run, because no one answered in time. "
                "No one rejected it; you can ask me again."
            )
        case Withdrawn.fact:
            return f"{what} was taken back, so it did not run.{why}"
        case NoApprovers.fact:
            # The reason is on the card, whose mentions people can read.
            return f"{what} did not run: no one here can approve it. Its card says why."
        case _:
            return f"{what} was cancelled, so it did not run.{why}"


def _after_rejection(reason: str) -> str:
    """Say what follows: some reasons that a form offers let the agent ask again."""
    for words, what_now in _MAY_ASK_AGAIN.items():
        if words in reason:
            return f"It did not run. {what_now}"
    return "It did not run, and I will not try it again."


def _unanswered(quiet: re.Match[str]) -> str:
    if quiet["kind"] == "Nobody answered in time":
        return "Nobody answered my question in time, so I do nothing. You can ask me again."
    if quiet["kind"] == Withdrawn.fact:
        return "My question was taken back, so I do nothing."
    return "My question was cancelled, so I do nothing."


def _edited(done: Done) -> str:
    arguments, result = _parts_of(done)
    changes = [
        f"{name} {_short(value)} instead of {_short(done.arguments[name])}"
        if name in done.arguments
        else f"{name} {_short(value)}"
        for name, value in arguments.items()
        if done.arguments.get(name) != value
    ]
    return _sentence(f"done, as a person changed it ({', '.join(changes)}): {result}")


def _parts_of(done: Done) -> tuple[dict[str, object], str]:
    """The arguments that a person gave a call, and its result."""
    text = done.result[len(_EDITED) :]
    arguments, end = json.JSONDecoder().raw_decode(text)
    return arguments, text[end:].removeprefix(_RESULT)


def _what(done: Done) -> str:
    """Name a call in words."""
    return _NAMES.get(done.tool, f"The call to {done.tool}").format_map(_shown(done))


def _shown(done: Done) -> dict[str, str]:
    return {name: _short(value) for name, value in done.arguments.items()}


def _short(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:59]}…"


def _sentence(text: str) -> str:
    text = text.strip()
    ended = text if text.endswith((".", "!", "?")) else f"{text}."
    return ended.replace("done", "Done", 1) if ended.startswith("done") else ended
