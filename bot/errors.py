"""The errors of the bot.

BotError
    SettingsError               names the variable, the fault and the remedy
    InvalidSettingsError        all faults of the settings at once
    CopyInPlaceError            the database is a backup that was copied in place
    UserFacingError             str() is safe to show in Slack
        NotApproverError        the person may not do this
            NotSeenError        the person has not opened the hidden part of the card
            RefusalError        a vote or an edit does not count
                StrangerError   the person is not an approver
                OthersTurnError other approvers decide now
                FrozenError     a freeze covers the call, so break-glass does not start it
        ApprovalClosedError     another person, or the expiry, decided first
        LeftOutError            a part of a decision about several requests does not count
        OutdatedCardError       the card is older than the stored request
        UnknownApprovalError    the approval does not exist in this workspace
        InvalidInputError       a button value or a form was not made by the bot
        DirectoryError          people could not be looked up
        UnknownScopeError       nothing has the name of a scope
        UnknownFreezeError      no freeze in force has this id
        AlreadyConfirmedError   other people must confirm the lifting of a freeze
        NotRecordedError        the database did not respond in time
    RunEndedError               a request expired, and its rule ends the run
    TurnCrashedError            the process crashed repeatedly during a turn
    NobodyError                 no person can decide a request
    DeliveryError               Slack refused or did not respond; keeps __cause__
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from math import ceil

from bot.records.approval import Approval, Status
from bot.words import say
from bot.words.mrkdwn import date, mention, untagged

_CHANNEL = re.compile(r"[CG][A-Z0-9]{1,30}")
_MOST_NAMED = 5
_WITH_NAMES = {
    "refuse.not_yet": "refuse.not_yet_who",
    "refuse.voted_already": "refuse.voted_already_who",
    "refuse.not_needed": "refuse.not_needed_who",
}


class BotError(Exception):
    """Base of all errors of the bot."""


class SettingsError(BotError):
    """A setting is wrong, so the bot cannot start.

    Attributes:
        variable: Name of the setting.
        fault: The fault; never contains the value of a secret.
        remedy: The remedy.
    """

    def __init__(self, variable: str, fault: str, remedy: str) -> None:
        super().__init__(f"{variable}: {fault}; {remedy}")
        self.variable = variable
        self.fault = fault
        self.remedy = remedy


class InvalidSettingsError(BotError):
    """Settings are wrong, so the bot cannot start. The error has one line per setting.

    Attributes:
        problems: The error of each wrong setting; never empty.
    """

    def __init__(self, problems: Sequence[SettingsError]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class FaultyPolicyError(BotError):
    """A policy, or its cases, have errors and cannot be used. One line per fault."""


class CopyInPlaceError(BotError):
    """The database is a backup that was copied in place. Run `countersign restore` first."""

    fault = "the database is a copy that was put in place: calls that ran since could run again"
    remedy = "while no bot runs, type: countersign restore"

    def __init__(self) -> None:
        super().__init__(f"{self.fault}; {self.remedy}")


class UserFacingError(BotError):
    """Base of errors whose text may be shown to the person who clicked or typed.

    Attributes:
        code: Code of the refusal in the audit; empty if the audit does not record it.
    """

    code = ""


class NotApproverError(UserFacingError):
    """The person may not do this.

    Attributes:
        reason: The reason, in sentences for the person.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NotSeenError(NotApproverError):
    """The person must open the details before approving.

    Attributes:
        button: The button that opens the details.
    """

    code = "not_seen"

    def __init__(self, what: str, button: str) -> None:
        super().__init__(say("refuse.not_seen", what=what, button=button))
        self.button = button


class RefusalError(NotApproverError):
    """A vote or an edit does not count.

    Attributes:
        code: The reason, as the audit names it.
        detail: Further reason from the policy; may be empty.
    """

    def __init__(self, code: str, words: str, *, detail: str = "") -> None:
        super().__init__(words)
        self.args = (f"{words} {detail}".rstrip(),)
        self.code = code
        self.detail = detail


class FrozenError(RefusalError):
    """A freeze covers the call, so break-glass does not start it."""

    def __init__(self, by: str) -> None:
        super().__init__("frozen", say("refuse.frozen", who=mention(by)))


