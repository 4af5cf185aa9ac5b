"""Mark up typed text as Slack's client does.

The client parses what a person types into a `rich_text` block; Slack derives the text from it.

Source:
    https://docs.slack.dev/reference/block-kit/blocks/rich-text-block
    https://docs.slack.dev/messaging/formatting-message-text#retrieving-messages
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from slack_sandbox.workspace.emoji import as_name, emoji_element, emoji_pattern, named_element
from slack_sandbox.workspace.records import Payload

_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))
_STYLES = {"*": "bold", "_": "italic", "~": "strike", "`": "code"}
_MARKS = {style: mark for mark, style in _STYLES.items()}

_TOP = "ai|app|biz|co|com|de|dev|edu|eu|example|fr|gov|info|io|jp|md|me|net|org|py|rs|sh|uk|us|zip"
"""Last labels of addresses that the client takes for a link. They are some file names', too."""
_HOST = rf"(?:[^\W_](?:[\w-]*[^\W_])?\.)+(?:{_TOP})(?![\w-])"
_PATH = r"""[^\s<>|`]*[^\s<>|`.,;:!?()\[\]{}'"*_~]"""
_URL = rf"(?P<url>https?://{_PATH})"
_PHONE = r"\+\d[\d\ ().-]{6,}\d|(?:\(\d{3}\)\ |\d{3}-)\d{3}-\d{4}"
_ADDRESS = rf"""
    {_URL}
  | (?<![\w.+-])(?P<mail>\w[\w.+-]*@{_HOST})
  | (?<![\w.@/:-])(?P<domain>{_HOST}(?:/{_PATH})?)(?!@)
  | (?<![\w.+-])(?P<phone>{_PHONE})(?![\w.-])
"""
_SPAN = rf"""
    {_ADDRESS}
  | (?<![\w@&])@(?P<person>\w[\w.-]*)
  | (?<![\w\#&])\#(?P<room>[\w-]+)
  | (?<![\w:]):(?P<emoji>[a-z0-9_+-]+):(?::skin-tone-(?P<tone>[2-6]):)?(?![\w:])
"""
_STYLED = rf"""
    (?<!`)`(?P<code>[^`\n]+)`(?!`)
  | (?<![\w*~`])(?P<mark>[*_~])(?P<styled>[^\s*_~`](?:[^\n*_~`]*[^\s*_~`])?)(?P=mark)(?![\w*~`])
  | {_SPAN}
"""
_IN_CODE = re.compile(_URL)
_IN_STYLE = re.compile(_SPAN, re.VERBOSE)
_IN_TEXT = re.compile(_STYLED, re.VERBOSE)

_FENCE = re.compile(r"^```(?P<code>[^`].*?)```$", re.DOTALL | re.MULTILINE)
_LINE = re.compile(
    r"> (?P<quote>.*\S.*)|[-*] (?P<bullet>.*\S.*)|(?P<number>[1-9]\d{0,3})\. (?P<ordered>.*\S.*)"
)


@dataclass(frozen=True, slots=True)
class Typed:
    """Typed words as Slack gives them to apps."""

    text: str
    blocks: list[Payload]


@dataclass(frozen=True, slots=True)
class TypedNames:
    """The names that a person may type after @ and #.

    Attributes:
        people: Returns the element of a person, a user group or everybody; None for another name.
        rooms: Name of a channel → its id.
        public: Id of a channel → its name, for those whose names Slack tells to apps.
    """

    people: Callable[[str], Payload | None]
    rooms: Mapping[str, str]
    public: Mapping[str, str]


def typed(text: str, names: TypedNames) -> Typed:
    """Parse typed text once, and derive Slack's text from it."""
    parts = list(_parts(text, names))
    return Typed(text=_text_of(parts, names), blocks=[{"type": "rich_text", "elements": parts}])


def typed_in_form(text: str) -> str:
    """Return the value of a form's text field: names in place of emoji, and no other mark-up."""
    return emoji_pattern().sub(lambda match: as_name(emoji_element(match[0])), text)


def escape(text: str) -> str:
    """Replace the three characters that have a meaning in Slack's text."""
    for character, entity in _ESCAPES:
        text = text.replace(character, entity)
    return text


# ---- typed text → blocks ----------------------------------------------------------------------


def _parts(text: str, names: TypedNames) -> Iterator[Payload]:
    """Yield sections, quotes, lists and code blocks; a line break stands between two of them."""
    position = 0
    for fence in _FENCE.finditer(text):
        if fence.start() > position:
            yield from _paragraphs(text[position : fence.start() - 1], names)
        yield {"type": "rich_text_preformatted", "border": 0, "elements": _code(fence["code"])}
        position = fence.end() + 1
    if position <= len(text):
        yield from _paragraphs(text[position:], names)


def _paragraphs(text: str, names: TypedNames) -> Iterator[Payload]:
    lines = [_line(place, line) for place, line in enumerate(text.split("\n"))]
    for (kind, _), group in groupby(lines, key=lambda line: line[:2]):
        numbers, contents = zip(*(line[2:] for line in group), strict=True)
        match kind:
            case "quote":
                yield {"type": "rich_text_quote", "elements": _spans("\n".join(contents), names)}
            case "bullet" | "ordered":
                items = [_section(each, names) for each in contents]
                shape = {"style": kind, "indent": 0, "offset": numbers[0] - 1, "border": 0}
                yield {"type": "rich_text_list", **shape, "elements": items}
            case _:
                yield _section("\n".join(contents), names)


