"""Messages: what Slack takes, whose they are, where they go, who sees them."""

from __future__ import annotations

from typing import Any

import pytest

from slack_sandbox import ADA, BEN, BOT, BOT_USER, FINANCE, GUS, MIA, OPS, RANDOM, ROSA, Sandbox
from tests.unit.slack_sandbox.conftest import Slack, a_card

LONG = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3_000}}
POST_REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"channel": OPS}, "no_text"),
    ({"channel": OPS, "text": "  "}, "no_text"),
    ({"channel": "C0NOWHERE1", "text": "x"}, "channel_not_found"),
    ({"channel": RANDOM, "text": "x"}, "not_in_channel"),
    ({"text": "x"}, "invalid_arguments"),
    ({"channel": OPS, "blocks": [{"type": "wonder"}]}, "invalid_blocks"),
    ({"channel": OPS, "blocks": [{"type": "divider"}] * 51}, "invalid_blocks"),
    ({"channel": OPS, "blocks": "{"}, "invalid_blocks_format"),
    ({"channel": OPS, "blocks": {"type": "divider"}}, "invalid_blocks_format"),
    ({"channel": OPS, "blocks": [LONG] * 5}, "msg_blocks_too_long"),
    ({"channel": OPS, "markdown_text": "x", "text": "y"}, "markdown_text_conflict"),
    ({"channel": OPS, "markdown_text": "x" * 12_001}, "msg_too_long"),
    ({"channel": OPS, "text": "x", "metadata": {"event_type": ""}}, "invalid_metadata_schema"),
    ({"channel": OPS, "text": "x", "attachments": [{}] * 101}, "too_many_attachments"),
]


@pytest.mark.parametrize(("args", "error"), POST_REFUSALS)
async def test_post_is_refused(
    slack: Slack, sandbox: Sandbox, args: dict[str, Any], error: str
) -> None:
    assert await slack.error("chat.postMessage", **args) == error
    assert sandbox.messages(OPS) == []


async def test_block_faults_come_with_pointers(slack: Slack) -> None:
    refused = await slack.refused(
        "chat.postMessage",
        channel=OPS,
        blocks=[{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3_001}}],
    )
    (detail,) = refused["response_metadata"]["messages"]
    assert detail.startswith("[ERROR] must be")
    assert detail.endswith("[json-pointer:/blocks/0/text/text]")
    assert refused["errors"]


async def test_overlong_text_is_cut_with_a_warning(slack: Slack, sandbox: Sandbox) -> None:
    answer = await slack.ok("chat.postMessage", channel=OPS, text="x" * 40_001)
    assert answer["response_metadata"]["warnings"] == ["message_truncated"]
    assert len(sandbox.messages(OPS)[0]["text"]) == 40_000


async def test_post_answers_with_the_message(slack: Slack) -> None:
    answer = await slack.ok("chat.postMessage", channel=OPS, text="hi", blocks=a_card())
    message = answer["message"]
    assert (message["user"], message["bot_id"]) == (BOT_USER, BOT)
    assert message["bot_profile"]["app_id"] == message["app_id"]
    assert all(block["block_id"] for block in message["blocks"])


async def test_bot_can_be_let_in_and_taken_out(slack: Slack, sandbox: Sandbox) -> None:
    sandbox.join(BOT_USER, RANDOM)
    await slack.ok("chat.postMessage", channel="#random", text="x")
    sandbox.leave(BOT_USER, RANDOM)
    assert await slack.error("chat.postMessage", channel=RANDOM, text="x") == "not_in_channel"


async def test_stranger_makes_a_channel_shared(slack: Slack, sandbox: Sandbox) -> None:
    stranger = sandbox.add_person("zoe", team_id="T0OTHER001", is_stranger=True)
    sandbox.join(stranger.id, OPS)
    info = await slack.ok("conversations.info", channel=OPS, include_num_members=True)
    assert info["channel"]["is_ext_shared"]
    assert info["channel"]["num_members"] == 7
    members = (await slack.ok("conversations.members", channel=OPS))["members"]
    assert members[-1] == stranger.id


async def test_dm_is_opened_and_listed(slack: Slack, sandbox: Sandbox) -> None:
    sandbox.scopes.add("im:write")
    person = sandbox.add_person("new")
    answer = await slack.ok("conversations.open", users=person.id, return_im=True)
    assert answer["channel"]["user"] == person.id
    listed = await slack.ok("conversations.list", types="im")
    assert answer["channel"]["id"] in [channel["id"] for channel in listed["channels"]]


