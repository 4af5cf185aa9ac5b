"""Requests of programs: create and cancel them. Each one is an approval like any other."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import partial

from agents.core.asking.infos import CallInfo
from agents.core.codec import Json
from agents.core.digest import call_digest
from agents.policy.base import PolicyCall
from bot.api.callers import ApiCaller
from bot.api.canonical import canonical
from bot.api.judging import CallOfProgram, ProgramPolicy
from bot.api.problems import ApiFault, ApiProblemError
from bot.api.schema_subset import misfits, schema_faults
from bot.api.shapes import ApiCreateRequest, ApiPreview
from bot.api.states import usable_until_ms
from bot.approvals.changes import decided
from bot.approvals.due.worker import ApprovalWorker
from bot.approvals.grants import DRAWN_AFTER
from bot.audit.entries import decision_entries, note_decision, request_entry
from bot.clock import is_waiting, milliseconds
from bot.errors import DeliveryError
from bot.layout.forms.schema import foreign
from bot.people.approvers import approvers_of
from bot.people.lookup import LookupOnce, is_direct
from bot.people.narrowing import answerers, people_named_by
from bot.people.quorum import QuorumCheck
from bot.policy.evaluation.merge import Permit, Refusal
from bot.ports.people import CHANNEL, Directory
from bot.ports.process import Clock, Spawn
from bot.ports.threads import Notices
from bot.questions.base import QuestionDraft, brief_of
from bot.questions.form import AnswerForm, Form, Option
from bot.questions.record import NewRequest, Rules, new_approval
from bot.records.approval import (
    CARD,
    PENDING,
    Approval,
    Decision,
    Execution,
    ExecutionMode,
    ExecutionState,
    Kind,
    Status,
)
from bot.records.approval_queries import newest_of
from bot.records.messages import Post
from bot.records.origin import ClaimedSource, ProgramCall, RequestPlace
from bot.records.program_events import with_birth
from bot.records.programs import ProgramRecord
from bot.stores import Stores
from bot.threads.runs.grant_uses import GrantCheck, NewCall
from bot.webhooks.addresses import AddressRefusedError, AddressRules
from bot.words import say
from storage.documents import update, update_or_none
from storage.errors import RecordNotFoundError
from storage.thread_ids import thread_id_of, turn_id_of

AFTER_REJECTION = timedelta(minutes=10)
"""Time for which a rejection answers the same call again, so that nobody is asked twice."""
ROOT_PATIENCE = timedelta(seconds=30)
"""Time for the process that posts the first message of a group. Then another one does."""
_ROOT_MS = milliseconds(ROOT_PATIENCE)
_SOON = timedelta(seconds=1)
QUESTIONS = "ask"
"""Name of questions in the tool patterns of a program."""
_APART = "\0"
"""Stands in no idempotency key."""
MOST_PER_PERSON = 20
"""Maximum number of undecided requests of one program for one person, group or channel."""
_MOST_IN_GROUP = 200
"""How many earlier requests of a group are read for its requesters."""
_USED_UP = frozenset(
    {Status.EXPIRED, Status.CANCELLED, Status.UNDECIDABLE, Status.DENIED, Status.SUPERSEDED}
)
_FINGERPRINTED = (
    "kind",
    "preview",
    "tool",
    "arguments",
    "secret",
    "options",
    "multiple",
    "schema",
    "tags",
    "risk",
    "execution",
    "people",
    "requested_for",
    "repeat",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRequests:
    """Creates and cancels the requests of programs.

    Args:
        storage: The database.
        directory: Looks people and channels up.
        notices: Posts the first messages of groups.
        attendance: Returns the worker that shows cards.
        policy: Judges calls.
        grants: Finds standing grants.
        quorum_check: Checks whether anybody can decide.
        rules: The settings' rules.
        clock: The time now.
        spawn: Runs the posting of a card in the background.
        changed: Called with each approval that was written here.
        addresses: Judges the addresses to which events are sent.
    """

    storage: Stores
    directory: Directory
    notices: Notices
    attendance: Callable[[], ApprovalWorker]
    policy: ProgramPolicy
    grants: GrantCheck
    quorum_check: QuorumCheck
    rules: Rules
    clock: Clock
    spawn: Spawn
    changed: Callable[[Approval], None]
    addresses: AddressRules

    async def create(
        self, caller: ApiCaller, asked: ApiCreateRequest, *, idempotency_key: str
    ) -> tuple[Approval, bool]:
        """Ask people, or find the request that the key names.

        Returns:
            The approval, and whether it is new. Once returned, it is stored.

        Raises:
            ApiProblemError: The program may not ask this, or the key names another request.
            DirectoryError: A look-up failed; nothing is stored.
            StorageError: Nothing is known to be stored. The same key finds what is.
        """
        channel = _channel_of(caller.program, asked)
        _check_scope(caller.program, asked)
        await self._check_callback(caller.program, asked)
        print_ = fingerprint(asked, channel)
        generation, known = await self._known(caller, asked, idempotency_key, print_)
        if known is not None:
            return known, False
        _check_schema(asked)
        await self._check_room(caller.program)
        await self._check_place(channel)
        asker = ProgramCall(
            program=caller.program.id,
            key_digest=digest_of_key(idempotency_key),
            generation=generation,
            fingerprint=print_,
            wants=asked.kind,
            people=asked.people,
            tags=asked.tags,
            risk=asked.risk or "medium",
            is_trusted=caller.program.trusts_tags,
            run_timeout_s=asked.run_timeout,
            state=asked.state or "",
            metadata=dict(asked.metadata),
            callback_url=asked.callback_url or "",
        )
        name = request_id(caller.program, idempotency_key, generation)
        approval = await self._made(caller, asked, asker, name=name, channel=channel)
        if approval.status is Status.PENDING:
            await self._check_attention(approval)
        is_granted = approval.decision is not None and bool(approval.decision.grant)
        has_card = is_granted or approval.status in {Status.PENDING, Status.UNDECIDABLE}
        created = with_birth(
            self.attendance().leased_here(approval)
            if has_card
            else approval.changed(due_ms=self.clock(), open=False)
        )
        if not await self.storage.approvals.insert(created):  # made elsewhere at the same moment
            return await self.create(caller, asked, idempotency_key=idempotency_key)
        entries = [request_entry(created)]
        if created.decision is not None and created.status is not Status.UNDECIDABLE:
            entries += decision_entries(created, created.decision)
        await self.storage.audit.append(*entries)
        attendance = self.attendance()
        self.spawn(attendance.request([created]) if has_card else attendance.attend(name))
        self.changed(created)
        return created, True

    async def placed(self, approval: Approval) -> Approval:
        """Return the request in the thread of its group; see `ProgramCalls`.

        The record of the first message decides which process posts it.
        """
        place = approval.place
        if not place.group or approval.thread_ts or approval.message(CARD) is None:
            return approval
        try:
            thread_ts = await self._root(approval)
        except DeliveryError as error:
            if error.is_permanent:  # the card meets the same fault, and is marked
                return approval
            raise

        def put(stored: Approval) -> Approval:
            return stored.changed(place=stored.place.changed(thread_ts=thread_ts))

        changed = await update_or_none(
            self.storage.approvals, approval.approval_id, put, fence=approval.fence
        )
        if changed is None:
            raise DeliveryError("chat.postMessage", "the lease is over", retry_after=_SOON)
        return changed

    async def _root(self, approval: Approval) -> str:
        posts, now_ms = self.storage.posts, self.clock()
        post = Post(
            post_id=f"{approval.thread_id}:group",
            thread_id=approval.thread_id,
            text=approval.place.group,
            created_ms=now_ms,
        )
        known = await posts.add_or_get(post)
        if known is not None and known.ts:
            return known.ts
        if known is not None and is_waiting(known.created_ms + _ROOT_MS, now_ms, ROOT_PATIENCE):
            why = "the first message of the group is being posted"
            raise DeliveryError("chat.postMessage", why, retry_after=_SOON)
        title = (known or post).text
        ts = await self.notices.show_group(approval, title, looks=known is not None)
        await posts.finish(post.post_id, ts=ts)
        return ts

    async def get(self, caller: ApiCaller, approval_id: str) -> Approval:
        """Read a request of this program.

        Raises:
            ApiProblemError: There is none with this id, or it is another program's.
        """
        try:
            approval = await self.storage.approvals.get(approval_id)
        except RecordNotFoundError:
            approval = None
        if approval is None or not is_of(approval, caller.program.id):
            raise ApiProblemError("not-found", "This program has no request with this id.")
        return approval

    async def cancel(self, caller: ApiCaller, approval_id: str, *, reason: str = "") -> Approval:
        """End a pending request; repeating it changes nothing.

        Raises:
            ApiProblemError: The request is over, or does not exist.
        """
        approval = await self.get(caller, approval_id)
        words = say("reason.program_cancelled", program=caller.program.name)
        decision = Decision(
            status=Status.CANCELLED,
            by="",
            at_ms=self.clock(),
            reason=f"{words} {reason}".strip(),
            digest=approval.digest,
        )
        write = partial(decided, decision=decision, digest=approval.digest)
        ended = await update(self.storage.approvals, approval_id, write, writes_due=True)
        if ended is not None:
            await note_decision(self.storage.audit, ended, decision)
            self.changed(ended)
            self.spawn(self.attendance().attend(approval_id))
            return ended
        newest = await self.get(caller, approval_id)
        if newest.status is Status.CANCELLED:
            return newest
        if newest.status is Status.PENDING and self.clock() < newest.expires_ms:
            return await self.cancel(caller, approval_id, reason=reason)  # it was edited just now
        raise ApiProblemError(
            "not-pending",
            "The request is over, so it cannot be cancelled. After an approval, do not start it.",
            request=approval_id,
        )

    async def _known(
        self, caller: ApiCaller, asked: ApiCreateRequest, key: str, print_: str
    ) -> tuple[int, Approval | None]:
        """Return the generation that the key names, and its request; None if it is not made yet."""
        generation = await self._newest(caller, key) if asked.repeat == "after_use" else 0
        while True:
            name = request_id(caller.program, key, generation)
            try:
                approval = await self.storage.approvals.get(name)
            except RecordNotFoundError:
                return generation, None
            asker = approval.asker
            if (
                not isinstance(asker, ProgramCall)
                or asker.program != caller.program.id
                or asker.fingerprint != print_
            ):
                raise ApiProblemError(
                    "idempotency-key-reused",
                    "This Idempotency-Key names another request. Use another key for this one.",
                    request=name,
                )
            if asked.repeat == "same" or not is_used_up(approval, self.clock()):
                return generation, approval
            generation += 1

    async def _newest(self, caller: ApiCaller, key: str) -> int:
        """Return the newest generation of a key; older ones may be deleted."""
        where = {"asker.program": caller.program.id, "asker.key_digest": digest_of_key(key)}
        newest = await self.storage.approvals.find(where, sort=["-created_ms"], limit=1)
        askers = [approval.asker for approval in newest.documents]
        return max((a.generation for a in askers if isinstance(a, ProgramCall)), default=0)

    async def _made(
        self,
        caller: ApiCaller,
        asked: ApiCreateRequest,
        asker: ProgramCall,
        *,
        name: str,
        channel: str,
    ) -> Approval:
        """Build the approval, judged by the policy and not stored yet."""
        program = caller.program
        group = asked.where.group
        thread_name = group_name(program, group or name)
        thread_id = thread_id_of(program.team_id, channel, thread_name)
        earlier = await self._earlier(thread_id) if group else []
        new = NewRequest(
            approval_id=name,
            asker=asker,
            thread_id=thread_id,
            place=RequestPlace(
                channel_id=channel,
                thread_ts=_root_of(earlier),
                group=asked.where.group_title or group or "",
            ),
            requesters=_requesters(program, asked, earlier),
            title=asked.title,
            origin=caller.origin(asked.requested_for).changed(
                claims=await self._claims(asked, earlier), source=_source_of(asked)
            ),
        )
        if asked.tool:
            approval = await self._call(program, asked, new, asker)
        else:
            approval = await self._asks(asked, new)
        approval = approval.changed(execution=Execution(mode=ExecutionMode(asked.execution)))
        return _shortened(approval, asked.expires_in)

    async def _call(
        self,
        program: ProgramRecord,
        asked: ApiCreateRequest,
        new: NewRequest,
        asker: ProgramCall,
    ) -> Approval:
        arguments = dict(asked.arguments or {})
        call = CallOfProgram(
            turn_id=turn_id_of(new.thread_id, 0),
            address=asker.address,
            tool=asked.tool or "",
            arguments=arguments,
            schema=_schema_of(asked, arguments),
            title=asked.title,
            why=asked.why or "",
            preview=_text_of(asked.preview),
            tags=asked.tags,
            risk=asker.risk,
            secret=_secrets_in(asked),
            people=asker.people,
            requesters=new.requesters,
            channel=new.place.channel_id,
            origin=new.origin,
            is_trusted=asker.is_trusted,
        )
        ruled = await self.policy.rule(call)
        if not isinstance(ruled, CallInfo):
            return self._settled(call, new, ruled)
        approval = new_approval(brief_of(ruled), ruled, new, self.rules, now_ms=self.clock())
        if not people_named_by(approval.terms).issuperset(asker.people):
            raise ApiProblemError("people-not-allowed", "The policy does not name all of them.")
        approval = approval.changed(policy_file=self.quorum_check.policy.file_hash)
        granted = await self._granted(approval)
        if granted is not None:
            return granted
        look = LookupOnce(self.directory)
        approval = await replace(self.quorum_check, directory=look).prepare(approval)
        _check_direct(program, approval)
        return await self.attendance().planner(look).invite(approval)

    async def _granted(self, approval: Approval) -> Approval | None:
        """Use a standing grant that covers the call; return it as allowed, or None to ask people.

        The use is stored first, under the id of the request, so that a repetition uses nothing.
        """
        name, now_ms = approval.approval_id, approval.created_ms
        call = PolicyCall(
            tool=approval.tool, arguments=approval.arguments, address=approval.address
        )
        new = NewCall(
            call=call,
            terms=approval.terms,
            thread_id=approval.thread_id,
            requesters=approval.all_requesters,
            key=name,
            program=approval.origin.program,
        )
        grant = await self.grants.find_grant(new)
        due_ms = now_ms + milliseconds(DRAWN_AFTER)
        store = self.storage.grants
        if grant is None or not await store.use(grant, call=name, now_ms=now_ms, due_ms=due_ms):
            return None
        self.spawn(self.grants.grants.show_later(grant.grant_id))
        given = await self.storage.approvals.get(grant.approval_id)
        place = approval.place
        thread_ts = place.thread_ts or ("" if place.group else given.thread_ts)
        decision = Decision(
            status=Status.APPROVED,
            by="",
            at_ms=now_ms,
            digest=approval.digest,
            grant=grant.grant_id,
        )
        return approval.changed(
            status=Status.APPROVED, decision=decision, place=place.changed(thread_ts=thread_ts)
        )

    def _settled(self, call: CallOfProgram, new: NewRequest, ruled: Permit | Refusal) -> Approval:
        """Return the approval of a call that a rule allows or denies; nobody is asked."""
        rule = " + ".join(ruled.names)
        digest = call_digest(
            thread=call.turn_id,
            address=call.address,
            tool=call.tool,
            arguments=call.arguments,
            rule=rule,
        )
        brief = QuestionDraft(
            kind=Kind.APPROVAL,
            title=call.title,
            arguments=call.arguments,
            ask=AnswerForm(form=Form.CALL, secret=call.secret),
            tool=call.tool,
            why=call.why,
            preview=call.preview,
            rule=rule,
            digest=digest,
        )
        approval = new_approval(brief, None, new, self.rules, now_ms=self.clock())
        decision = Decision(
            status=Status.APPROVED if isinstance(ruled, Permit) else Status.DENIED,
            by="",
            at_ms=approval.created_ms,
            reason="" if isinstance(ruled, Permit) else ruled.reason,
            rule=rule,
            digest=digest,
        )
        return approval.changed(status=decision.status, decision=decision)

    async def _asks(self, asked: ApiCreateRequest, new: NewRequest) -> Approval:
        if asked.people:
            channel = new.place.channel_id
            people = await answerers(asked.people, self.directory, channel_id=channel)
            if not people:
                detail = "Name members of the channel, or user groups with members there."
                raise ApiProblemError("people-not-allowed", detail)
            new = replace(new, answerers=people)
        brief = QuestionDraft(
            kind=Kind.QUESTION,
            title=asked.title,
            arguments={"questions": [asked.title]},
            ask=_form_of(asked),
            why=asked.why or "",
            preview=_text_of(asked.preview),
        )
        brief = replace(
            brief, digest=brief.digest_at(turn_id_of(new.thread_id, 0), new.approval_id)
        )
        return new_approval(brief, None, new, self.rules, now_ms=self.clock())

    async def _earlier(self, thread_id: str) -> Sequence[Approval]:
        return await newest_of(self.storage.approvals, thread_id, limit=_MOST_IN_GROUP)

    async def _check_callback(self, program: ProgramRecord, asked: ApiCreateRequest) -> None:
        """Refuse an address for events that the key or the network rules do not allow."""
        if asked.callback_url is None:
            return
        try:
            await self.addresses.check(asked.callback_url, hosts=program.callback_hosts)
        except AddressRefusedError as error:
            raise ApiProblemError("callback-refused", f"callback_url: {error}.") from error

    async def _check_room(self, program: ProgramRecord) -> None:
        """Refuse a request of a program that has too many undecided ones."""
        pending = await self.storage.approvals.count({**PENDING, "asker.program": program.id})
        if pending >= program.limits.pending:
            detail = f"{pending} requests of this program are undecided. Wait for some, or cancel."
            raise ApiProblemError("too-many-pending", detail, retry_after_s=60)

    async def _check_attention(self, approval: Approval) -> None:
        """Refuse a request if a person has too many undecided ones of its program."""
        program = approval.origin.program
        pending = {**PENDING, "asker.program": program}
        if await self.storage.approvals.count(pending) < MOST_PER_PERSON:
            return
        page = await self.storage.approvals.find(pending, sort=["expires_ms"])
        counts = Counter(name for other in page.documents for name in _asked_by_name(other))
        if any(counts[name] >= MOST_PER_PERSON for name in _asked_by_name(approval)):
            detail = f"A person has {MOST_PER_PERSON} undecided requests of this program."
            raise ApiProblemError("too-many-pending", detail, retry_after_s=60)

    async def _check_place(self, channel: str) -> None:
        """Refuse a channel that the bot is not in."""
        if not await self.directory.is_in(channel):
            detail = "The bot is not in this channel. Invite it there."
            raise ApiProblemError("channel-out-of-scope", detail)

    async def _claims(self, asked: ApiCreateRequest, earlier: Iterable[Approval]) -> dict[str, str]:
        """Return the names of the people whom the program named, by Slack user id."""
        claims = {name: words for other in earlier for name, words in other.origin.claims.items()}
        return claims | await claimed(asked.requested_for, self.directory)


def request_id(program: ProgramRecord, key: str, generation: int = 0) -> str:
    """Return the id of the request under an idempotency key: unguessable, the same each time."""
    return f"apr_{_made_of(program, key + _APART + str(generation))[:32]}"


def digest_of_key(key: str) -> str:
    """Return the SHA-256 of an idempotency key, in hexadecimal."""
    return hashlib.sha256(key.encode()).hexdigest()


def check_requester(program: ProgramRecord, requested_for: str | None) -> None:
    """Refuse a person whom the key does not let its program name, or one that is missing."""
    if program.requester == "owner" and requested_for is not None:
        raise ApiProblemError("requester-not-allowed", "Leave requested_for out.")
    if program.requester == "required" and requested_for is None:
        raise ApiProblemError("requester-missing", "Name the person in requested_for.")


async def claimed(requested_for: str | None, directory: Directory) -> dict[str, str]:
    """Return the name of the person whom a program names, by Slack user id; refuse an unknown."""
    if requested_for is None:
        return {}
    person = await directory.person(requested_for)
    if person.is_bot or person.is_deleted or not person.team_id:
        detail = "requested_for names no active member of the workspace."
        raise ApiProblemError("person-unknown", detail)
    return {requested_for: person.name}


def fingerprint(asked: ApiCreateRequest, channel: str) -> str:
    """Return the SHA-256 of the members that an idempotency key stands for."""
    body = asked.model_dump(mode="json", by_alias=True)
    members = {name: body[name] for name in _FINGERPRINTED}
    members["where"] = {"channel": channel, "group": asked.where.group}
    if not asked.tool:
        members["title"] = asked.title  # a call is its tool and its arguments, whatever its title
    try:
        text = canonical(members)
    except ValueError as error:
        raise ApiProblemError("number-out-of-range", f"{error}; send it as text") from error
    return hashlib.sha256(text).hexdigest()


def is_of(approval: Approval, program: str) -> bool:
    """Whether a program asked for an approval. Questions about its outcome are people's."""
    asker = approval.asker
    return (
        isinstance(asker, ProgramCall)
        and asker.program == program
        and approval.kind is not Kind.DOUBT
    )


