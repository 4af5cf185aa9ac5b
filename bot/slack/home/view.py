"""Render a person's Home: pending and ended approvals, own requests, settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.approvals.overview import HomeData
from bot.layout.action_ids import ActionId
from bot.layout.blocks import (
    Block,
    actions,
    button,
    context,
    header,
    line,
    literal,
    plain,
    rich,
    section,
)
from bot.layout.parts import frozen_by
from bot.layout.sentences import title_of
from bot.layout.text import clip
from bot.policy.demands import is_risky
from bot.questions.shown import what_runs
from bot.records.approval import Approval
from bot.records.switch import Freeze
from bot.slack.home.items import (
    ShownNames,
    ended_item,
    ended_words,
    grant_item,
    health_lines,
    key_item,
    own_item,
    waiting_item,
)
from bot.slack.home.state import PAGE, HomeState, Shown
from bot.slack.home.times import TimeReader
from bot.slack.side_messages.freezes import scope_text
from bot.words import say

CALLBACK = "countersign:home"
SHOW, ONLY = "countersign:home_show", "countersign:home_only"
NEXT, BACK = "countersign:home_next", "countersign:home_back"
ALL_MINE, ALL_ENDED = "countersign:home_mine", "countersign:home_decided"
TEST = "countersign:home_test"
MESSAGES = "countersign:home_messages"
CONNECT = "countersign:home_connect"
AWAY, BACK_HERE = "countersign:home_away", "countersign:home_here"
_MOST_CHANNELS = 50
_MOST_BESIDE = 5
_MOST_ENDED = 10
_MOST_GRANTS = 5
_MOST_FREEZES = 5
_OPTION = 70
_TITLE = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class HomePage:
    """Content of a Home.

    Attributes:
        overview: The reader's data.
        state: Their selection.
        names: Names of people and channels.
        reader: Their time format.
        batch: Encoded reference of a card that can be decided with others; empty without one.
        version: Program version, for admins.
        freezes: The freezes in force, oldest first.
        can_connect: Whether members make keys of their own.
    """

    overview: HomeData
    state: HomeState
    names: ShownNames
    reader: TimeReader
    batch: str = ""
    version: str = ""
    freezes: Sequence[Freeze] = ()
    can_connect: bool = False

    @property
    def listed(self) -> Sequence[Approval]:
        """Return the items of the selected list."""
        overview, show = self.overview, self.state.show
        if show is Shown.DECIDED:
            return overview.ended
        approvals = overview.mine if show is Shown.MINE else overview.waiting
        return [approval for approval in approvals if fits(approval, self.state.only, self.reader)]

    @property
    def start(self) -> int:
        """Return the first item of the current page, within bounds."""
        return min(self.state.start, max(len(self.listed) - 1, 0) // PAGE * PAGE)

    @property
    def page(self) -> Sequence[Approval]:
        """Return the items of the current page."""
        return self.listed[self.start : self.start + PAGE]


def fits(approval: Approval, only: str, reader: TimeReader) -> bool:
    """Whether an approval passes a filter."""
    if only == "risk":
        return is_risky(approval)
    if only == "today":
        return reader.is_today(approval.expires_ms)
    return not only or only == f"channel:{approval.channel_id}"


def shown_of(overview: HomeData, state: HomeState, reader: TimeReader) -> list[Approval]:
    """Return the approvals whose people and channels are named on a Home."""
    nobody = ShownNames(people={}, channels={})
    page = HomePage(overview=overview, state=state, names=nobody, reader=reader)
    return [*page.page, *overview.mine[:_MOST_BESIDE], *overview.ended[:_MOST_ENDED]]


def places_of(overview: HomeData, state: HomeState) -> list[str]:
    """Return ids of the channels that the filter offers."""
    approvals = overview.mine if state.show is Shown.MINE else overview.waiting
    seen = [approval for approval in approvals if approval.approval_id not in overview.withheld]
    return [*dict.fromkeys(approval.channel_id for approval in seen)][:_MOST_CHANNELS]


def home_view(home: HomePage) -> Block:
    """Render the Home in the current language."""
    return {
        "type": "home",
        "callback_id": CALLBACK,
        "private_metadata": home.state.to_text(),
        "blocks": [*_frozen(home), *_list(home), *_beside(home)],
    }


def _frozen(home: HomePage) -> list[Block]:
    """Render the freezes in force: above everything, for everybody."""
    lines = [
        say(
            "home.frozen",
            scope=scope_text(freeze.scope),
            when=home.reader.moment(freeze.since_ms),
            who=frozen_by(freeze.by),
        )
        for freeze in home.freezes[:_MOST_FREEZES]
    ]
    hidden = len(home.freezes) - len(lines)
    lines += [say("home.frozen_more", n=hidden)] if hidden else []
    return [section("\n".join(lines))] if lines else []


def closed_view(words: str) -> Block:
    """Render the Home of a person without access."""
    blocks = [{"type": "section", "text": plain(clip(words, 500))}]
    return {"type": "home", "callback_id": CALLBACK, "blocks": blocks}


def list_blocks(home: HomePage) -> list[Block]:
    """Render the first page of pending approvals, for modals and ephemeral messages."""
    return [
        block for approval in home.page for block in waiting_item(approval, home.names, home.reader)
    ]


def _list(home: HomePage) -> list[Block]:
    if home.state.show is Shown.WAITING and not home.overview.waiting:
        return _empty(home)
    blocks = [header(_heading(home)), *_lead(home), _choices(home)]
    if not home.page:
        blocks.append(_words(_nothing(home)))
    blocks += [block for approval in home.page for block in _item(home, approval)]
    return [*blocks, *_turning(home)]


def _heading(home: HomePage) -> str:
    match home.state.show:
        case Shown.WAITING:
            return say("home.waiting", n=len(home.overview.waiting))
        case Shown.MINE:
            return say("home.mine")
        case Shown.DECIDED:
            return say("home.decided")


def _lead(home: HomePage) -> list[Block]:
    """Render a summary of the most urgent, if there are several pages."""
    waiting = home.overview.waiting
    blocks = []
    if home.state.show is Shown.WAITING and len(waiting) > PAGE:
        when = home.reader.moment(min(approval.expires_ms for approval in waiting))
        words = say("home.first", when=when)
        if risky := sum(map(is_risky, waiting)):
            words += f" {say('home.risky', n=risky)}"
        blocks.append(context(plain(words)))
    if home.overview.is_partial and home.state.show is not Shown.DECIDED:
        blocks.append(context(plain(say("home.partial"))))
    return blocks


def _empty(home: HomePage) -> list[Block]:
    """Render the text for an empty list, with links to other lists."""
    buttons = [
        _plain_button(say("home.requested_by_me"), ALL_MINE),
        _plain_button(say("home.show_decided"), ALL_ENDED),
        _plain_button(say("home.test"), TEST),
    ]
    blocks = [header(say("home.empty")), _words(say("home.empty_help")), actions(*buttons)]
    return [*blocks, *_lead(home)]


def _nothing(home: HomePage) -> str:
    if home.state.show is Shown.DECIDED:
        return say("home.nothing_decided")
    if home.state.only:
        return say("home.nothing_fits")
    is_own = home.state.show is Shown.MINE
    return say("home.nothing_mine") if is_own else say("home.empty_help")


def _item(home: HomePage, approval: Approval) -> list[Block]:
    match home.state.show:
        case Shown.WAITING:
            return waiting_item(approval, home.names, home.reader)
        case Shown.MINE:
            return own_row(home, approval)
        case Shown.DECIDED:
            by = home.overview.person.user_id
            return ended_item(approval, home.names, home.reader, by=by)


def _choices(home: HomePage) -> Block:
    """Render the selection of list and filter, and the batch button."""
    overview = home.overview
    lists = [
        (say("home.show_waiting", n=len(overview.waiting)), Shown.WAITING.value),
        (say("home.show_mine", n=len(overview.mine)), Shown.MINE.value),
        (say("home.show_decided"), Shown.DECIDED.value),
    ]
    options = [_option(*entry) for entry in lists]
    chosen = next(option for option in options if option["value"] == home.state.show.value)
    elements: list[Block] = [
        {
            "type": "static_select",
            "action_id": SHOW,
            "options": options,
            "initial_option": chosen,
        }
    ]
    if home.state.show is not Shown.DECIDED:
        elements.append(_filter(home))
    if home.batch and home.state.show is Shown.WAITING:
        label = say("button.choose_several")
        elements.append(button(label, ActionId.BATCH, home.batch, of=_heading(home)))
    return actions(*elements)


def _filter(home: HomePage) -> Block:
    channels = [
        _option(home.names.channel(channel_id) or say("home.direct"), f"channel:{channel_id}")
        for channel_id in places_of(home.overview, home.state)
    ]
    groups: list[tuple[str, list[Block]]] = [
        (say("home.filter"), [_option(say("home.filter_all"), "all")]),
        (say("home.filter_channel"), channels),
        (say("home.filter_risk"), [_option(say("home.high_and_critical"), "risk")]),
        (say("home.filter_expires"), [_option(say("home.expires_today"), "today")]),
    ]
    select: Block = {
        "type": "static_select",
        "action_id": ONLY,
        "placeholder": plain(say("home.filter")),
        "option_groups": [
            {"label": plain(label), "options": options} for label, options in groups if options
        ],
    }
    options = [entry for _, some in groups for entry in some]
    for option in options:
        if home.state.only and option["value"] == home.state.only:
            select["initial_option"] = option
    return select


def _turning(home: HomePage) -> list[Block]:
    """Render the page buttons; empty for a single page."""
    listed, start = home.listed, home.start
    if len(listed) <= PAGE:
        return []
    last = min(start + PAGE, len(listed))
    words = say("home.range", **{"from": start + 1, "to": last, "all": len(listed)})
    buttons = []
    if start:
        buttons.append(_plain_button(say("button.back20"), BACK))
    if last < len(listed):
        buttons.append(_plain_button(say("button.next20"), NEXT))
    return [context(plain(words)), actions(*buttons)]


def _beside(home: HomePage) -> list[Block]:
    """Render short versions of the other lists and the settings."""
    if home.state.show is not Shown.WAITING or len(home.listed) > PAGE:
        return []
    return [*_own(home), *_ended(home), *_settings(home), *_health(home)]


def _own(home: HomePage) -> Iterable[Block]:
    """Render the reader's own requests, except those that wait for the reader."""
    above = {approval.approval_id for approval in home.overview.waiting}
    mine = [approval for approval in home.overview.mine if approval.approval_id not in above]
    if mine:
        yield _divider()
        yield header(say("home.mine"))
        yield from (block for approval in mine[:_MOST_BESIDE] for block in own_row(home, approval))
    if len(mine) > _MOST_BESIDE:
        yield actions(_plain_button(say("button.show_more"), ALL_MINE))


