"""The acts that the audit notes."""

from __future__ import annotations

from enum import StrEnum


class Act(StrEnum):
    """An act that the audit notes. Stored: version 1, must stay readable."""

    POLICY_LOADED = "policy_loaded"  # a policy file came into force
    POLICY_REFUSED = "policy_refused"  # a faulty one did not: the last good one stays in force
    DELEGATED = "delegated"  # somebody lends their own right to somebody else
    DELEGATION_ENDED = "delegation_ended"
    AWAY = "away"  # somebody is not to be mentioned until then
    WISHED = "wished"  # somebody says when not to message them, or whether to send cards or lists
    MESSAGE_REFUSED = "message_refused"  # a message was not passed on to the agent
    DENIED = "denied"  # a rule forbids the call
    GRANT_USED = "grant_used"  # a standing grant lets the call run: nobody is asked
    REQUESTED = "requested"  # people were asked: an approval, a question
    UNDELIVERABLE = "undeliverable"  # Slack will never take a card or a text
    REMINDED = "reminded"
    HANDED_OVER = "handed_over"  # somebody else is on duty, and was mentioned
    ESCALATED = "escalated"  # nobody decided for so long that the backup people are asked, too
    CLAIMED = "claimed"  # somebody says that they look at it
    CLAIM_ENDED = "claim_ended"
    SNOOZED = "snoozed"
    ASKED_BACK = "asked_back"  # a question about the call, or its answer: nothing is decided
    ADMIN_ASKED = "admin_asked"  # an admin is asked to see to what nobody can decide
    OPENED = "opened"  # somebody has read all details of a card
    REVEALED = "revealed"  # somebody was shown what only looks like a secret
    REFUSED = "refused"  # a click, a form or a reply that decided nothing
    EDIT_REFUSED = "edit_refused"  # an edit that changed nothing
    EDITED = "edited"  # a person changed the call, and others are asked about it now
    ALLOWED = "allowed"  # a rule lets the call run: nobody is asked
    VOTE_DROPPED = "vote_dropped"  # whose it was may no longer decide
    TAKEN_BACK = "taken_back"  # somebody removed their vote
    VOTED = "voted"
    BROKE_GLASS = "broke_glass"  # run without those who should decide, who were told
    ALERT_SEEN = "alert_seen"  # somebody who was told of that says that they have seen it
    DECIDED = "decided"  # by a person
    EXPIRED = "expired"  # nobody decided in time
    CANCELLED = "cancelled"  # nobody has to decide any more
    WITHDRAWN = "withdrawn"  # whoever asked took it back; once also what is now `unusable`
    SUPERSEDED = "superseded"  # it is asked anew, or its run is over
    UNDECIDABLE = "undecidable"  # there was nobody who could decide, and nobody was asked
    UNUSABLE = "unusable"  # a decision that the run could not use
    GRANTED = "granted"  # a standing grant, together with an approval
    GRANT_ENDED = "grant_ended"
    RESUMED = "resumed"  # the run was told of it
    LAPSED = "lapsed"  # a decision did not start its call: people are asked anew
    STARTED = "started"  # a gated call is about to run
    EXECUTED = "executed"  # a call has run
    DOUBTED = "doubted"  # a call may have run: its process died
    ANSWERED_TOOL = "answered_tool"  # a call has its result without having run
    STOPPED = "stopped"  # a person ended a turn
    TURN_FAILED = "turn_failed"
    RESTORED = "restored"  # the database went back to a copy: what came after is not on record
    FORGOTTEN = "forgotten"  # the thread was deleted; its audit lost its content
    CHAIN_BROKEN = "chain_broken"  # the end of the chain could not be read: it goes on behind this
    CHECKPOINT = "checkpoint"  # the chain is kept from here on: what was before may be deleted