def is_used_up(approval: Approval, now_ms: int) -> bool:
    """Whether a repeated call needs a new request, as the last one has served."""
    if approval.status is Status.REJECTED and approval.decision is not None:
        return now_ms - approval.decision.at_ms > milliseconds(AFTER_REJECTION)
    state = approval.execution.state
    is_late = state is ExecutionState.READY and now_ms > usable_until_ms(approval)
    if approval.status is Status.APPROVED and (is_late or state is ExecutionState.LAPSED):
        return True
    return approval.status in _USED_UP or approval.execution.program.is_delivered


def group_name(program: ProgramRecord, group: str) -> str:
    """Return the name of a group of requests in the id of its thread."""
    return _made_of(program, group)[:24]


def _made_of(program: ProgramRecord, text: str) -> str:
    key = bytes.fromhex(program.salt)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _channel_of(program: ProgramRecord, asked: ApiCreateRequest) -> str:
    channel = asked.where.channel or next(iter(program.channels), "")
    if channel not in program.channels:
        raise ApiProblemError("channel-out-of-scope", "The key does not name this channel.")
    return channel


def _check_scope(program: ProgramRecord, asked: ApiCreateRequest) -> None:
    """Refuse what the key does not allow."""
    tool = asked.tool or QUESTIONS
    if not any(fnmatchcase(tool, pattern) for pattern in program.tools):
        raise ApiProblemError("tool-out-of-scope", f"No tool pattern of the key fits {tool}.")
    if asked.people and program.people != "narrow":
        raise ApiProblemError("people-not-allowed", "Leave people out.")
    check_requester(program, asked.requested_for)