def decider_words(deciders: Sequence[str]) -> str:
    """Name people who can decide, in mrkdwn; empty for nobody.

    Args:
        deciders: Ids of people, user groups and channels, or names of groups.
    """
    names = [_decider(decider) for decider in deciders[:_MOST_NAMED]]
    if len(deciders) > _MOST_NAMED:
        names.append(say("line.more_people", n=len(deciders) - _MOST_NAMED))
    if len(names) < 2:
        return "".join(names)
    return say("line.or", a=", ".join(names[:-1]), b=names[-1])


class StrangerError(RefusalError):
    """The person is not an approver. The text names the approvers."""

    def __init__(self, code: str, words: str, *, deciders: Sequence[str]) -> None:
        """Word it.

        Args:
            code: The reason, as the audit names it.
            words: For where nobody is named.
            deciders: Ids of people, user groups and channels, or names of groups.
        """
        who = decider_words(deciders)
        if deciders and _CHANNEL.fullmatch(deciders[0]):  # our own words begin a sentence
            who = who[:1].upper() + who[1:]
        super().__init__(code, say("refuse.not_approver", who=who) if who else words)


class OthersTurnError(RefusalError):
    """Other people decide now. The text names them, and the time of the person's turn."""

    def __init__(
        self, code: str, key: str, *, deciders: Sequence[str], turn_ms: int | None = None
    ) -> None:
        """Word it.

        Args:
            code: The reason, as the audit names it.
            key: Of its text where nobody is named; the one with names is beside it.
            deciders: Ids of people, user groups and channels, or names of groups.
            turn_ms: When a backup is asked; None where that is not known.
        """
        who = decider_words(deciders)
        if who and turn_ms:
            words = say("refuse.not_yet_backup", time=date(turn_ms), who=who)
        else:
            words = say(_WITH_NAMES[key], who=who) if who else say(key)
        super().__init__(code, words)


class ApprovalClosedError(UserFacingError):
    """Another person, or the expiry, decided first.

    Attributes:
        approval: The current version of the approval.
    """

    code = "closed"

    def __init__(self, approval: Approval) -> None:
        super().__init__(_closed_text(approval))
        self.approval = approval


class LeftOutError(UserFacingError):
    """A part of a decision about several requests does not count; the rest does."""


class OutdatedCardError(UserFacingError):
    """The card or form is older than the stored request.

    Attributes:
        approval_id: Id of the shown approval; empty if unknown.
    """

    code = "outdated"

    def __init__(self, approval_id: str = "") -> None:
        super().__init__(say("refuse.changed"))
        self.approval_id = approval_id


class UnknownApprovalError(UserFacingError):
    """The request does not exist, or belongs to another workspace."""

    def __init__(self) -> None:
        super().__init__(say("refuse.unknown"))


class InvalidInputError(UserFacingError):
    """A button value, a modal or a form was not made by this bot.

    Attributes:
        what: Name of the thing that was refused.
    """

    def __init__(self, what: str) -> None:
        super().__init__(say("refuse.not_ours", what=say(_THINGS.get(what, "thing.unknown"))))
        self.what = what


class DirectoryError(UserFacingError):
    """People could not be looked up in Slack, so no one can decide now.

    Attributes:
        detail: The fault for the log, which is not part of the text.
        again: Delay until Slack permits the look-up; None if unknown.
    """

    code = "lookup_failed"

    def __init__(self, detail: str = "", *, again: timedelta | None = None) -> None:
        if again is None:
            super().__init__(say("refuse.lookup"))
        else:
            super().__init__(say("refuse.lookup_later", s=ceil(again.total_seconds())))
        self.detail = detail
        self.again = again


class UnknownScopeError(UserFacingError):
    """Nothing has the name that the scope of a freeze has, so nothing is frozen.

    Attributes:
        name: The unknown name.
        guess: The nearest known name; empty if none is near.
    """

    code = "unknown_scope"

    def __init__(self, kind: str, name: str, *, guess: str = "") -> None:
        named = {"kind": kind, "name": name}
        if guess:
            words = say("refuse.unknown_scope", **named, guess=guess)
        elif kind == "channel":
            words = say("refuse.unknown_channel", name=name)
        else:
            words = say("refuse.unknown_scope_far", **named)
        super().__init__(words)
        self.name, self.guess = name, guess


