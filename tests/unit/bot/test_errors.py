"""What errors say to the person who clicked."""

from __future__ import annotations

import pytest

from bot.errors import (
    ApprovalClosedError,
    BotError,
    DirectoryError,
    InvalidInputError,
    NotApproverError,
    NotRecordedError,
    OutdatedCardError,
    UnknownApprovalError,
    UserFacingError,
)
from bot.records.approval import Status
from bot.words.mrkdwn import date, escape, is_person, mention
from bot.words.times import utc
from tests.unit.bot.slack.cards.samples import DECIDED, an_approval, decided

DATE = "<!date^1764000120^{date_short_pretty} at {time}|2025-11-24 16:02 UTC>"


@pytest.mark.parametrize(
    ("status", "changes", "text"),
    [
        (Status.APPROVED, {}, f"<@U0BEN> was first: approved {DATE}. There's nothing left to do."),
        (Status.APPROVED, {"arguments": {}}, "<@U0BEN> was first: edited and approved <!date"),
        (Status.REJECTED, {}, "<@U0BEN> was first: rejected <!date"),
        (Status.ANSWERED, {}, "<@U0BEN> was first: answered"),
        (Status.CANCELLED, {"by": ""}, f"This was cancelled {DATE}. There's nothing left to do."),
        (Status.EXPIRED, {"by": ""}, "This expired <!date^1764028800^{date"),
    ],
)
def test_closed_names_outcome_person_and_time(
    status: Status, changes: dict[str, str], text: str
) -> None:
    error = ApprovalClosedError(decided(an_approval(), status, **changes))
    assert text in str(error)
    assert error.approval.status is status


def test_closed_without_decision() -> None:
    assert "This expired" in str(ApprovalClosedError(an_approval()))
    bare = an_approval().changed(status=Status.APPROVED)
    assert (
        str(ApprovalClosedError(bare)) == "This was already approved. There's nothing left to do."
    )


@pytest.mark.parametrize(
    "error",
    [
        NotApproverError("Guests can't do this."),
        OutdatedCardError(),
        UnknownApprovalError(),
        InvalidInputError("this button"),
        DirectoryError("users.info: token xoxb-secret"),
        NotRecordedError(),
    ],
)
def test_user_facing_errors_are_sentences(error: UserFacingError) -> None:
    assert isinstance(error, BotError)
    assert str(error).endswith(".")
    assert "secret" not in str(error)


def test_mentions_are_only_of_people_and_groups() -> None:
    assert mention("U1") == "<@U1>"
    assert mention("W1") == "<@W1>"
    assert mention("S1") == "<!subteam^S1>"
    assert mention("<!channel>") == "&lt;!channel&gt;"
    assert mention("U1>") == "U1&gt;"
    assert mention("") == "somebody"
    assert is_person("U1")
    assert not is_person("S1")


def test_dates_are_shown_in_each_readers_zone() -> None:
    assert date(DECIDED) == DATE
    assert utc(-5) == "1970-01-01 00:00 UTC"
    assert utc(10**30) == "9999-12-31 23:59 UTC"
    assert escape("<&>") == "&lt;&amp;&gt;"
