"""Post digests in direct messages; see `bot.notifications.digest.DigestBoard`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from bot.approvals.model import UNKNOWN_TS, Approval, Status
from bot.notifications.digest import Digest
from bot.people.current_policy import CurrentPolicy
from bot.people.model import PostedDigest
from bot.ports.people import Directory
from bot.slack.calls import Poster, Putting
from bot.slack.home.digest import approvals_of, waitlist_card
from bot.slack.home.items import names_of
from bot.slack.home.times import TimeReader
from bot.words import speaking

LIST_EVENT = "countersign_digest"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackLists:
    """Digests of one workspace.

    Args:
        poster: Posts messages.
        directory: Looks people up; results may be a minute old.
        channel_name: Returns a channel's name, without `#`.
        policy: The policy in force; its time zone is the default.
    """

    poster: Poster
    directory: Directory
    channel_name: Callable[[str], Awaitable[str]]
    policy: CurrentPolicy

    async def show(self, shown: Digest, *, where: PostedDigest) -> PostedDigest:
        """See `DigestBoard`."""
        reader = TimeReader.of(shown.person, shown.now_ms, zone=self.policy.timezone)
        reader = replace(reader, is_lasting=True)
        approvals = [one.approval for one in approvals_of(shown)]
        names = await names_of(approvals, self.directory, self.channel_name)
        pending = [one for one in approvals if one.status is Status.PENDING]
        at = {one.approval_id: one.batch.ts for one in approvals}
        links = {
            one.approval_id: await self.poster.link(_at_card(one, at.get(one.batch.keeper, "")))
            for one in pending
        }
        with speaking(shown.person.locale):
            card = waitlist_card(shown, names, reader, links)
        putting = Putting(
            event=LIST_EVENT,
            record_id=shown.key,
            channel_id=shown.person.user_id,
            ts=where.ts,
            looks=True,
            is_last=where.is_posted,
        )
        ts = await self.poster.put(putting, card)
        return PostedDigest(
            ts=ts,
            ids=tuple(one.approval.approval_id for one in shown.items),
            total=shown.total,
            mark=shown.mark,
        )


def _at_card(approval: Approval, batch_ts: str) -> Approval:
    """Return an approval located at its visible card: its own or a batch card."""
    is_shared = approval.is_batched and batch_ts != UNKNOWN_TS
    return approval.with_card_ts(batch_ts) if is_shared else approval