async def test_groups_list_their_members(slack: Slack, sandbox: Sandbox) -> None:
    sandbox.workspace.people[ADA].deleted = True
    users = (await slack.ok("usergroups.users.list", usergroup="S0ONCALL01"))["users"]
    (group, _) = (await slack.ok("usergroups.list", include_users=True))["usergroups"]
    assert users == [BEN]
    assert group["users"] == [ADA, BEN]


async def test_bot_and_team_can_be_looked_up(slack: Slack, sandbox: Sandbox) -> None:
    sandbox.scopes.add("team:read")
    assert (await slack.ok("bots.info", bot=BOT))["bot"]["user_id"] == BOT_USER
    assert (await slack.ok("team.info"))["team"]["id"] == sandbox.workspace.team_id


async def test_reply_to_a_reply_is_refused(slack: Slack, asked: str) -> None:
    reply = await slack.ok("chat.postMessage", channel=OPS, text="x", thread_ts=asked)
    again = {"channel": OPS, "text": "y", "thread_ts": reply["ts"]}
    assert await slack.error("chat.postMessage", **again) == "cannot_reply_to_message"


async def test_broadcast_reply(slack: Slack, sandbox: Sandbox, asked: str) -> None:
    args = {"channel": OPS, "text": "done", "thread_ts": asked, "reply_broadcast": True}
    answer = await slack.ok("chat.postMessage", **args)
    assert answer["message"]["subtype"] == "thread_broadcast"
    history = await slack.ok("conversations.history", channel=OPS)
    assert [message["ts"] for message in history["messages"]] == [answer["ts"], asked]


async def test_update_of_others_is_refused(slack: Slack, asked: str) -> None:
    args = {"channel": OPS, "ts": asked, "text": "x"}
    assert await slack.error("chat.update", **args) == "cant_update_message"
    assert await slack.error("chat.delete", channel=OPS, ts=asked) == "cant_delete_message"


async def test_update_limits_text_more_than_post(slack: Slack) -> None:
    ts = (await slack.ok("chat.postMessage", channel=OPS, text="x"))["ts"]
    args = {"channel": OPS, "ts": ts, "text": "x" * 4_001}
    assert await slack.error("chat.update", **args) == "msg_too_long"


@pytest.mark.parametrize(
    ("change", "text", "has_blocks"),
    [
        ({"text": "new"}, "new", False),
        ({"blocks": [{"type": "divider"}]}, "old", True),
        ({"text": "new", "blocks": [{"type": "divider"}]}, "new", True),
    ],
)
async def test_update_replaces_what_it_names(
    slack: Slack, sandbox: Sandbox, change: dict[str, Any], text: str, has_blocks: bool
) -> None:
    metadata = {"event_type": "card", "event_payload": {"id": "apr_1"}}
    args = {"channel": OPS, "text": "old", "blocks": a_card(), "metadata": metadata}
    ts = (await slack.ok("chat.postMessage", **args))["ts"]
    await slack.ok("chat.update", channel=OPS, ts=ts, **change)
    (message,) = sandbox.messages(OPS)
    assert message["text"] == text
    assert ("blocks" in message) is has_blocks
    assert ("edited" in message) is not has_blocks
    assert message["metadata"] == metadata


async def test_delete_leaves_the_replies(slack: Slack, sandbox: Sandbox) -> None:
    ts = (await slack.ok("chat.postMessage", channel=OPS, text="root"))["ts"]
    await sandbox.say(ROSA, OPS, "reply", thread_ts=ts)
    await slack.ok("chat.delete", channel=OPS, ts=ts)
    root, reply = sandbox.messages(OPS)
    assert (root["subtype"], root["user"]) == ("tombstone", "USLACKBOT")
    assert (reply["text"], reply["parent_user_id"]) == ("reply", "USLACKBOT")
    assert await slack.error("chat.update", channel=OPS, ts=ts, text="x") == "message_not_found"
    later = await slack.ok("chat.postMessage", channel=OPS, text="more", thread_ts=ts)
    assert later["message"]["thread_ts"] == ts


