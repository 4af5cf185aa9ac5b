"""Commands that stop every start of a call, and lift the stop."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from bot.errors import UnknownScopeError
from bot.layout.parts import frozen_by
from bot.layout.text import clip_mrkdwn
from bot.records.switch import MAX_WHY, ScopeKind
from bot.slack.side_messages.freezes import (
    FREEZE_ID,
    freeze_blocks,
    freeze_line,
    lift_form,
    lifted_text,
    running_lines,
    scope_text,
)
from bot.slack.slash_commands.answers import Asker, TypedAnswer, TypoError
from bot.words import say
from bot.words.mrkdwn import date
from storage.errors import StorageError

_CHANNEL = re.compile(r"<#(?P<id>[CDG][A-Z0-9]{1,30})>")
_NAMED_CHANNEL = re.compile(r"<#([CDG][A-Z0-9]{1,30})\|[^<>]*>")
_NAMED = {"agent": ScopeKind.AGENT, "tool": ScopeKind.TOOL, "tag": ScopeKind.TAG}


def with_channel_ids(text: str) -> str:
    """Return the text of a command in which a scope keeps the id of its channel.

    Only a freeze needs the id. Agents read the names of channels.
    """
    is_freeze = text.split()[:1] == ["freeze"]
    return _NAMED_CHANNEL.sub(r"<#\1>", text) if is_freeze else text


async def freeze(asker: Asker, words: Sequence[str]) -> TypedAnswer:
    """`freeze tool deploy WHY`, `freeze #ops turns WHY`, `freeze WHY`: no call starts there."""
    kind, name, rest = _scope(words)
    turns = [word.lower() for word in rest[:1]] == ["turns"]
    why = " ".join(rest[1:] if turns else rest)
    if not why:
        raise TypoError(say("refuse.reason"))
    try:
        answer = await asker.freezing.freeze(
            asker.actor, kind=kind, name=name, why=why, turns=turns, place=asker.channel_id
        )
    except UnknownScopeError as error:  # the person may have meant it as the reason
        typed = clip_mrkdwn(" ".join(words), MAX_WHY)
        raise TypoError(f"{error}\n{say('command.freeze_all', text=typed)}") from error
    asker.changed()
    frozen = answer.freeze
    values = {"id": frozen.id, "scope": scope_text(frozen.scope)}
    if answer.is_new:
        lines = [say("command.frozen", **values)]
    else:
        since = date(frozen.since_ms)
        lines = [say("command.frozen_before", **values, who=frozen_by(frozen.by), time=since)]
    lines += [say("command.frozen_wider")] if answer.is_wider else []
    with suppress(StorageError):  # it is frozen, whatever runs
        lines += running_lines(await asker.freezing.running(frozen.scope))
    return TypedAnswer(text="\n".join(lines))


async def unfreeze(asker: Asker, words: Sequence[str]) -> TypedAnswer:
    """`unfreeze f2 WHY`: lift a freeze; without a reason, open the form that asks for it."""
    has_id = bool(words) and FREEZE_ID.fullmatch(words[0].lower()) is not None
    why = " ".join(words[1:] if has_id else words)
    freeze_id = words[0].lower() if has_id else ""
    if not why and asker.window is not None:
        liftable = await asker.freezing.liftable(asker.actor, freeze_id)
        await asker.window.show(lift_form(liftable, freeze_id))
        return TypedAnswer(text="")
    if not why:
        raise TypoError(say("refuse.reason"))
    answer = await asker.freezing.lift(asker.actor, freeze_id, why=why)
    asker.changed()
    return TypedAnswer(text=lifted_text(answer))


async def freezes(asker: Asker, _: Sequence[str]) -> TypedAnswer:
    """`freezes`: the freezes in force."""
    in_force = await asker.freezing.in_force()
    lines = map(freeze_line, in_force)
    text = "\n".join(lines) or say("refuse.nothing_frozen")
    return TypedAnswer(text=text, blocks=freeze_blocks(in_force))


def _scope(words: Sequence[str]) -> tuple[ScopeKind, str, Sequence[str]]:
    """Split at the scope. A word of the reason is never read as a scope.

    Raises:
        TypoError: A kind of scope has no name.
    """
    first = words[0] if words else ""
    if match := _CHANNEL.fullmatch(first):
        return ScopeKind.CHANNEL, match["id"], words[1:]
    kind = _NAMED.get(first.lower())
    if kind is not None:
        if len(words) < 2:
            raise TypoError(say("refuse.reason"))
        return kind, words[1], words[2:]
    return ScopeKind.ALL, "", words[1:] if first.lower() == "all" else words
