"""The `action` of every log record: its meaning, and how an operator reacts to it.

Each call of a logger writes its action as a literal. A test compares these literals with the table,
and the reference page "Log actions" shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogAction:
    """An action of log records.

    Attributes:
        meaning: The event, in one or two sentences.
        remedy: Steps for the operator; "Nothing." if there are none.
    """

    meaning: str
    remedy: str = "Nothing."


_SLACK = "If it continues, check Slack's status page."
_DATABASE = "Check the database."
_REPORT = "Report it with the trace."
_REINVITE = "Invite the bot to the channel again, or unarchive the channel."

ACTIONS: Mapping[str, LogAction] = {
    "asker_not_shown": LogAction(
        "Slack rejected the line that says who asked an agent about a message.",
        "Nothing. The agent works, and its cards name who asked.",
    ),
    "admin_not_told": LogAction(
        "Slack rejected the message of *Ask an admin…*. The person who clicked is told.",
        "Nothing. The person can ask again.",
    ),
    "agents": LogAction(
        "A model, a tool, a policy in code or an observer failed. The record says which.",
        "Correct the agent's code, or check the model's provider.",
    ),
    "agent_view_failed": LogAction(
        "Slack did not show or end the list of steps in its agent view. The thread shows the same.",
    ),
    "alert_failed": LogAction(
        "Slack rejected the alert of an emergency override. The audit has `broke_glass`.",
        "Tell the people of the alert channel yourself. Correct the reason in the record.",
    ),
    "api_failed": LogAction(
        "A call of a program failed by an error of the bot. The program got a 500.", _REPORT
    ),
    "api_key_revoked": LogAction(
        "A program sent its key in an address. The key is revoked, because logs have it.",
        "Make a new key.",
    ),
    "api_owner_not_told": LogAction(
        "Slack did not take the direct message that tells the owner of a program of a revoked key.",
        "Tell the owner yourself.",
    ),
    "audit_chain_broken": LogAction(
        "The newest audit entry is damaged. The chain continues behind an entry that says so.",
        "Run `countersign audit verify`. Check the disk.",
    ),
    "audit_head": LogAction(
        "The end of a workspace's audit, as `SEQ:HASH`. It is logged every hour.",
        "Keep it elsewhere, for `countersign audit verify --head`.",
    ),
    "audit_key_begins": LogAction(
        "The audit is sealed with `COUNTERSIGN_AUDIT_KEY` from now on. The record has the last "
        "entry without a seal, as `SEQ:HASH`.",
        "Keep it elsewhere, for `countersign audit verify --plain-until`. If the key was set long "
        "ago, the audit was rewritten: investigate.",
    ),
    "audit_unguarded": LogAction(
        "The server does not enforce unique numbers of audit entries. The lease of the chain does.",
        "Nothing. A MongoDB server with unique partial indexes enforces them, too.",
    ),
    "audit_unsealed": LogAction(
        "Audit entries have no seal for more than a minute.",
        "Run `countersign audit verify`. The entries were altered, or come from a process without "
        "`COUNTERSIGN_AUDIT_KEY`.",
    ),
    "batch_split": LogAction(
        "Slack rejected a card for several calls. Each call gets its own card.",
    ),
    "card_failed": LogAction(
        "Slack did not take a card. The bot tries again.",
        _SLACK,
    ),
    "card_undeliverable": LogAction(
        "Slack will not take a card, for the reason in the record.",
        f"{_REINVITE} If Slack refuses the token, install the app again or set the new token; all "
        "cards then follow.",
    ),
    "channel_too_large": LogAction(
        "A channel of a group has too many members, so its members cannot approve.",
        "Name people or user groups in the policy.",
    ),
    "clock_differs": LogAction(
        "The clocks of this machine and of the database server differ, or were not compared. With "
        "more than the length of a lease, the bot does not start.",
        "Synchronize both clocks by NTP.",
    ),
    "connection_closed": LogAction(
        "Too many connections were open at once. The bot closed the incomplete ones.",
        "Use a proxy that limits connections per address.",
    ),
    "copy_failed": LogAction(
        "Slack rejected a copy of a card, in a direct message or in another channel.",
        "Invite the bot to that channel. For direct messages, install the app again: its manifest "
        "has `im:write`.",
    ),
    "describe_failed": LogAction(
        "A tool's own title or preview failed. The card uses a general text.",
        "Correct the tool's `title` or `preview`.",
    ),
    "event_ignored": LogAction(
        "Slack sent an event that the bot does not use, or a message from outside the workspace.",
    ),
    "forgotten": LogAction(
        "A thread was older than `COUNTERSIGN_RETENTION`. It was deleted, or kept for the reason "
        "in the record.",
    ),
    "freeze_untold": LogAction(
        "The bot could not post or update a message about a freeze. The freeze holds.",
        "Look at the error. Invite the bot to the channel that the policy names as `alert`.",
    ),
    "grant_not_shown": LogAction(
        "Slack rejected the message of a standing grant. No call uses the grant before that.",
        "Correct the reason in the record.",
    ),
    "grant_not_used": LogAction(
        "A standing grant was not applied, because its giver or its message was not found. "
        "Approvers are asked.",
        f"Nothing. {_SLACK}",
    ),
    "grant_use_not_shown": LogAction(
        "Slack did not take the line that shows the use of a standing grant. The bot tries again.",
    ),
    "group_unknown": LogAction(
        "A group of the policy was not found in Slack. The stricter result applies.",
        _SLACK,
    ),
    "home_not_drawn": LogAction(
        "A person's Home tab was not updated. The next change, or opening Home, updates it.",
    ),
    "hung_up": LogAction(
        "Slack closed the connection before the answer was sent. Clicks are on record.",
        "If there are many, check the load and the database.",
    ),
    "install_unsupported": LogAction(
        "The app is installed for a whole organization, which is not supported.",
        "Install it in one workspace.",
    ),
    "ladder_failed": LogAction(
        "The terms or the time zone of a request cannot be read. Nobody is reminded; the request "
        "expires in time.",
        "Install the time zones that the record names.",
    ),
    "lapsed": LogAction(
        "An approval was too old for its call, or its approver can no longer approve. Approvers "
        "are asked again.",
        "If it happens often, find out why calls start late, or raise `COUNTERSIGN_MAX_AGE`.",
    ),
    "lease_failed": LogAction(
        "A thread's lease was not renewed. Another process continues its work.",
        _DATABASE,
    ),
    "levels_unknown": LogAction(
        "The gauges of `/metrics` were not read. They keep their last values.",
        _DATABASE,
    ),
    "limit_reached": LogAction(
        "The models of an agent reached a limit. People are asked before the next request.",
        "If it happens often, raise the limit in the file of agents.",
    ),
    "link_failed": LogAction(
        "Slack did not return the address of a card. Its reminder has no link.",
    ),
    "listener_failed": LogAction(
        "An event, a click or a form failed. The person was told.",
        "A warning means that the database or Slack did not answer. Report an error that has a "
        "trace. For an error without a trace, check the database, or the record that it names.",
    ),
    "lookup_waits": LogAction(
        "Slack's rate limit delays a look-up of people or groups, and the start with it.",
    ),
    "api_closed": LogAction(
        "The port of the API for programs could not be opened.",
        "Correct `COUNTERSIGN_API_PORT` or `COUNTERSIGN_API_HOST`, and restart.",
    ),
    "api_ready": LogAction("Programs can ask."),
    "api_waits": LogAction(
        "`COUNTERSIGN_API_PORT` is set, and no program has a key.",
        "Make one with `countersign keys create`.",
    ),
    "metrics_ready": LogAction("The bot serves `/metrics`."),
    "nudge_failed": LogAction(
        "Slack rejected a reminder or an escalation message. The card is in place.",
        _REINVITE,
    ),
    "place_lost": LogAction(
        "The bot cannot write into a thread, and its requesters were not told.",
    ),
    "policy_loaded": LogAction(
        "A policy file came into force. The record has its SHA-256.",
    ),
    "policy_refused": LogAction(
        "A policy file has errors. The policy before it stays in force.",
        "Correct the file. `countersign policy check` lists the same errors.",
    ),
    "post_failed": LogAction(
        "Slack did not take a text of the agent. The bot tries again.",
        _SLACK,
    ),
    "post_undeliverable": LogAction(
        "A text of the agent is not posted: Slack refused it, or it stopped the process.",
        _REINVITE,
    ),
    "question_unanswered": LogAction(
        "The agent did not answer a question about its call. The card says so.",
        "Check the model. The person can ask again.",
    ),
    "question_undeliverable": LogAction(
        "A question about a card was not posted into its thread. The card shows it.",
        "Correct the reason in the record.",
    ),
    "ready": LogAction("The bot accepts messages and clicks."),
    "reconnecting": LogAction(
        "Connections to MongoDB did not answer. The driver opened new ones.",
        "If it is repeated, check the network to the database.",
    ),
    "removal_failed": LogAction(
        "A message that is out of date was not deleted.",
    ),
    "request_refused": LogAction(
        "A request did not have the form of Slack's requests. The bot rejected it.",
        "If there are many, find out who sends them.",
    ),
    "retention_failed": LogAction(
        "The database did not answer while threads were deleted. The bot tries again.",
        _DATABASE,
    ),
    "run_untold": LogAction(
        "The database did not store that a call has started. The card says so later.",
        _DATABASE,
    ),
    "seal_failed": LogAction(
        "The audit was not sealed. The bot tries again.",
        _DATABASE,
    ),
    "seen_not_shown": LogAction(
        "*I've seen this* is on record, and its message does not show it yet.",
    ),
    "set_aside": LogAction(
        "A stored record cannot be read. The bot leaves it alone.",
        "Run `countersign doctor`, which names the record.",
    ),
    "sign_failed": LogAction(
        "Slack did not set or remove a reaction, or the line that shows progress.",
    ),
    "start_failed": LogAction(
        "Slack did not take the first message of a thread that no person starts.",
        "Nothing: it is tried again for an hour. `GET /v1/threads/{id}` tells the end.",
    ),
    "start_waits": LogAction(
        "An approver cannot be looked up before a call starts. The call waits, at most as long "
        "as its approval is valid.",
        _SLACK,
    ),
    "statements_failed": LogAction(
        "An unexpected exception ended a group of database statements. No statement took effect.",
        "Check the memory of the process.",
    ),
    "starting": LogAction(
        "The bot starts: it loads its code, opens its database, and connects to Slack.",
    ),
    "status_failed": LogAction(
        "Slack did not show or remove the status of a working agent.",
    ),
    "step": LogAction(
        "A step of a call is in the audit: its request, its decision, its start or its end.",
    ),
    "stopping": LogAction(
        "The bot stops after a signal. A warning or an error names what did not close in time.",
        "Nothing. Interrupted work is on record and continues at the next start.",
    ),
    "stream_failed": LogAction(
        "Slack did not show a piece of a growing text. The whole text follows.",
    ),
    "summary_failed": LogAction(
        "Slack rejected the summary of a thread. The cards show the same.",
    ),
    "thread_cut_off": LogAction(
        "A process ended while it worked on a thread. The work begins again.",
        "If it is repeated, find the tool that ends the process.",
    ),
    "thread_failed": LogAction(
        "The work of a thread failed. The bot tries again.",
        "Nothing, unless `turn_failed` follows.",
    ),
    "thread_set_aside": LogAction(
        "A record of a thread cannot be read. The thread stops and says so.",
        "Run `countersign doctor`, which names the record.",
    ),
    "tick_failed": LogAction(
        "A search for due work failed or was late. The next one follows in seconds.",
        f"{_DATABASE} Report a record that has a trace.",
    ),
    "transaction_left_open": LogAction(
        "A transaction of the embedded database had not ended. It was rolled back.",
        "Report it with the records before it.",
    ),
    "turn_failed": LogAction(
        "The bot gave up a turn of an agent. The thread says so.",
        "Correct the reason in the record: the agent's code, the model, or a text that is too "
        "large.",
    ),
    "unusable": LogAction(
        "A decision did not fit the run. People are told.",
        "Ask again. Read the audit of the approval.",
    ),
    "webhook_failed": LogAction(
        "The receiver of a program did not take an event. The bot tries again for three days.",
        "If it goes on, ask the owner of the program.",
    ),
    "whisper_failed": LogAction(
        "A private answer was not shown. The bot tries again for some minutes.",
    ),
    "whisper_unrecorded": LogAction(
        "A private answer was not stored, because the database did not answer.",
        _DATABASE,
    ),
    "whisper_without_button": LogAction(
        "A private answer came without its button, because its request is deleted or unreadable.",
    ),
    "wishes_failed": LogAction(
        "People's notification settings were not read. Everybody is notified, or an earlier time "
        "zone applies.",
        f"{_SLACK} {_DATABASE}",
    ),
    "work_failed": LogAction(
        "A background task failed unexpectedly. The bot tries again.",
        _REPORT,
    ),
    "work_put_off": LogAction(
        "A background task failed, because the database did not answer. The bot tries again.",
        _DATABASE,
    ),
}
"""Every action, by its name."""