async def test_a_post_below_a_root_that_is_gone_stands_in_the_channel(
    slack: Slack, sandbox: Sandbox
) -> None:
    ts = (await slack.ok("chat.postMessage", channel=OPS, text="root"))["ts"]
    await slack.ok("chat.delete", channel=OPS, ts=ts)
    place = {"channel": OPS, "thread_ts": ts, "text": "late"}
    answer = await slack.ok("chat.postMessage", **place, reply_broadcast=True)
    assert "thread_ts" not in answer["message"]
    assert "subtype" not in answer["message"]
    await slack.ok("chat.postEphemeral", **place, user=ADA)
    assert sandbox.ephemerals(ADA) == []
    assert await slack.error("conversations.replies", channel=OPS, ts=ts) == "thread_not_found"


async def test_ephemeral_is_seen_by_its_person_only(slack: Slack, sandbox: Sandbox) -> None:
    answer = await slack.ok("chat.postEphemeral", channel=OPS, user=ADA, text="psst")
    assert [message["text"] for message in sandbox.ephemerals(ADA)] == ["psst"]
    assert sandbox.ephemerals(ROSA) == []
    assert sandbox.messages(OPS) == []
    history = await slack.ok("conversations.history", channel=OPS)
    assert history["messages"] == []
    changed = {"channel": OPS, "ts": answer["message_ts"], "text": "x"}
    assert await slack.error("chat.update", **changed) == "message_not_found"


async def test_ephemeral_needs_its_person_in_the_channel(slack: Slack) -> None:
    args = {"channel": FINANCE, "user": GUS, "text": "psst"}
    assert await slack.error("chat.postEphemeral", **args) == "user_not_in_channel"


async def test_permalink_opens_the_page(slack: Slack, asked: str, sandbox: Sandbox) -> None:
    answer = await slack.ok("chat.getPermalink", channel=OPS, message_ts=asked)
    assert answer["permalink"] == f"{sandbox.url}/archives/{OPS}/p{asked.replace('.', '')}"


async def test_metadata_only_when_asked_for(slack: Slack, asked: str) -> None:
    metadata = {"event_type": "card", "event_payload": {"id": "apr_1"}}
    args = {"channel": OPS, "text": "x", "thread_ts": asked, "metadata": metadata}
    await slack.ok("chat.postMessage", **args)
    plain = await slack.ok("conversations.replies", channel=OPS, ts=asked)
    full = await slack.ok("conversations.replies", channel=OPS, ts=asked, include_all_metadata=True)
    assert "metadata" not in plain["messages"][1]
    assert full["messages"][1]["metadata"] == metadata


async def test_replies_start_with_the_root_and_its_numbers(
    slack: Slack, sandbox: Sandbox, asked: str
) -> None:
    last = await sandbox.say(ADA, OPS, "on it", thread_ts=asked)
    answer = await slack.ok("conversations.replies", channel=OPS, ts=asked)
    root, reply = answer["messages"]
    assert (root["reply_count"], root["latest_reply"]) == (1, last)
    assert (root["thread_ts"], reply["thread_ts"]) == (asked, asked)
    assert reply["parent_user_id"] == ROSA
    newer = await slack.ok("conversations.replies", channel=OPS, ts=asked, oldest=last)
    assert [message["ts"] for message in newer["messages"]] == [asked]


@pytest.mark.parametrize("method", ["conversations.replies", "conversations.history"])
async def test_reading_needs_membership(slack: Slack, method: str) -> None:
    assert await slack.error(method, channel=RANDOM, ts="1.000001") == "not_in_channel"


LOOKUPS: list[tuple[str, dict[str, Any], str]] = [
    ("conversations.info", {"channel": "C0NOWHERE1"}, "channel_not_found"),
    ("conversations.replies", {"channel": OPS, "ts": "1.000001"}, "thread_not_found"),
    ("conversations.open", {"users": "U0NOBODY01"}, "user_not_found"),
    ("conversations.open", {"users": BOT_USER}, "cannot_dm_bot"),
    ("conversations.open", {}, "users_list_not_supplied"),
    ("users.info", {"user": "U0NOBODY01"}, "user_not_found"),
    ("bots.info", {"bot": "B0NOBODY01"}, "bot_not_found"),
    ("usergroups.users.list", {"usergroup": "S0NOBODY01"}, "no_such_subteam"),
    ("conversations.list", {"types": "wonder"}, "invalid_types"),
]