def _check_direct(program: ProgramRecord, approval: Approval) -> None:
    """Refuse a direct message if members of the channel decide: the owner is the only one."""
    is_here = any(group.here for group in approval.terms.groups.values())
    if approval.status is not Status.UNDECIDABLE or not (is_here and is_direct(approval)):
        return
    remedy = "Give the key a channel, and name it in where.channel."
    if len(program.channels) > 1:
        remedy = "Name another channel of the key in where.channel."
    detail = f"Members of the channel decide, and this is a direct message. {remedy}"
    raise ApiProblemError("invalid", faults=[ApiFault("/where/channel", detail)])


def _check_schema(asked: ApiCreateRequest) -> None:
    """Refuse a schema that forms do not keep, and arguments that do not fit theirs."""
    schema = asked.call_schema
    if schema is None:
        return
    if faults := schema_faults(schema):
        inside = [ApiFault(f"/schema{fault.pointer}", fault.detail) for fault in faults]
        raise ApiProblemError("schema-unsupported", faults=inside)
    if asked.arguments is not None and (faults := misfits(schema, asked.arguments)):
        inside = [ApiFault(f"/arguments{fault.pointer}", fault.detail) for fault in faults]
        raise ApiProblemError("arguments-do-not-fit", faults=inside)


def _requesters(
    program: ProgramRecord, asked: ApiCreateRequest, earlier: Iterable[Approval]
) -> tuple[str, ...]:
    """Return the people whose words may have led to the request, the owner first.

    Naming a person only excludes that person.
    """
    people = [program.owner_id, *([asked.requested_for] if asked.requested_for else [])]
    for approval in earlier:
        people += [*approval.all_requesters, *_speakers(approval)]
    return tuple(dict.fromkeys(people))


