"""Wire the bot: create use cases and adapters on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any

from agents import Agent, Runner
from agents.chat.explaining import Explains
from agents.gates.rulings import Judgement
from bot.approvals.ask_agent import Explanations
from bot.approvals.break_glass import BreakGlassAlert
from bot.approvals.due.agent_answers import AgentAnswers
from bot.approvals.due.frozen_cards import FrozenCards
from bot.approvals.due.thread_reactions import ThreadReactions
from bot.approvals.due.worker import ApprovalWorker
from bot.approvals.grants import Grants
from bot.approvals.overview import HomeDataReader
from bot.approvals.service import Approvals
from bot.freezes.alerts import FreezeAlerts
from bot.freezes.requests import FreezeRequests
from bot.freezes.rights import ADMINS_ONLY, FreezeAccess, FreezeRights
from bot.freezes.running import running_in
from bot.freezes.scopes import names_of
from bot.freezes.service import Freezes
from bot.freezes.starts import FreezeFile, StartSwitch, scope_of_approval
from bot.layout.sentences import spoken_title
from bot.maintenance.audit_sealer import Sealer
from bot.maintenance.clocks import ClockWatch
from bot.maintenance.program_keys import PersonalKeys
from bot.maintenance.retention import Forgetting, Retention
from bot.notifications.preferences import NotificationPreferences
from bot.people.access import Access
from bot.people.viewer import Viewers
from bot.policy.evaluation.context import world_of
from bot.policy.model import PolicyFile
from bot.ports.people import Actor
from bot.ports.policy import CurrentPolicy
from bot.ports.programs import ProgramCalls
from bot.ports.threads import BatchWords, CheckedCall, Presence, TaskBoard
from bot.questions.record import Rules
from bot.questions.shown import what_runs
from bot.records.approval import Approval
from bot.records.origin import ProgramCall
from bot.records.switch import Freeze, FreezeScope
from bot.scheduler import DueWork
from bot.slack.agent_view import AgentSessions, SlackTaskBoard, SuggestedPrompts
from bot.slack.cards.card_for import shows_all
from bot.slack.home.homes import Composer, HomeViews
from bot.slack.messages.reactions import SlackReactions
from bot.slack.process import Process, SlackSide
from bot.slack.side_messages.grant import use_words
from bot.slack.typing_status import SlackPresence
from bot.stores import Stores
from bot.tasks import Tasks
from bot.threads.agents import Catalog
from bot.threads.halts import TurnHalts
from bot.threads.inbox import ThreadInbox
from bot.threads.named_agents import Roster
from bot.threads.outbox import Outbox
from bot.threads.parked import ParkedThreads
from bot.threads.runs.application_policy import BotPolicy, GroupMembers, InForce, policy_of_cards
from bot.threads.runs.call_records import CallRecords
from bot.threads.runs.calls import Calls
from bot.threads.runs.grant_uses import GrantCheck, GrantUses, UseLines
from bot.threads.runs.limit_terms import LimitTerms
from bot.threads.runs.spending import AgentBudget
from bot.threads.summaries import Summaries
from bot.threads.turns import Turns
from bot.threads.worker import Threads
from bot.triggers.holds import TriggerHolds
from bot.triggers.schedules import Schedules
from bot.triggers.starting import ThreadStarts
from bot.triggers.triggers import AgentTriggers
from storage.errors import StorageError

QUICK_CALL = timedelta(milliseconds=300)
"""Duration up to which a card shows only the result of a call."""


@dataclass(kw_only=True)
class Wiring:
    """The parts of one bot.

    Args:
        slack: The Slack clients and adapters.
        storage: An open database.
        roster: The agents.
        rules: Approvers and time limits of the settings.
        tasks: Background tasks.
        policy: Returns the policy in force; None without a policy.
        programs: Takes what becomes of requests of programs; None without a door for them.
    """

    slack: SlackSide
    storage: Stores
    roster: Roster
    rules: Rules
    process: Process
    tasks: Tasks
    policy: Callable[[], InForce] | None = None
    programs: ProgramCalls | None = None

    @cached_property
    def policy_now(self) -> CurrentPolicy:
        """The policy in force, for cards and votes."""
        return policy_of_cards(self.policy, self._judge)

    async def _judge(self, approval: Approval, arguments: dict[str, Any]) -> Judgement | None:
        if isinstance(approval.asker, ProgramCall):
            return await self.programs.judge(approval, arguments) if self.programs else None
        return await self.catalog.judge(approval, arguments)

    @cached_property
    def outbox(self) -> Outbox:
        """Agents' texts and ephemeral messages."""
        return Outbox(
            storage=self.storage,
            notifier=self.slack.notifier,
            clock=self.process.clock,
            owner=self.process.owner,
            spawn=self.tasks.spawn,
            sleep=self.process.sleep,
        )

    @cached_property
    def attendance(self) -> ApprovalWorker:
        """Processes approvals."""
        storage, clock = self.storage, self.process.clock
        self.slack.notifier.sees = self.can_see
        self.slack.notifier.name_of = self.name_of
        self.slack.notifier.team_of = self.team_of
        return ApprovalWorker(
            storage=storage,
            directory=self.slack.directory,
            notifier=self.slack.notifier,
            clock=clock,
            owner=self.process.owner,
            wake=self.wake,
            policy=self.policy_now,
            alarm=BreakGlassAlert(
                lambda: self.approvals.votes, self.slack.notices, self.tasks.spawn
            ),
            signs=self.signs,
            batches=self.slack.batches(self._batch_words),
            visited=self._visited,
            consideration=self.preferences,
            answers=self.agent_answers,
            grant=self.grants.complete,
            programs=self.programs,
            pause=self.process.sleep,
        )

    @cached_property
    def signs(self) -> ThreadReactions:
        """Reactions on the first messages of threads."""
        reactions = SlackReactions(self.slack.notifier)
        return ThreadReactions(self.storage.approvals, reactions, self.process.clock)

    @cached_property
    def agent_answers(self) -> AgentAnswers:
        """Answers of agents to questions."""
        return AgentAnswers(
            storage=self.storage,
            clock=self.process.clock,
            explain=self.explanations.answer,
            spawn=self.tasks.spawn,
            attend=self._attend,
            is_halted=self._is_halted,
        )

    async def _is_halted(self, approval: Approval) -> bool:
        """Whether a freeze stops the agent of a call; the call itself may not be frozen."""
        turn = replace(scope_of_approval(approval, ()), tool="")
        return await self.switch.covering(turn, turns=True) is not None

    @cached_property
    def explanations(self) -> Explanations:
        """Asks agents about their calls."""
        return Explanations(agent=self._explainer, log=self.storage.log)

    @cached_property
    def approvals(self) -> Approvals:
        """Use cases of approvals."""
        return Approvals(
            storage=self.storage,
            access=Access(self.slack.directory),
            clock=self.process.clock,
            shows=shows_all,
            attendance=self.attendance,
            policy=self.policy_now,
            freeze_of=self._freeze_of,
        )

    async def _freeze_of(self, approval: Approval) -> Freeze | None:
        """Return the freeze that covers the call of an approval; None without one."""
        scope = scope_of_approval(approval, self._tags.get(approval.tool, ()))
        frozen = await self.switch.covering(scope)
        return frozen.freeze if frozen is not None else None

    @cached_property
    def _tags(self) -> dict[str, tuple[str, ...]]:
        """The tags of all tools, by the names of the tools."""
        tools = world_of(self.roster.agents.values()).tools
        return {tool.name: tool.tags for tool in tools}

    @cached_property
    def freezes(self) -> Freezes:
        """The freezes in force."""
        return Freezes(
            switches=self.storage.switches,
            audit=self.storage.audit,
            clock=self.process.clock,
            team=self.slack.team_id,
        )

    @cached_property
    def freezing(self) -> FreezeRequests:
        """Sets and lifts freezes for people."""
        clock, team_id = self.process.clock, self.slack.team_id
        return FreezeRequests(
            freezes=self.freezes,
            access=FreezeAccess(directory=self.slack.directory, team_id=team_id, clock=clock),
            rights=self._freeze_rights,
            names=names_of(world_of(self.roster.agents.values())),
            waiting=self._parked_threads,
            running=self._running_in,
            noticed=self._notice_freezes,
        )

    async def _running_in(self, scope: FreezeScope) -> Sequence[Approval]:
        return await running_in(self.storage.approvals, scope, self._tags)

    def _notice_freezes(self) -> None:
        self.tasks.spawn(self._look_at_freezes())

    async def _look_at_freezes(self) -> None:
        with suppress(StorageError):  # the scheduler looks again
            await self.freeze_alerts.post_due()
            await self.frozen_cards.update_cards()

    @cached_property
    def freeze_alerts(self) -> FreezeAlerts:
        """Tells people about freezes."""
        return FreezeAlerts(
            freezes=self.freezes,
            notices=self.slack.notices,
            rights=self._freeze_rights,
            spawn=self.tasks.spawn,
        )

    @cached_property
    def frozen_cards(self) -> FrozenCards:
        """Shows freezes on pending cards."""
        return FrozenCards(
            approvals=self.storage.approvals,
            freezes=self.freezes,
            tags=self._tags,
            clock=self.process.clock,
            attend=self._attend,
            spawn=self.tasks.spawn,
            changed=self.homes.changed,
        )

    async def _parked_threads(self) -> int:
        return len(await self.storage.threads.parked())

    def _freeze_rights(self) -> FreezeRights:
        policy = self.process.policy
        return FreezeRights.of(policy.file) if policy is not None else ADMINS_ONLY

    @cached_property
    def grants(self) -> Grants:
        """Standing grants."""
        return Grants(
            storage=self.storage,
            notices=self.slack.notices,
            clock=self.process.clock,
            votes=lambda: self.approvals.votes,
        )

    async def _attend(self, approval_id: str) -> None:
        await self.attendance.attend(approval_id)

    def _attend_soon(self, approval_id: str) -> None:
        self.tasks.spawn(self.attendance.attend(approval_id))

    def _visited(self) -> None:
        self.homes.changed()

    async def _check_call(self, approval: Approval, arguments: dict[str, Any]) -> CheckedCall:
        if isinstance(approval.asker, ProgramCall):
            return CheckedCall(arguments=arguments)  # `judge` compares them with the schema
        return await self.catalog.check_call(approval, arguments)

    async def _batch_words(self, items: Sequence[Approval]) -> BatchWords:
        return await self.catalog.batch_words(items)

    async def _explainer(self, approval: Approval) -> Explains | None:
        if isinstance(approval.asker, ProgramCall):
            return None
        return await self.catalog.explainer(approval)

    @cached_property
    def switch(self) -> StartSwitch:
        """Gives out the numbers of starts."""
        process = self.process
        file = FreezeFile(path=process.freeze_file, clock=process.clock)
        return StartSwitch(self.freezes, file, owner=process.owner)

    @cached_property
    def call_records(self) -> CallRecords:
        """Records the calls of open turns."""
        return CallRecords(
            storage=self.storage,
            clock=self.process.clock,
            redraw=self._attend_soon,
            quick=QUICK_CALL,
        )

    @cached_property
    def calls(self) -> Calls:
        """Starts calls."""
        return Calls(
            storage=self.storage,
            records=self.call_records,
            votes=lambda: self.approvals.votes,
            clock=self.process.clock,
            owner=self.process.owner,
            switch=self.switch,
            redraw=self._attend_soon,
            grants=self._grant_uses(),
            sleep=self.process.sleep,
        )

    def _grant_uses(self) -> GrantUses | None:
        if self.policy is None:
            return None
        lines = UseLines(
            storage=self.storage,
            outbox=self.outbox,
            clock=self.process.clock,
            words=use_words,
            check_call=self._check_call,
        )
        in_force, spawn = self.policy, self.tasks.spawn
        return GrantUses(
            grants=self.grants, lines=lines, file_hash=lambda: in_force().file_hash, spawn=spawn
        )

    @cached_property
    def house(self) -> BotPolicy | None:
        """Judges calls by the policy; None without a policy."""
        if self.policy is None:
            return None
        return BotPolicy(
            storage=self.storage,
            audit=self.storage.audit,
            clock=self.process.clock,
            members=GroupMembers(self.slack.directory, self.process.clock),
            in_force=self.policy,
            grants=GrantCheck(self.grants),
            patience=self.calls.wait,
        )

    @cached_property
    def catalog(self) -> Catalog:
        """The agents and their runners."""
        return Catalog(
            self.roster.agents,
            descriptions=self.roster.descriptions,
            make_runner=self._runner_of,
            checkpoints=self.storage.checkpoints,
            channel_name=self.slack.directory.channel_name,
        )

    def _runner_of(self, agent: Agent) -> Runner:
        return Runner(
            agent,
            checkpoint_store=self.storage.checkpoints,
            message_log=self.storage.log,
            durability="step",
            streaming=True,
            before_start=self.calls.start,
            model_timeout=self.process.model_timeout,
            tool_timeout=self.process.tool_timeout,
            recorder=self.call_records,
            policy=self.house,
            budget=self._budget_of(agent),
            epoch=self.process.epoch,
        )

    def _budget_of(self, agent: Agent) -> AgentBudget | None:
        limits = self.roster.limits.get(agent.name)
        if limits is None:
            return None
        clock, directory = self.process.clock, self.slack.directory
        return AgentBudget(
            agent=agent.name,
            limits=limits,
            threads=self.storage.threads,
            clock=clock,
            timezone=lambda: self.policy_now.timezone,
            terms=LimitTerms(
                storage=self.storage,
                rules=self.rules,
                in_force=self.policy,
                members=GroupMembers(directory, clock),
                admins=directory.admins,
            ),
            tell=self.process.tell,
        )

    @cached_property
    def turns(self) -> Turns:
        """Turns of the agents."""
        process = self.process
        return Turns(
            storage=self.storage,
            runners=self.catalog.runner,
            attendance=self.attendance,
            quorum_check=self.approvals.quorum_check(),
            notifier=self.slack.notifier,
            outbox=self.outbox,
            rules=self.rules,
            clock=process.clock,
            spawn=self.tasks.spawn,
            calls=self.calls,
            call_records=self.call_records,
            halts=TurnHalts(
                switch=self.switch,
                outbox=self.outbox,
                directory=self.slack.directory,
                agent_of=self.catalog.name_of,
                clock=process.clock,
            ),
            tell=process.tell,
            presence=self.presence,
            board=self.task_board,
        )

    @cached_property
    def presence(self) -> Presence:
        """Shows that an agent works."""
        try_call, process = self.slack.notifier.try_call, self.process
        sessions = AgentSessions(try_call)
        return SlackPresence(
            try_call, process.clock, self.tasks.spawn, process.sleep, sessions=sessions
        )

    @cached_property
    def task_board(self) -> TaskBoard:
        """Shows the steps of an agent."""
        return SlackTaskBoard(self.slack.notifier.try_call)

    @cached_property
    def inbox(self) -> ThreadInbox:
        """Routes messages."""
        return ThreadInbox(
            storage=self.storage,
            access=self.approvals.access,
            approvals=self.approvals,
            outbox=self.outbox,
            clock=self.process.clock,
            stop=self.turns.stopping.stop,
            title_of=lambda approval: spoken_title(what_runs(approval)),
            spoken_to=self.catalog.spoken_to,
        )

    @cached_property
    def threads(self) -> Threads:
        """Processes threads."""
        return Threads(
            storage=self.storage,
            inbox=self.inbox,
            turns=self.turns,
            outbox=self.outbox,
            clock=self.process.clock,
            owner=self.process.owner,
            sleep=self.process.sleep,
            beat=self.process.beat,
            summaries=Summaries(self.storage, self.slack.notices, self.process.clock),
            programs=self.programs,
        )

    @cached_property
    def starts(self) -> ThreadStarts:
        """Threads that no person starts."""
        return ThreadStarts(
            storage=self.storage,
            team_id=self.slack.team_id,
            directory=self.slack.directory,
            notices=self.slack.notices,
            switch=self.switch,
            agent_of=self.catalog.agent_of,
            wake=self.wake,
            halt=self.turns.stopping.stop,
            programs=lambda: self.programs,
            holds=self.holds,
            report=self.process.tell,
            clock=self.process.clock,
            owner=self.process.owner,
            spawn=self.tasks.spawn,
        )

    @cached_property
    def holds(self) -> TriggerHolds:
        """Triggers that are held."""
        access = FreezeAccess(
            directory=self.slack.directory, team_id=self.slack.team_id, clock=self.process.clock
        )
        return TriggerHolds(
            storage=self.storage,
            notices=self.slack.notices,
            access=access,
            policy=self._policy_file,
            clock=self.process.clock,
        )

    def _policy_file(self) -> PolicyFile | None:
        return self.process.policy.file if self.process.policy is not None else None

    @cached_property
    def triggers(self) -> AgentTriggers:
        """The webhooks that start agents."""
        return AgentTriggers(entries=self.roster.triggers, starts=self.starts)

    @cached_property
    def schedules(self) -> Schedules:
        """The times at which agents start."""
        return Schedules(entries=self.roster.schedules, starts=self.starts)

    def wake(self, thread_id: str) -> None:
        """Start the work on a thread."""
        self.tasks.spawn(self.threads.work(thread_id))

    async def catch_up(self) -> None:
        """Do what was delayed while Slack refused the app."""
        await self.attendance.catch_up()
        for thread_id in await self.threads.catch_up():
            self.wake(thread_id)

    async def can_see(self, approval: Approval, user_id: str) -> bool:
        """Whether a person may read the whole request now; see `Viewer.can_see`."""
        directory, clock = self.slack.directory, self.process.clock
        viewers = Viewers(directory, self.policy_now, clock, self.storage.delegations)
        actor = Actor(user_id=user_id, team_id="")
        return await viewers.can_see(approval, actor)

    async def name_of(self, slack_id: str) -> str:
        """Return the name of a person, or the handle of a user group.

        Raises:
            DirectoryError: The look-up failed.
        """
        directory = self.slack.directory
        if slack_id.startswith("S"):
            return await directory.group_name(slack_id)
        return (await directory.person(slack_id)).name

    async def team_of(self, user_id: str) -> str:
        """Return a person's workspace; empty if Slack does not say.

        Raises:
            DirectoryError: The look-up failed.
        """
        return (await self.slack.directory.person(user_id)).own_team_id

    @cached_property
    def preferences(self) -> NotificationPreferences:
        """Notification preferences."""
        return NotificationPreferences(
            storage=self.storage,
            access=Access(self.slack.directory),
            policy=self.policy_now,
            clock=self.process.clock,
        )

    @cached_property
    def overviews(self) -> HomeDataReader:
        """Data of a person's Home."""
        return HomeDataReader(
            storage=self.storage,
            directory=self.slack.directory,
            policy=self.policy_now,
            clock=self.process.clock,
        )

    @cached_property
    def homes(self) -> HomeViews:
        """Open Homes, and requested lists."""
        composer = Composer(
            overviews=self.overviews,
            channel_name=self.slack.directory.channel_name,
            name_of=self.name_of,
            admins=self.slack.directory.admins,
            team_id=self.slack.team_id,
            has_slack=lambda: not self.slack.notifier.is_refused,
            freezes=self.freezes.in_force,
            can_connect=self.personal_keys is not None,
        )
        return HomeViews(composer, self.slack.client, self.tasks.spawn)

    @cached_property
    def personal_keys(self) -> PersonalKeys | None:
        """Keys that members make for their own programs; None if they may not."""
        if not self.process.personal_url:
            return None
        return PersonalKeys(
            storage=self.storage,
            directory=self.slack.directory,
            clock=self.process.clock,
            url=self.process.personal_url,
            team_id=self.slack.team_id,
        )

    @cached_property
    def prompts(self) -> SuggestedPrompts:
        """Suggested prompts of the agents."""
        return SuggestedPrompts(self.slack.notifier.try_call, self.roster.offered())

    @cached_property
    def sweep(self) -> DueWork:
        """Finds due work."""
        clock, owner = self.process.clock, self.process.owner
        return DueWork(
            storage=self.storage,
            attendance=self.attendance,
            threads=self.threads,
            outbox=self.outbox,
            clock=clock,
            spawn=self.tasks.spawn,
            retention=self._retention(),
            clocks=ClockWatch(storage=self.storage, clock=clock),
            sealer=Sealer(trail=self.storage.trail, clock=clock, owner=owner),
            grants=self.grants,
            lists=self.homes.refresh,
            parked=ParkedThreads(self.storage.threads, self.switch),
            frozen=self.frozen_cards,
            alerts=self.freeze_alerts,
            starts=self.starts,
            programs=self.programs,
            schedules=self.schedules,
        )

    def _retention(self) -> Retention | None:
        keep, process = self.process.retention, self.process
        if keep is None:
            return None
        forgetting = Forgetting(storage=self.storage, clock=process.clock, owner=process.owner)
        return Retention(forgetting=forgetting, keep=keep)