@pytest.mark.parametrize(("method", "args", "error"), LOOKUPS)
async def test_lookup_of_nothing(
    slack: Slack, sandbox: Sandbox, method: str, args: dict[str, Any], error: str
) -> None:
    sandbox.scopes.add("im:write")
    assert await slack.error(method, **args) == error


async def test_private_channel_is_not_there_for_outsiders(slack: Slack, sandbox: Sandbox) -> None:
    secret = sandbox.add_channel("secret", [ADA], is_private=True)
    assert await slack.error("conversations.info", channel=secret.id) == "channel_not_found"


async def test_people_show_guests_and_strangers(slack: Slack, sandbox: Sandbox) -> None:
    stranger = sandbox.add_person("zoe", team_id="T0OTHER001", is_stranger=True)
    user = (await slack.ok("users.info", user=stranger.id))["user"]
    assert (user["team_id"], user["is_stranger"]) == ("T0OTHER001", True)
    assert (await slack.ok("users.info", user=GUS))["user"]["is_ultra_restricted"]
    assert not (await slack.ok("users.info", user=MIA))["user"]["is_restricted"]


async def test_scope_must_fit_the_kind_of_channel(slack: Slack, sandbox: Sandbox) -> None:
    sandbox.scopes.discard("im:read")
    refused = await slack.refused("conversations.info", channel=sandbox.dm_id(ADA))
    assert (refused["error"], refused["needed"]) == ("missing_scope", "im:read")


async def test_stream_grows_and_ends(slack: Slack, sandbox: Sandbox, asked: str) -> None:
    stream = await slack.client.chat_stream(
        channel=OPS,
        thread_ts=asked,
        recipient_team_id=sandbox.workspace.team_id,
        recipient_user_id=ROSA,
        buffer_size=1,
    )
    await stream.append(markdown_text="Hello **wor")
    await stream.append(markdown_text="ld**")
    shown = sandbox.messages(OPS)[-1]
    assert (shown["text"], shown["streaming_state"]) == ("Hello **world**", "in_progress")
    refused = {"channel": OPS, "ts": shown["ts"], "text": "x"}
    assert await slack.error("chat.update", **refused) == "streaming_state_conflict"
    await stream.stop(blocks=a_card())
    final = sandbox.messages(OPS)[-1]
    assert "streaming_state" not in final
    assert [block["type"] for block in final["blocks"]] == ["markdown", "section", "actions"]
    more = {"channel": OPS, "ts": shown["ts"], "markdown_text": "x"}
    assert await slack.error("chat.appendStream", **more) == "message_not_in_streaming_state"


async def test_stream_outside_a_dm_needs_a_recipient(slack: Slack, asked: str) -> None:
    args = {"channel": OPS, "thread_ts": asked}
    assert await slack.error("chat.startStream", **args) == "missing_recipient_team_id"


async def test_stream_chunks_are_checked(slack: Slack, sandbox: Sandbox) -> None:
    channel = sandbox.dm_id(ROSA)
    root = await sandbox.say(ROSA, channel, "hello")
    ts = (await slack.ok("chat.startStream", channel=channel, thread_ts=root))["ts"]
    wrong = {"channel": channel, "ts": ts, "chunks": [{"type": "wonder"}]}
    assert await slack.error("chat.appendStream", **wrong) == "invalid_chunks"
    chunks = [
        {"type": "plan_update", "title": "Plan"},
        {"type": "task_update", "id": "1", "title": "Deploy", "status": "in_progress"},
        {"type": "markdown_text", "text": "on it"},
        {"type": "task_update", "id": "1", "status": "complete"},
    ]
    await slack.ok("chat.appendStream", channel=channel, ts=ts, chunks=chunks)
    header, task, text = sandbox.messages(channel)[-1]["blocks"]
    assert header["text"]["text"] == "Plan"
    assert (task["title"], task["status"]) == ("Deploy", "complete")
    assert text["text"] == "on it"