def _asked_by_name(approval: Approval) -> set[str]:
    """Return the people and user groups that decide or answer, or the channel."""
    names = (approval.channel_id if name == CHANNEL else name for name in approvers_of(approval))
    return {*names} - {*approval.all_requesters}


def _speakers(approval: Approval) -> list[str]:
    """Return the people who answered, edited, or gave a reason, which the program has read."""
    decision = approval.decision
    spoke = decision is not None and (decision.reason or decision.answer is not None)
    by = [decision.by] if decision is not None and spoke else []
    return [name for name in (*by, *approval.edits.editors) if name]


def _root_of(earlier: Sequence[Approval]) -> str:
    """Return the `ts` of the first card of a group; empty for its first request."""
    posted = [approval for approval in earlier if approval.thread_ts]
    first = min(posted, key=lambda approval: approval.created_ms, default=None)
    return first.thread_ts if first is not None else ""


def _source_of(asked: ApiCreateRequest) -> ClaimedSource | None:
    given = asked.source.model_dump(exclude_none=True)
    return ClaimedSource(**given) if given else None


def _secrets_in(asked: ApiCreateRequest) -> tuple[str, ...]:
    """Return the names to mask: the last part of each path, wherever it stands."""
    return tuple(dict.fromkeys(path.rpartition(".")[2] for path in asked.secret))