class UnknownFreezeError(UserFacingError):
    """No freeze in force has this id; or, without an id, not exactly one is in force.

    Attributes:
        known: Ids of the freezes in force, oldest first.
    """

    code = "no_freeze"

    def __init__(self, freeze_id: str, known: Sequence[str]) -> None:
        ids = ", ".join(known)
        if not known:
            words = say("refuse.nothing_frozen")
        elif freeze_id:
            words = say("refuse.no_freeze", id=freeze_id, ids=ids)
        else:
            words = say("refuse.which_freeze", ids=ids)
        super().__init__(words)
        self.known = tuple(known)


class AlreadyConfirmedError(UserFacingError):
    """The person has confirmed the lifting of this freeze. Other people must confirm it, too.

    Attributes:
        freeze_id: Id of the freeze.
        missing: How many more people must confirm.
    """

    code = "already_voted"

    def __init__(self, freeze_id: str, *, missing: int) -> None:
        super().__init__(say("refuse.lift_confirmed", id=freeze_id, n=missing))
        self.freeze_id, self.missing = freeze_id, missing


class NotRecordedError(UserFacingError):
    """The database did not answer while the person waited."""

    def __init__(self) -> None:
        super().__init__(say("error.database"))


class RunEndedError(BotError):
    """A request expired, and its rule ends the run (`cancel_run`)."""

    def __init__(self) -> None:
        super().__init__(say("error.run_ended"))


class TurnCrashedError(BotError):
    """The process died repeatedly during a turn."""

    def __init__(self, times: int) -> None:
        super().__init__(say("error.crashed", n=times))


class NobodyError(BotError):
    """No person can decide a request. The text has the remedy.

    Args:
        obstacles: Ids or names of possible approvers, each with the reason why they cannot decide;
            may be empty.
        is_direct: Whether the request is made in a direct message.
        remedy: The remedy; empty for a default.
    """

    def __init__(
        self,
        obstacles: Sequence[tuple[str, str]],
        *,
        is_direct: bool = False,
        remedy: str = "",
    ) -> None:
        parts = [f"{_name(who)} {why}".strip() for who, why in obstacles[:_MOST_TOLD]]
        if len(obstacles) > _MOST_TOLD:
            parts.append(say("nobody.more", n=len(obstacles) - _MOST_TOLD))
        facts = ". ".join(parts) or say("nobody.named")
        if not remedy:
            remedy = say("nobody.ask_in_channel" if is_direct else "nobody.remedy")
        super().__init__(f"{facts}. {remedy}")

    @classmethod
    def elsewhere(cls, channels: Sequence[str]) -> NobodyError:
        """Return the error for requests that are permitted only in other channels."""
        places = ", ".join(f"<#{channel}>" for channel in channels[:_MOST_TOLD])
        return cls([("", say("nobody.no_place"))], remedy=say("nobody.ask_in", places=places))


_MOST_TOLD = 6
_UNSAFE = re.compile(r"[^\w .@-]")


def plain_words(text: str) -> str:
    """Replace mentions by ids in a text, for places without mrkdwn, such as errors below inputs."""
    return untagged(text, {})


def _decider(who: str) -> str:
    if who == "channel":
        return say("line.members")
    return say("line.anyone_in", channel=f"<#{who}>") if _CHANNEL.fullmatch(who) else mention(who)


def _name(who: str) -> str:
    if not who:
        return ""
    if who == "channel":
        return say("nobody.this_channel")
    text = mention(who)
    # A name that is not an id is untrusted and must not become a mention.
    return text if text.startswith("<") else f"“{_UNSAFE.sub('', who)[:40]}”"


