"""An agent's self-description: tools, approvals, approvers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.layout.parts import approvers_words
from bot.layout.text import clip_mrkdwn
from bot.people.approvers import asked_groups, resolve_groups
from bot.ports.people import CHANNEL, is_channel
from bot.records.terms import Terms, TermsError
from bot.threads.agents import AgentFacts
from bot.words import say
from bot.words.mrkdwn import escape

_MOST = 20
_LONGEST = 300
_WHO = re.compile(
    r"(?:so |and |hey,? |hi,? |hello,? )?(?:who|what) are you"
    r"|what (?:can|do) you do(?: here)?|what are you (?:for|allowed to do)|introduce yourself",
    re.IGNORECASE,
)


def asks_who(words: str) -> bool:
    """Whether a message only asks who the agent is."""
    return _WHO.fullmatch(words.strip().rstrip("?!. ")) is not None


def introduction(facts: AgentFacts, *, terms: Terms | None, at_ms: int) -> str:
    """Return the description, in mrkdwn.

    Args:
        facts: The agent.
        terms: The policy's default terms, if any.
        at_ms: Time for rotations.
    """
    what = clip_mrkdwn(facts.description.strip(), _LONGEST)
    name = escape(facts.name)
    lines = [say("intro.agent", name=name, what=what) if what else say("intro.name", name=name)]
    if facts.free:
        lines.append(say("intro.free", tools=_listed(facts.free)))
    if facts.gated:
        lines.append(say("intro.gated", tools=_listed(facts.gated)))
    if who := _deciders(terms, at_ms):
        lines.append(say("intro.deciders", who=who))
    lines.append(say("intro.stop"))
    return "\n".join(lines)


def _listed(names: Sequence[str]) -> str:
    shown = [escape(name.replace("_", " ")) for name in names[:_MOST]]
    return ", ".join(shown) + ("…" if len(names) > _MOST else "")


def _deciders(terms: Terms | None, at_ms: int) -> str:
    try:
        names = resolve_groups(terms, asked_groups(terms, 0), at_ms) if terms else {}
    except TermsError:  # a time zone is unknown on this machine
        return ""
    people = [CHANNEL if is_channel(name) else name for name in names]
    return approvers_words(list(dict.fromkeys(people))) if people else ""