def _text_of(preview: ApiPreview | None) -> str:
    if preview is None:
        return ""
    rows = [preview.columns or (), *(preview.rows or ())]
    return preview.text or "\n".join(" | ".join(row) for row in rows if row)


def _schema_of(asked: ApiCreateRequest, arguments: dict[str, Json]) -> dict[str, Json]:
    """Return the schema of the arguments for an edit; empty if people cannot edit."""
    if asked.kind != "edit":
        return {}
    if asked.call_schema is not None:
        return foreign(asked.call_schema)
    fields: dict[str, Json] = {name: {"type": _TYPES[type(arguments[name])]} for name in arguments}
    required: list[Json] = list(arguments)
    return {
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": False,
    }


_TYPES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


def _form_of(asked: ApiCreateRequest) -> AnswerForm:
    if asked.kind == "choice":
        options = tuple(
            Option(
                id=option.value,
                label=option.label,
                description=option.description or "",
                value=option.value,
            )
            for option in asked.options or ()
        )
        return AnswerForm(
            form=Form.CHOICE, question=asked.title, options=options, multiple=asked.multiple
        )
    if asked.kind == "form":
        return AnswerForm(form=Form.FIELDS, schema=foreign(asked.call_schema or {}))
    return AnswerForm(form=Form.TEXTS)


def _shortened(approval: Approval, expires_in: int | None) -> Approval:
    """Return the approval with an earlier expiry, if the program wants one."""
    if expires_in is None or approval.status is not Status.PENDING:
        return approval
    longest_s = (approval.expires_ms - approval.created_ms) // 1_000
    if expires_in > longest_s:
        detail = f"expires_in is at most {longest_s} s, by the policy."
        raise ApiProblemError("expires-too-long", detail)
    return approval.changed(expires_ms=approval.created_ms + expires_in * 1_000)