def _line(place: int, line: str) -> tuple[str, int, int, str]:
    """Return the kind of a line, the same id for numbers in a row, its number and its content."""
    match = _LINE.fullmatch(line)
    kind = match and match.lastgroup
    if match is None or kind is None:
        return "section", 0, 1, line
    number = int(match["number"] or 1)
    return kind, number - place if kind == "ordered" else 0, number, match[kind]


def _section(text: str, names: TypedNames) -> Payload:
    return {"type": "rich_text_section", "elements": _spans(text, names)}


def _spans(text: str, names: TypedNames, pattern: re.Pattern[str] = _IN_TEXT) -> list[Payload]:
    """Return the elements of some text: texts, links, mentions and emoji, with their styles."""
    elements: list[Payload] = []
    plain, position = "", 0
    for match in pattern.finditer(text):
        new, rest = _marked(match, names)
        if not new:
            continue
        plain = text[position : match.start()]
        elements += [*_plain(plain), *new]
        position = match.end() - len(rest)
    return [*elements, *_plain(text[position:])]


def _marked(match: re.Match[str], names: TypedNames) -> tuple[list[Payload], str]:
    """Return the elements of a match, and what of it is left as text; none if it is just text."""
    groups = match.groupdict()
    if groups.get("code"):
        return [_with_style(each, "code") for each in _code(groups["code"])], ""
    if groups.get("styled"):
        inner = _spans(groups["styled"], names, _IN_STYLE)
        return [_with_style(each, _STYLES[groups["mark"]]) for each in inner], ""
    if groups["person"]:
        return _person(groups["person"], names)
    if groups["room"]:
        channel = names.rooms.get(groups["room"].lower())
        return [{"type": "channel", "channel_id": channel}] if channel else [], ""
    if groups["emoji"]:
        emoji = named_element(groups["emoji"], groups["tone"])
        return [emoji] if emoji else [], ""
    return [_link(groups)], ""


def _person(name: str, names: TypedNames) -> tuple[list[Payload], str]:
    bare = name.rstrip(".-")
    if whole := names.people(name.lower()):
        return [whole], ""
    person = names.people(bare.lower())
    return [person] if person else [], name[len(bare) :]


def _link(groups: Mapping[str, str | None]) -> Payload:
    if url := groups["url"]:
        return {"type": "link", "url": url}
    if mail := groups["mail"]:
        return {"type": "link", "url": f"mailto:{mail}", "text": mail}
    if phone := groups["phone"]:
        return {"type": "link", "url": f"tel:{re.sub(r'[^0-9+]', '', phone)}", "text": phone}
    return {"type": "link", "url": f"http://{groups['domain']}", "text": groups["domain"]}


def _code(text: str) -> list[Payload]:
    """Return the elements of code, in which the client makes links, but no mentions and emoji."""
    elements: list[Payload] = []
    position = 0
    for match in _IN_CODE.finditer(text):
        elements += _text(text[position : match.start()])
        elements.append({"type": "link", "url": match[0]})
        position = match.end()
    return [*elements, *_text(text[position:])]


def _plain(text: str) -> list[Payload]:
    """Return the elements of text without marks: texts, and emoji for their characters."""
    elements: list[Payload] = []
    position = 0
    for match in emoji_pattern().finditer(text):
        elements += [*_text(text[position : match.start()]), emoji_element(match[0])]
        position = match.end()
    return [*elements, *_text(text[position:])]


def _text(text: str) -> list[Payload]:
    return [{"type": "text", "text": text}] if text else []


def _with_style(element: Payload, style: str) -> Payload:
    return {**element, "style": {style: True}}


# ---- blocks → Slack's text --------------------------------------------------------------------


def _text_of(parts: Sequence[Payload], names: TypedNames) -> str:
    return "\n".join(_part_text(part, names) for part in parts)


def _part_text(part: Payload, names: TypedNames) -> str:
    elements = part["elements"]
    match part["type"]:
        case "rich_text_preformatted":
            return f"```{_line_of(elements, names)}```"
        case "rich_text_quote":
            return "\n".join(f"&gt; {line}" for line in _line_of(elements, names).split("\n"))
        case "rich_text_list":
            items = [_line_of(item["elements"], names) for item in elements]
            first = part.get("offset", 0) + 1
            if part["style"] == "ordered":
                return "\n".join(f"{first + n}. {item}" for n, item in enumerate(items))
            return "\n".join(f"• {item}" for item in items)
        case _:
            return _line_of(elements, names)


def _line_of(elements: Sequence[Payload], names: TypedNames) -> str:
    def style(element: Payload) -> str:
        return next(iter(element.get("style", {})), "")

    groups = [(_MARKS.get(key, ""), list(group)) for key, group in groupby(elements, key=style)]
    return "".join(
        f"{mark}{''.join(_mark_of(each, names) for each in group)}{mark}" for mark, group in groups
    )


def _mark_of(element: Payload, names: TypedNames) -> str:
    text = escape(element.get("text", ""))
    match element["type"]:
        case "text":
            return text
        case "emoji":
            return as_name(element)
        case "link":
            return f"<{escape(element['url'])}{text and '|' + text}>"
        case "channel":
            return f"<#{element['channel_id']}|{names.public.get(element['channel_id'], '')}>"
        case "user":
            target = f"@{element['user_id']}"
        case "usergroup":
            target = f"!subteam^{element['usergroup_id']}"
        case _:
            target = f"!{element['range']}"
    return f"<{target}>"