def own_row(home: HomePage, approval: Approval) -> list[Block]:
    """Render one of the reader's own requests."""
    is_withheld = approval.approval_id in home.overview.withheld
    return own_item(approval, home.names, home.reader, is_withheld=is_withheld)


def _ended(home: HomePage) -> Iterable[Block]:
    ended, by = home.overview.ended, home.overview.person.user_id
    if not ended:
        return
    yield _divider()
    yield header(say("home.decided"))
    lines = []
    for approval in ended[:_MOST_ENDED]:
        sign, _, words = ended_words(approval, home.names, home.reader, by=by).partition(" ")
        title = clip(title_of(what_runs(approval)), _TITLE)
        text = say("home.ended_line", title=title, how=words)
        lines.append(line(literal(f"{sign} {text}")))
    yield rich(*lines)
    if len(ended) > _MOST_ENDED:
        yield actions(_plain_button(say("button.show_more"), ALL_ENDED))


def _settings(home: HomePage) -> Iterable[Block]:
    overview = home.overview
    yield _divider()
    yield header(say("home.settings"))
    yield _away(home)
    yield _messages(home)
    for given in overview.grants[:_MOST_GRANTS]:
        yield grant_item(given, home.reader)
    yield from _programs(home)


def _programs(home: HomePage) -> Iterable[Block]:
    """Render the reader's keys, what ends soon, and the way to a new key."""
    overview, reader = home.overview, home.reader
    for program, key in overview.keys:
        yield key_item(program, key, reader)
    for name, end_ms in overview.ending:
        yield _words(f"🔑 {say('home.key', program=name, when=reader.moment(end_ms))}")
    if home.can_connect:
        way = _plain_button(say("button.connect"), CONNECT)
        yield {**_words(f"🔑 {say('home.programs')}"), "accessory": way}


