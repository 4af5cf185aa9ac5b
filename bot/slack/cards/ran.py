"""The last line of a decided card: what became of what people let run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.core.runs.outcome import RunState, run_of
from bot.layout.blocks import Block, literal, quote, rich, section
from bot.layout.parts import Body
from bot.layout.text import clip_mrkdwn, show
from bot.redaction.mask import REDACTED, mask_text
from bot.words.mrkdwn import date, utc
from storage.records import Approval

RESULT = 300
"""Characters of a result, or of an error, that a card shows."""
_SPOKEN = 120

_WORDS = {
    RunState.RUNNING: "Running",
    RunState.RAN: "Ran",
    RunState.FAILED: "Failed",
    RunState.STOPPED: "Did not run",
    RunState.DOUBT: "It is not known whether this ran",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A card's words on a run.

    Attributes:
        blocks: In order; empty while nothing has run.
        spoken: The same as a sentence, for notifications.
        masked: Whether a secret in it was masked.
        altered: Whether characters that cannot be seen were spelled out.
    """

    blocks: tuple[Block, ...] = ()
    spoken: str = ""
    masked: bool = False
    altered: bool = False

    def and_notes(self, about: Body) -> Body:
        """Return the subject of a card's notes, with this in it."""
        masked, altered = about.masked or self.masked, about.altered or self.altered
        return replace(about, masked=masked, altered=altered)


def ran(approval: Approval) -> Ran:
    """Say what became of it; nothing of what nobody let run."""
    run = run_of(approval)
    if run is None:
        return Ran()
    words = _WORDS[run.state]
    when = f" since {date(run.at_ms)}" if run.state is RunState.RUNNING else f", {date(run.at_ms)}"
    if run.state is RunState.DOUBT:
        when = ". The program stopped while it was running."
    blocks = [section(f"*{words}*{when}")]
    text = mask_text(run.text.strip())
    spoken = f"{words}{_spoken_end(run.state, run.at_ms, text)}"
    if not text:
        return Ran(blocks=tuple(blocks), spoken=spoken)
    shown = show(text, RESULT, lines=6)
    parts = [literal(shown.text or "…")]
    if shown.hidden:
        parts.append(literal(" …", "italic"))
    return Ran(
        blocks=(*blocks, rich(quote(*parts))),
        spoken=spoken,
        masked=REDACTED in text,
        altered=shown.altered,
    )


def _spoken_end(state: RunState, at_ms: int, text: str) -> str:
    match state:
        case RunState.DOUBT:
            return "."
        case RunState.RUNNING:
            return f" since {utc(at_ms)}."
        case _:
            beginning = clip_mrkdwn(" ".join(text.split()), _SPOKEN)
            return f" on {utc(at_ms)}" + (f": {beginning}" if beginning else ".")
