"""Sentences and titles for people, as rich text and as text for notifications.

People see rich text, which Slack does not parse; phones and screen readers get escaped mrkdwn. Both
come from one text of the catalog, so they cannot differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.layout.blocks import HEADER, Block, Card, line, literal, rich
from bot.layout.text import clip, clip_mrkdwn, show
from bot.records.approval import Approval
from bot.redaction.call import mask_call, written
from bot.redaction.masks import Words
from bot.words import say
from bot.words.mrkdwn import escape, mention, unescape
from bot.words.times import utc

TITLE = 300
MOST_MENTIONS = 20
_LINK = re.compile(r"https?://[^\s<>|]{1,500}", re.ASCII)
_FIRST_MARK = 0xE000
_MARK = re.compile("([\ue000-\ue0ff])")
_TAG = re.compile(
    r"<(?:@|#|!subteam\^)(?P<id>[A-Z0-9]+)(?:\|[^<>]*)?>|<!date\^(?P<seconds>\d{1,12})\^[^<>]*>",
    re.ASCII,
)
"""A mention or a time, as the bot writes them."""
_LAST_S = 253_402_300_799  # the end of the year 9999


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A sentence or a part of one.

    Attributes:
        text: For notifications: escaped mrkdwn.
        blocks: Visible: elements of rich text.
    """

    text: str = ""
    blocks: tuple[Block, ...] = ()


NOTHING = Piece()


def people(names: Iterable[str]) -> Piece:
    """Mention people, user groups and channels, each once; other names are left out."""
    mentioned = [slack_id for slack_id in dict.fromkeys(names) if _element(slack_id)][
        :MOST_MENTIONS
    ]
    blocks: list[Block] = []
    for name in mentioned:
        blocks += [literal(" ")] if blocks else []
        blocks.append(_element(name))
    return Piece(text=" ".join(_tag(slack_id) for slack_id in mentioned), blocks=tuple(blocks))


def person(name: str) -> Piece:
    """Mention a person; a name that is not an id is shown unchanged."""
    return people([name]) if _element(name) else words(name[:40] or say("line.somebody"))


def words(text: str | Words, *styles: str) -> Piece:
    """Return words that are shown unchanged."""
    shown = clip(text, TITLE)
    return Piece(text=escape(shown), blocks=(literal(shown, *styles),))


def title(text: str | Words, link: str = "") -> Piece:
    """Return a title that links to its card.

    Args:
        text: The title, with secrets masked.
        link: The card's address; ignored if it is not a plain address.
    """
    shown = clip(text, TITLE)
    if not _LINK.fullmatch(link):
        return Piece(text=escape(shown), blocks=(literal(shown, "bold"),))
    block: Block = {"type": "link", "url": link, "text": shown}
    return Piece(text=escape(shown), blocks=(block,))


def is_address(link: str) -> bool:
    """Whether a link is safe in mrkdwn and leads where it says."""
    return _LINK.fullmatch(link) is not None


def moment(at_ms: int) -> Piece:
    """Return a time that Slack shows in each reader's own time zone."""
    form, fallback = "{date_short_pretty} at {time}", utc(at_ms)
    seconds = min(max(at_ms // 1_000, 0), _LAST_S)
    block: Block = {"type": "date", "timestamp": seconds, "format": form, "fallback": fallback}
    return Piece(text=f"<!date^{seconds}^{form}|{fallback}>", blocks=(block,))


def from_mrkdwn(text: str) -> list[Block]:
    """Render a sentence of the bot, written for mrkdwn, as elements of rich text."""
    blocks: list[Block] = []
    end = 0
    for tag in _TAG.finditer(text):
        blocks.append(literal(unescape(text[end : tag.start()])))
        end = tag.end()
        if tag["id"]:
            blocks.append(_element(tag["id"]) or literal(tag["id"]))
        else:
            blocks += moment(int(tag["seconds"]) * 1_000).blocks
    return [block for block in (*blocks, literal(unescape(text[end:]))) if block.get("text") != ""]


def sentence(key: str, **pieces: Piece | int) -> Piece:
    """Fill a text of the catalog with pieces.

    Args:
        key: The text's key.
        **pieces: Values of its placeholders; numbers unchanged, to select plural forms.
    """
    values = {
        name: value.text if isinstance(value, Piece) else value for name, value in pieces.items()
    }
    marks: dict[str, object] = {}
    by_mark: dict[str, Piece] = {}
    for number, (name, piece) in enumerate(pieces.items()):
        marks[name] = chr(_FIRST_MARK + number) if isinstance(piece, Piece) else piece
        if isinstance(piece, Piece):
            by_mark[str(marks[name])] = piece
    blocks: list[Block] = []
    for part in _MARK.split(say(key, **marks)):
        if part in by_mark:
            blocks += by_mark[part].blocks
        elif text := part if blocks else part.lstrip():
            blocks.append(literal(text))
    return Piece(text=say(key, **values).strip(), blocks=tuple(blocks))


def together(*pieces: Piece) -> Piece:
    """Join sentences."""
    filled = [part for part in pieces if part.text or part.blocks]
    blocks: list[Block] = []
    for piece in filled:
        blocks += [literal(" "), *piece.blocks] if blocks else piece.blocks
    return Piece(text=" ".join(part.text for part in filled if part.text), blocks=tuple(blocks))


def emoji(name: str) -> Block:
    """Return a symbol for the beginning of a line, whose words carry the meaning, too."""
    return {"type": "emoji", "name": name}


def one_line(symbol: str, piece: Piece, *more: Block) -> Card:
    """Return a message of one line.

    Args:
        symbol: The name of an emoji.
        piece: The line.
        *more: Blocks below it.
    """
    text = line(emoji(symbol), literal(" "), *piece.blocks)
    return Card(text=piece.text, blocks=[rich(text), *more])


def listed(items: Sequence[Sequence[Block]]) -> Block:
    """Return a list of rich text lines."""
    return {
        "type": "rich_text_list",
        "style": "bullet",
        "elements": [line(*elements) for elements in items],
    }


_PERSON = re.compile(r"[UW][A-Z0-9]{1,30}")
_GROUP = re.compile(r"S[A-Z0-9]{1,30}")
_CHANNEL = re.compile(r"[CG][A-Z0-9]{1,30}")


def _element(name: str) -> Block:
    if _PERSON.fullmatch(name):
        return {"type": "user", "user_id": name}
    if _GROUP.fullmatch(name):
        return {"type": "usergroup", "usergroup_id": name}
    return {"type": "channel", "channel_id": name} if _CHANNEL.fullmatch(name) else {}


def _tag(name: str) -> str:
    return f"<#{name}>" if _CHANNEL.fullmatch(name) else mention(name)


def title_of(approval: Approval) -> str:
    """Return the title with secrets masked; never empty."""
    return (
        written(mask_call(approval.title.strip())) or approval.tool.strip() or say("line.untitled")
    )


def title_hidden(approval: Approval) -> int:
    """Return the number of characters of the title that the header does not show."""
    return show(title_of(approval), HEADER, one_line=True).hidden


def spoken_title(approval: Approval) -> str:
    """Return the title for use inside a sentence."""
    return clip_mrkdwn(title_of(approval), 300)