def _away(home: HomePage) -> Block:
    """Render the absence and the delegations."""
    overview = home.overview
    is_away = overview.away_ms > overview.at_ms
    when = home.reader.moment(overview.away_ms)
    first = say("home.away_until", when=when) if is_away else say("home.here")
    second = say("home.away_alone") if is_away else say("home.away_set")
    handed = [record for record in overview.handed if not record.approval_id]
    if handed:
        delegation = handed[0]
        until = home.reader.moment(delegation.until_ms)
        second = say("home.decides", who=home.names.person(delegation.delegate_id), when=until)
    is_set = is_away or bool(handed)
    end = say("button.back_here" if is_away else "button.end_delegation")
    way = (end, BACK_HERE) if is_set else (say("button.set"), AWAY)
    return {
        "type": "section",
        "text": plain(f"🌴 {first}\n{second}"),
        "accessory": _plain_button(*way),
    }


def _messages(home: HomePage) -> Block:
    """Render the notification preferences."""
    preferences, reader = home.overview.preferences, home.reader
    words = say("home.messages_any")
    if preferences is not None and preferences.quiet_from:
        times = {
            "from": reader.wall(preferences.quiet_from),
            "until": reader.wall(preferences.quiet_until),
        }
        words = say("home.messages_quiet", **times)
    parts = [words]
    if preferences is not None and preferences.has_copies:
        parts.append(say("home.messages_copies"))
    return {
        "type": "section",
        "text": plain(f"🔔 {say('home.messages')}\n{' '.join(parts)}"),
        "accessory": _plain_button(say("button.change"), MESSAGES),
    }


def _health(home: HomePage) -> Iterable[Block]:
    vitals = home.overview.vitals
    if vitals is None:
        return
    yield _divider()
    yield header(say("home.health"))
    yield {"type": "section", "text": plain("\n".join(health_lines(vitals, home.reader)))}
    yield context(plain(say("home.admins", version=home.version)))


def _words(text: str) -> Block:
    return {"type": "section", "text": plain(text)}


def _divider() -> Block:
    return {"type": "divider"}


def _option(label: str, value: str) -> Block:
    return {"text": plain(clip(label, _OPTION)), "value": value}


def _plain_button(label: str, action: str) -> Block:
    return {"type": "button", "action_id": action, "text": plain(label)}
