"""The daily digest as a direct message that is kept up to date."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from bot.layout.blocks import Block, Card, context, mrkdwn, plain, section
from bot.layout.sentences import is_address
from bot.notifications.digest import Digest, ListItem
from bot.records.approval import Status
from bot.slack.home.items import ShownNames, ended_item, own_item, waiting_item
from bot.slack.home.times import TimeReader
from bot.slack.home.view import LIST
from bot.words import say
from bot.words.mrkdwn import date

_WAITS, _OVER = "📥", "✅"


def waitlist_card(
    shown: Digest, names: ShownNames, reader: TimeReader, links: Mapping[str, str]
) -> Card:
    """Render a digest in the current language.

    Args:
        shown: The digest.
        names: Names of people and channels.
        reader: The reader's time format; may be read on another day.
        links: URLs of cards by approval id; an item without one has a button instead.

    Returns:
        The message; its text gives the number of approvals and the earliest expiry.
    """
    if shown.is_replaced:
        words = say("message.digest_newer")
        return Card(text=words, blocks=[context(plain(words))])
    title = _title(shown)
    head = section(f"{_OVER if shown.is_over else _WAITS} *{title}*")
    if not shown.is_over:
        label = say("button.open_list")
        head["accessory"] = {"type": "button", "action_id": LIST, "text": plain(label)}
    blocks = [head]
    by = shown.person.user_id
    blocks += [_item(one, names, reader, links, by=by) for one in shown.items]
    blocks += [context(plain(words)) for words in _small_print(shown, reader)]
    return Card(text=_text(shown, title), blocks=blocks)


def _title(shown: Digest) -> str:
    left, total = sum(one.waits for one in shown.items), shown.total
    rest = total - len(shown.items)
    if left + rest == total:
        return say("message.digest", n=total)
    if left or rest:
        return say("message.digest_left", left=left + rest, n=total)
    return say("message.digest_done")


def _text(shown: Digest, title: str) -> str:
    """Return the text for notifications and screen readers."""
    times = [one.approval.expires_ms for one in shown.items if one.waits]
    if not times:
        return title
    return say("notify.digest", title=title, when=date(min(times)))


def _item(
    shown: ListItem,
    names: ShownNames,
    reader: TimeReader,
    links: Mapping[str, str],
    *,
    by: str,
) -> Block:
    approval = shown.approval
    if approval.status is not Status.PENDING:
        return ended_item(approval, names, reader, by=by)
    made = waiting_item if shown.waits else own_item
    block, link = made(approval, names, reader), links.get(approval.approval_id, "")
    if is_address(link):
        block["fields"] = [mrkdwn(f"<{link}|{say('line.open_card')}>")]
    return block


def _small_print(shown: Digest, reader: TimeReader) -> Iterator[str]:
    """Yield what else is pending, and where to change the settings."""
    rest = shown.total - len(shown.items)
    if shown.last_ms and rest > 0:
        yield say("message.digest_more", n=rest, when=reader.moment(shown.last_ms))
    elif rest > 0:
        yield say("message.digest_rest", n=rest)
    if not shown.is_over:
        yield say("message.digest_how")


def approvals_of(shown: Digest) -> Iterable[ListItem]:
    """Return the displayed items; none if a newer digest replaced it."""
    return () if shown.is_replaced else shown.items