async def test_features_can_be_missing(slack: Slack, sandbox: Sandbox, asked: str) -> None:
    sandbox.features.streaming = False
    sandbox.features.status = False
    args = {"channel": OPS, "thread_ts": asked}
    assert await slack.error("chat.startStream", **args) == "unknown_method"
    status = {"channel_id": OPS, "thread_ts": asked, "status": "is thinking"}
    assert await slack.error("assistant.threads.setStatus", **status) == "unknown_method"
    sandbox.features.agent_view = False
    session = {"channel_id": OPS, "thread_ts": asked, "status": "processing"}
    assert await slack.error("agents.sessions.setStatus", **session) == "unknown_method"
    prompts = {"channel_id": OPS, "prompts": [{"title": "a", "message": "b"}]}
    assert await slack.error("assistant.threads.setSuggestedPrompts", **prompts) == "unknown_method"


async def test_status_ends_with_the_next_reply(slack: Slack, sandbox: Sandbox, asked: str) -> None:
    status = {"channel_id": OPS, "thread_ts": asked, "status": "is thinking"}
    await slack.ok("assistant.threads.setStatus", **status)
    assert sandbox.workspace.statuses[OPS, asked] == "is thinking"
    await slack.ok("chat.postMessage", channel=OPS, text="x", thread_ts=asked)
    assert sandbox.workspace.statuses[OPS, asked] == ""


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("@countersign a < b & c", f"<@{BOT_USER}> a &lt; b &amp; c"),
        ("ask @Ada, or @oncall.", f"ask <@{ADA}>, or <!subteam^S0ONCALL01>."),
        ("see #ops and #nowhere", f"see <#{OPS}|ops> and #nowhere"),
        ("@here mail@ada now", "<!here> mail@ada now"),
        ("https://a.example/x?y=1&z=2", "<https://a.example/x?y=1&amp;z=2>"),
        ("<@U0ADALINDQ>", "&lt;@U0ADALINDQ&gt;"),
        ("to bob@acme.example.", "to <mailto:bob@acme.example|bob@acme.example>."),
        ("(acme.example/a)", "(<http://acme.example/a|acme.example/a>)"),
        ("+1 (555) 123-4567", "<tel:+15551234567|+1 (555) 123-4567>"),
        ("1.000 on 2027-10-15", "1.000 on 2027-10-15"),
        ("launch 🚀 :tada: 👋🏽", "launch :rocket: :tada: :wave::skin-tone-4:"),
        ("`@Ada 🚀 https://a.example`", "`@Ada 🚀 <https://a.example>`"),
        ("*to a@b.example* _x_ 2*3*4", "*to <mailto:a@b.example|a@b.example>* _x_ 2*3*4"),
        ("> @Ada\n>b", f"&gt; <@{ADA}>\n&gt;b"),
        ("- a\n* b\n3. c\n4. d", "• a\n• b\n3. c\n4. d"),
        ("x\n```\n@Ada 🚀 <\n```\ny", "x\n```\n@Ada 🚀 &lt;\n```\ny"),
    ],
)
async def test_typed_text_is_escaped_and_marked(sandbox: Sandbox, typed: str, stored: str) -> None:
    await sandbox.say(ROSA, OPS, typed)
    assert sandbox.messages(OPS)[0]["text"] == stored


async def test_typed_text_comes_with_the_blocks_it_was_parsed_into(sandbox: Sandbox) -> None:
    await sandbox.say(ROSA, OPS, "*a* bob@acme.example 👋🏽\n> @Ada\n2. b\n```c```")
    (block,) = sandbox.messages(OPS)[0]["blocks"]
    section, quote, numbers, code = block["elements"]
    assert section["elements"] == [
        {"type": "text", "text": "a", "style": {"bold": True}},
        {"type": "text", "text": " "},
        {"type": "link", "url": "mailto:bob@acme.example", "text": "bob@acme.example"},
        {"type": "text", "text": " "},
        {"type": "emoji", "name": "wave", "unicode": "1f44b-1f3fd", "skin_tone": 4},
    ]
    assert quote == {"type": "rich_text_quote", "elements": [{"type": "user", "user_id": ADA}]}
    assert (numbers["type"], numbers["style"], numbers["offset"]) == (
        "rich_text_list",
        "ordered",
        1,
    )
    assert code["elements"] == [{"type": "text", "text": "c"}]


async def test_names_of_private_channels_stay_in_slack(sandbox: Sandbox) -> None:
    secret = sandbox.add_channel("secret", [ROSA], is_private=True)
    await sandbox.say(ROSA, OPS, "see #secret")
    assert sandbox.messages(OPS)[0]["text"] == f"see <#{secret.id}|>"