class StartRefusedError(BotError):
    """No thread starts without a person now.

    Attributes:
        code: The reason, as a code of the HTTP API.
        request: Id of the start that a key names; empty without one.
        retry_after_s: Seconds after which the same start may be possible; None if unknown.
    """

    def __init__(self, code: str, *, request: str = "", retry_after_s: int | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.request = request
        self.retry_after_s = retry_after_s


class DeliveryError(BotError):
    """Slack refused a call or did not answer.

    Attributes:
        method: The Web API method.
        reason: Slack's error code, or the network fault.
        retry_after: Delay that Slack asked for; None without one.
        took_no_effect: Whether the call certainly had no effect. Otherwise search for its effect
            before a retry.
    """

    def __init__(
        self,
        method: str,
        reason: str,
        *,
        retry_after: timedelta | None = None,
        took_no_effect: bool = False,
    ) -> None:
        super().__init__(f"{method}: {reason}")
        self.method = method
        self.reason = reason
        self.retry_after = retry_after
        self.took_no_effect = took_no_effect

    @property
    def is_permanent(self) -> bool:
        """Whether Slack will refuse the same call again until a person changes something."""
        return self.reason in _PERMANENT

    @property
    def is_lost_place(self) -> bool:
        """Whether the bot can no longer write to the place, whatever the text."""
        return self.reason in _LOST

    @property
    def is_refusal(self) -> bool:
        """Whether Slack refuses all calls of the app, until the token is valid again."""
        return self.reason in REFUSALS


_PLACE = frozenset(
    {
        "cannot_reply_to_message",
        "channel_is_limited_access",
        "channel_not_found",
        "ekm_access_denied",
        "is_archived",
        "is_inactive",
        "messages_tab_disabled",
        "no_permission",
        "not_in_channel",
        "restricted_action",
        "restricted_action_non_threadable_channel",
        "restricted_action_read_only_channel",
        "restricted_action_thread_locked",
        "restricted_action_thread_only_channel",
        "thread_not_found",
        "user_is_bot",
        "user_not_found",
        "user_not_in_channel",
    }
)
_LOST = frozenset(
    {"channel_not_found", "is_archived", "is_inactive", "not_in_channel", "thread_not_found"}
)
_CONTENT = frozenset(
    {
        "block_mismatch",
        "invalid_arg_name",
        "invalid_arguments",
        "invalid_attachments",
        "invalid_blocks",
        "invalid_blocks_format",
        "invalid_metadata_format",
        "invalid_metadata_schema",
        "invalid_post_type",
        "metadata_must_be_sent_from_app",
        "metadata_too_large",
        "msg_blocks_too_long",
        "msg_too_long",
        "no_text",
        "too_many_attachments",
    }
)
REFUSALS = frozenset(
    {
        "access_denied",
        "account_inactive",
        "enterprise_is_restricted",
        "invalid_auth",
        "missing_scope",
        "not_allowed_token_type",
        "not_authed",
        "org_login_required",
        "team_access_not_granted",
        "token_expired",
        "token_revoked",
        "two_factor_setup_required",
    }
)
"""Slack's error codes for an app that is refused now. A new token or another installation ends
this, and the messages need no change. All of them are therefore retried, slowly.
"""
_METHOD = frozenset({"method_deprecated", "unknown_method"})
_PERMANENT = _PLACE | _CONTENT | _METHOD
"""Slack's error codes that waiting does not change: about the place, the content or the method."""


_OUTCOMES = {
    Status.APPROVED: "word.approved",
    Status.REJECTED: "word.rejected",
    Status.ANSWERED: "word.answered",
    Status.CANCELLED: "word.cancelled",
    Status.WITHDRAWN: "word.withdrawn",
    Status.SUPERSEDED: "word.superseded",
    Status.DENIED: "word.denied",
}
_THINGS = {
    "this button": "thing.button",
    "this form": "thing.form",
    "this answer": "thing.answer",
    "this choice": "thing.choice",
    "this command": "thing.command",
    "this menu": "thing.menu",
    "this shortcut": "thing.shortcut",
}
"""The things that people used, by their names in the program, with the keys of their words."""


def _closed_text(approval: Approval) -> str:
    decision = approval.decision
    if approval.status is Status.UNDECIDABLE:
        return say("refuse.nobody_can")
    outcome = _OUTCOMES.get(approval.status)
    if outcome is None:
        return say("refuse.expired", time=date(approval.expires_ms))
    what = say(outcome)
    if decision is None:
        return say("refuse.closed", what=what)
    if decision.arguments is not None:
        what = say("word.edited")
    if decision.by:
        return say("refuse.lost", who=mention(decision.by), what=what, time=date(decision.at_ms))
    return say("refuse.closed_at", what=what, time=date(decision.at_ms))


def reason_of(error: BaseException) -> str:
    """Return the text of an error for the log. A timeout has no text of its own."""
    return str(error) or "no answer in time"
