"""Execute one tool call at most once, and store its result.

Observers are called when the tool starts, finishes or is interrupted. They are not called for a
result that is read from the journal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NoReturn, cast

from agents.core.address import Segment
from agents.core.asking.answers import Expired, is_unanswered
from agents.core.asking.infos import CallInfo
from agents.core.calls import (
    BreakLoop,
    Exit,
    ToolCall,
    ToolReturn,
    Transfer,
    dump_files,
    load_files,
)
from agents.core.cancel import CancelInfo, stop
from agents.core.codec import Json, decode, encode, well_formed
from agents.core.component.doubts import Doubt, HeldAnswers, acts_on_answer
from agents.core.component.exits import contained
from agents.core.component.legacy import old_interrupts
from agents.core.errors import (
    AgentChangedError,
    AgentError,
    CheckpointDecodeError,
    InvalidArgumentsError,
    NotAnsweredError,
    OutsideRunError,
    ResumeError,
    SwallowedInterruptError,
    ToolError,
)
from agents.core.events import ToolFinished, ToolInterrupted, ToolStarted
from agents.core.interrupt import (
    InterruptSignal,
    merge_unanswered,
    raise_point,
    refuse_orphans,
    unpack_group,
)
from agents.core.journal import FINISHED, STARTED
from agents.core.messages import PlannedCall
from agents.core.observers import FAILURE, ToolOutcome
from agents.core.pending import InterruptNode
from agents.core.scope import Scope, Watch, current_scope, entered
from agents.core.starts import start_call
from agents.core.tools import Tool, layers_of
from agents.policy.house import HOUSE_SLOT, house_of
from agents.tools.doubt import ask_doubt, settle_doubt
from agents.tools.function import result_text
from agents.tools.texts import unanswered_text

logger = logging.getLogger(__name__)

GRACE = timedelta(seconds=5)
"""Time for agents inside a call to stop cleanly, with all they need to resume."""

_ACTED = {ToolOutcome.RAN, ToolOutcome.ANSWERED, ToolOutcome.FAILED}
"""Outcomes of a call whose tool ran."""

_CUT_OFF = f"{FAILURE}It was stopped while it ran. A part of it may have happened."

_LEFT_OUT = "•••• redacted"
"""Stands for a value that a tool declares secret, in its reports and in streamed parts."""

_SHORT = 2
"""Number of characters of a value that is too short to be looked for in a text."""

_STOPPED = "stopped"
"""Slot of a cancelled call."""


class _StoppedError(Exception):
    """The call was cancelled before it had a result.

    Attributes:
        limit: The limit of time that it reached; None if the run was stopped.
    """

    def __init__(self, limit: timedelta | None) -> None:
        super().__init__()
        self.limit = limit


async def execute(
    planned: PlannedCall,
    tools: Mapping[str, Tool],
    *,
    why: str,
    sink: Callable[[str], None] | None = None,
    progress: Callable[[str, float | None], None] | None = None,
    grace: timedelta = GRACE,
) -> ToolReturn:
    """Execute one call in its address segment `tool:<name>:<call id>`.

    An exception of the tool becomes a result for the model, including exceptions that would end the
    process. A call that has finished according to the journal does not run again. If an approved
    call started and never finished, people are asked about it.

    If the run is cancelled (`CancelToken.stop_now`), the call is interrupted at its address. On
    resume it starts again with the answers that it had, or, if an approved call had started, people
    are asked for its outcome.

    Args:
        planned: The call.
        tools: By name.
        why: The model's text beside the call.
        sink: Receives streamed parts of the result, in any thread; None drops them.
        progress: Receives reports of the tool's progress, in any thread; None drops them.
        grace: Time for agents inside the call to stop cleanly.
    """
    call, outer = planned.call, current_scope("execute()")
    address = outer.address.child(Segment("tool", call.name, call.id))
    stopped = outer.run.claim(address, _STOPPED)
    if stopped is not None:  # a cancelled call goes on from its interrupts, with the same answers
        held = decode(stopped.state)
        if not isinstance(held, HeldAnswers):
            raise CheckpointDecodeError(f"the stopped call at {address} lost its state")
        # Before `enter`, which looks up the interrupts that this restores.
        held.restore(outer.run, address)
    scope = replace(
        outer,
        address=address,
        slot="",
        point=outer.run.enter(address, ""),
        watch=Watch(),
        # An outer call's approval must not cover a nested call.
        granted=None,
        why=why,
        sink=sink,
        progress=progress,
    )
    try:
        with entered(scope), contained():
            return await _Execution(call, scope, grace).run(planned, tools)
    except InterruptSignal:
        event = ToolInterrupted(checkpoint_id=scope.run.checkpoint_id, address=address, call=call)
        scope.run.observers.tell(event)
        raise


@dataclass(frozen=True, slots=True)
class _Execution:
    call: ToolCall
    scope: Scope
    grace: timedelta

    async def run(self, planned: PlannedCall, tools: Mapping[str, Tool]) -> ToolReturn:
        """Return the result from the journal, or execute the call."""
        try:
            # The journal of a crashed process first, then the memory of this one: a retry around
            # the call must not run it again.
            before = self.scope.run.journaled(FINISHED, self.at)
            if before:
                return self._known(before)
            match self.scope.run.journal.kept(FINISHED, self.at):
                case (ToolCall() as call, ToolReturn() as result) if call == self.call:
                    return result
                case _:
                    return await self._new(planned, tools)
        except ResumeError as error:
            # The answer was refused: keep the interrupts pending and report the error.
            point = self.scope.run.topmost(self.scope.address)
            if point is None:
                raise
            raise_point(point, error)

    @property
    def at(self) -> str:
        """Return the address as text."""
        return str(self.scope.address)

    def _known(self, entry: dict[str, Json]) -> ToolReturn:
        action = decode(entry.get("action"))
        if not isinstance(action, Transfer | Exit | BreakLoop | None):
            raise CheckpointDecodeError(f"the result of {self.at} has a damaged action")
        files = load_files(entry["files"]) if "files" in entry else ()
        return ToolReturn(str(entry["text"]), ToolOutcome(str(entry["outcome"])), action, files)

    async def _new(self, planned: PlannedCall, tools: Mapping[str, Tool]) -> ToolReturn:
        tool, journal = tools.get(self.call.name), self.scope.run.journal
        was_answered = self.scope.run.is_answered(self.scope.address)
        # A call that has started is in doubt: "no such tool" would be a wrong result.
        if tool is None and journal.find(STARTED, self.at) is not None:
            raise AgentChangedError(self.at, "a tool that has started", "no such tool")
        if tool is None or planned.problem:
            result = _refused(planned, tools)
        else:
            result = await self._run(tool)
        # No store and no model accepts half of a surrogate pair.
        result = replace(result, text=well_formed(result.text))
        # A call that acted on an answer must not receive an answer a second time.
        has_acted = was_answered and result.outcome in _ACTED
        if journal.every_step or journal.has_started(self.at) or has_acted:
            await self._note(result)
        finished = ToolFinished(
            checkpoint_id=self.scope.run.checkpoint_id,
            address=self.scope.address,
            call=self.call,
            outcome=result.outcome,
        )
        self.scope.run.observers.tell(finished)
        return result

    async def _note(self, result: ToolReturn) -> None:
        run = self.scope.run
        note: dict[str, Json] = {"text": result.text, "outcome": str(result.outcome)}
        if result.said:
            note["said"] = well_formed(result.said)
        if result.action is not None:
            note["action"] = encode(result.action)
        if result.files:
            note["files"] = dump_files(result.files)
        await run.journal_result(FINISHED, self.at, note)
        # A retry in this process must not run a gated call again.
        if run.journal.has_started(self.at):
            run.journal.keep(FINISHED, self.at, (self.call, result))

    async def _run(self, tool: Tool) -> ToolReturn:
        settled = await settle_doubt(tool, self.call)
        if isinstance(settled, ToolReturn):
            return settled
        scope = self.scope
        if settled is not None:
            info = settled.info
            scope = replace(
                scope, granted=info.arguments, granted_by=settled.granted_by, frozen=info.frozen
            )
        try:
            arguments = settled.info.arguments if settled else self._shown(tool)
        except InvalidArgumentsError as error:
            return _misfit(tool, error)
        run = self.scope.run
        # A cancelled run can still read the results of nested calls from the journal.
        if run.cancel.is_urgent and not run.journal.knows_below(self.at):
            await self._stand(tool, arguments)
        started = ToolStarted(
            checkpoint_id=run.checkpoint_id, address=self.scope.address, call=self.call
        )
        house = house_of(run.house)
        with entered(scope):
            guarded = house.guard(tool) if house else tool
        is_free = guarded is tool and not tool.definition.gates
        if is_free:  # no gate: only the tool itself may ask
            scope = self._with_its_answers(scope, settled)
        refuse_orphans(len(tool.definition.gates), known=(HOUSE_SLOT,) if house else ())
        run.observers.tell(started)
        with entered(scope):
            repeats = tool.definition.idempotent
            if is_free and not repeats and acts_on_answer(run, self.scope.address):
                # A call without a gate acts on an answer at most once, too.
                refused = await start_call(
                    tool.definition, arguments, decisions=scope.granted_by, is_answered=True
                )
                if refused is not None:
                    return _failed(ToolError(f"it did not run: {refused.reason}"))
            return await self._call(guarded, arguments, is_free=is_free)

    def _with_its_answers(self, scope: Scope, settled: Doubt | None) -> Scope:
        """Make the answers of an earlier start available to a call that runs again."""
        if settled is None or settled.held is None:
            return replace(scope, granted=None)
        settled.held.restore(scope.run, scope.address)
        return replace(scope, granted=None, point=scope.run.enter(scope.address, ""))

    def _shown(self, tool: Tool) -> dict[str, Json]:
        """Return the arguments that were started or shown before, else the validated ones.

        Defaults and validators may have changed since. Arguments that people have not seen must not
        replace the ones that they saw.
        """
        run, address = self.scope.run, self.scope.address
        started = run.journal.find(STARTED, self.at)
        if started is not None:
            return cast("dict[str, Json]", started["arguments"])
        top = run.topmost(address)
        for point in top.walk() if top is not None else ():
            if point.address == address and isinstance(point.info, CallInfo):
                return dict(point.info.arguments)
        return tool.validate(self.call.arguments)

    async def _call(self, tool: Tool, arguments: dict[str, Json], *, is_free: bool) -> ToolReturn:
        """Call the tool and convert its exceptions to results."""
        scope = self.scope
        failed: ToolReturn | None = None
        returned: object = ""
        try:
            returned = await self._until_stopped(tool, arguments, is_free=is_free)
        except _StoppedError as stopped:
            # After a failed write, another process may own this run: stop it instead of
            # interrupting.
            scope.run.journal.raise_failure()
            failed = await self._cut_off(tool, arguments, stopped.limit, is_free=is_free)
        except Exception as raised:
            error = merge_unanswered(raised)
            if not self._is_result(tool, error):
                raise
            failed = self._unanswered(error) or self._failed(tool, arguments, error)
        except BaseExceptionGroup as group:
            # From the tool's own task group: pass its interrupts on as one.
            return _failed(unpack_group(group))
        # The tool may have caught the error of a failed write.
        scope.run.journal.raise_failure()
        # The tool caught an interrupt signal: people were not asked, so the result is void.
        if scope.watch.raised:
            return _failed(SwallowedInterruptError(self.at))
        if failed is not None:
            return failed
        return returned if isinstance(returned, ToolReturn) else ToolReturn(result_text(returned))

    async def _cut_off(
        self, tool: Tool, arguments: dict[str, Json], limit: timedelta | None, *, is_free: bool
    ) -> ToolReturn:
        """Interrupt a call that was cut off, or return its failure for the model."""
        if limit is None:
            if self.scope.run.cancel.mode == "now" or not self._has_begun(is_free=is_free):
                await self._stand(tool, arguments)
            return ToolReturn(_CUT_OFF, ToolOutcome.FAILED)
        seconds = limit.total_seconds()
        logger.warning("the tool %r reached its limit of %g seconds", self.call.name, seconds)
        await self._ask_if_doubt(tool, arguments, limit=limit)
        text = (
            f"It did not finish within its limit of {seconds:g} seconds. It may have taken effect."
        )
        return ToolReturn(f"{FAILURE}{text}", ToolOutcome.FAILED)

    def _failed(self, tool: Tool, arguments: Mapping[str, Json], error: Exception) -> ToolReturn:
        """Return the result of a call that raised; at debug, the log has the traceback.

        A traceback quotes what the tool worked on, so it stands in no log above debug.
        """
        logger.warning(
            "the tool %r raised %s in the call %s of the run %r; set the log level to debug for "
            "the traceback",
            self.call.name,
            type(error).__name__,
            self.at,
            self.scope.run.checkpoint_id,
        )
        logger.debug(
            "the traceback of the tool %r",
            self.call.name,
            exc_info=error,
            extra={"secret_values": _declared_secret(tool, arguments)},
        )
        return _failed(error)

    def _unanswered(self, error: Exception) -> ToolReturn | None:
        """Return the result of a call whose request had no answer; None for other errors."""
        outcome = error.outcome if isinstance(error, NotAnsweredError) else None
        if not is_unanswered(outcome):
            return None
        run = self.scope.run
        top = run.topmost(self.scope.address)
        # The call ended at the first request without an answer, so it read no others.
        ids = [point.id for point in top.walk()] if top else []
        run.read.update(point_id for point_id in ids if is_unanswered(run.answers.get(point_id)))
        is_expired = isinstance(outcome, Expired)
        end = ToolOutcome.EXPIRED if is_expired else ToolOutcome.CANCELLED
        return ToolReturn(unanswered_text(outcome), end)

    def _is_result(self, tool: Tool, error: Exception) -> bool:
        """Whether an error is the tool's own and becomes a result for the model.

        An error of a gate before an answered call has started is not: the answer must stay valid
        for a retry of the run.
        """
        run = self.scope.run
        started = run.journal.started(self.at)
        has_started = started is not None
        if isinstance(error, ResumeError):
            # A tool that asked may refuse the answer: its interrupt then stays pending.
            return started is not None and "answered" not in started
        # A bare thread of the tool does not know the run: the tool's own fault.
        if isinstance(error, AgentError) and not isinstance(error, OutsideRunError):
            return isinstance(error, ToolError)
        is_let = bool(tool.definition.gates) and run.is_answered(self.scope.address)
        return has_started or not is_let

    async def _until_stopped(
        self, tool: Tool, arguments: dict[str, Json], *, is_free: bool
    ) -> object:
        """Call a tool in a task of its own, to tell its own cancellation from the run's."""
        cancel, ended = self.scope.run.cancel, asyncio.Event()
        with entered(_without_values(current_scope("call"), _declared_secret(tool, arguments))):
            call = asyncio.create_task(_begin(tool, arguments))
        call.add_done_callback(lambda _: ended.set())
        is_ours, is_late = False, False
        *_, inner = layers_of(tool)
        # The default is not for tools that run agents.
        default = None if hasattr(inner, "components") else self.scope.run.tool_timeout
        limit, begun_at = tool.definition.timeout or default, asyncio.get_running_loop().time()
        try:
            with cancel.calling(ended.set):
                while not (is_ours or is_late or call.done()):
                    if await self._waited(ended, limit, begun_at if is_free else None):
                        is_ours = not call.done() and await self._stop(call, tool, is_free=is_free)
                    else:
                        is_late = not call.done()
            if is_late:
                async with self.scope.run.journal.quiet():
                    call.cancel()
                # A tool may catch its cancellation: the run does not wait for that.
                await stop(call, patience=self.grace)
        finally:
            if not is_late:
                await stop(call)
        if call.done() and not call.cancelled():
            return call.result()
        if is_ours or is_late:
            raise _StoppedError(limit if is_late else None)
        raise ToolError("it was cancelled, and nobody had stopped the run")

    async def _waited(
        self, ended: asyncio.Event, limit: timedelta | None, begun_at: float | None
    ) -> bool:
        """Wait for the end of a call or a stop of the run; return False at the limit of time.

        The time of gates does not count: without `begun_at`, it begins with the stored start.
        """
        loop, journal = asyncio.get_running_loop(), self.scope.run.journal
        while True:
            start = begun_at if begun_at is not None else journal.started_at(self.at)
            until = (start or loop.time()) + limit.total_seconds() if limit is not None else None
            try:
                async with asyncio.timeout_at(until):
                    await ended.wait()
            except TimeoutError:
                if start is not None:
                    return False
            else:
                ended.clear()
                return True

    async def _stop(self, call: asyncio.Task[object], tool: Tool, *, is_free: bool) -> bool:
        """Cancel a call; return False if it has started and a person's stop lets it finish."""
        mode = self.scope.run.cancel.mode
        if mode == "now" and self._has_agents():
            # Nested agents get time to reach a safe point, so that they repeat no work on resume.
            await asyncio.wait({call}, timeout=self.grace.total_seconds())
        # A cancelled write would leave unknown whether its entry exists.
        async with self.scope.run.journal.quiet():
            is_cut = mode == "now" or (mode == "finish_tools" and tool.definition.cancellable)
            if not is_cut and self._has_begun(is_free=is_free):
                return False
            call.cancel()
        return True

    def _has_begun(self, *, is_free: bool) -> bool:
        """Whether the tool itself runs, or agents inside of it, and not only its gates."""
        return is_free or self.scope.run.journal.has_started(self.at) or self._has_agents()

    def _has_agents(self) -> bool:
        run, prefix = self.scope.run, f"{self.at};"
        below = any(key.startswith(prefix) for key in run.counts)
        return below or any(map(self.scope.address.is_prefix_of, run.entered))

    async def _stand(self, tool: Tool, arguments: dict[str, Json]) -> NoReturn:
        """Interrupt a cancelled call; ask people if an approved call had started."""
        await self._ask_if_doubt(tool, arguments)
        run, address = self.scope.run, self.scope.address
        before, held = run.topmost(address), HeldAnswers.at(run, address)
        # The interrupt stores these answers, so they count as used.
        run.read.update(held.answers)
        point = InterruptNode(
            id=run.new_id(),
            address=address,
            slot=_STOPPED,
            info=CancelInfo(mode=run.cancel.mode or "now"),
            state=encode(held),
            children=_unanswered(before, held.answers) if before else (),
        )
        raise_point(point)

    async def _ask_if_doubt(
        self, tool: Tool, arguments: dict[str, Json], *, limit: timedelta | None = None
    ) -> None:
        """Ask people for the outcome of a cut-off call if an approved call had started."""
        journal = self.scope.run.journal
        started = journal.started(self.at)
        is_doubt = started is not None and not tool.definition.idempotent
        if is_doubt or journal.has_started_below(self.at):
            await ask_doubt(tool, self.call, started or {"arguments": arguments}, limit=limit)


async def _begin(tool: Tool, arguments: dict[str, Json]) -> object:
    with contained(), old_interrupts():
        return await tool.call(arguments)


def _declared_secret(tool: Tool, arguments: Mapping[str, Json]) -> list[str]:
    """Return the values of the arguments that the tool declares secret, the longest first."""
    given = [arguments.get(name) for name in tool.definition.secret]
    return sorted({text for value in given for text in _texts(value)}, key=len, reverse=True)


def _texts(value: Json) -> Iterator[str]:
    match value:
        case dict():
            yield from (text for item in value.values() for text in _texts(item))
        case list():
            yield from (text for item in value for text in _texts(item))
        case bool() | None:
            pass
        case _ if len(str(value)) > _SHORT:
            yield str(value)


def _without_values(scope: Scope, values: Sequence[str]) -> Scope:
    """Return the scope with reports and streamed parts that leave out some values."""
    if not values:
        return scope
    sink, progress = scope.sink, scope.progress

    def without(text: str) -> str:
        for value in values:
            text = text.replace(value, _LEFT_OUT)
        return text

    return replace(
        scope,
        sink=sink and (lambda text: sink(without(text))),
        progress=progress and (lambda text, fraction: progress(without(text), fraction)),
    )


def _unanswered(point: InterruptNode, answers: Mapping[str, object]) -> tuple[InterruptNode, ...]:
    """Return the parts of a tree that have no answer."""
    if not point.children:
        return () if point.id in answers else (point,)
    below = tuple(left for child in point.children for left in _unanswered(child, answers))
    return (replace(point, children=below),) if below else ()


def _failed(error: Exception) -> ToolReturn:
    text = f"{FAILURE}{type(error).__name__}: {error}".rstrip(": ")
    return ToolReturn(text, ToolOutcome.FAILED)


def _refused(planned: PlannedCall, tools: Mapping[str, Tool]) -> ToolReturn:
    name = planned.call.name
    if name not in tools:
        known = ", ".join(sorted(tools)) or "none"
        text = f"There is no tool {name!r}; nothing ran. Tools that exist: {known}."
    else:
        text = f"The call to {name!r} was refused, nothing ran: {planned.problem}."
        text += f" It takes: {_fields(tools[name])}."
    return ToolReturn(text, ToolOutcome.REFUSED)


def _misfit(tool: Tool, error: InvalidArgumentsError) -> ToolReturn:
    text = f"The call to {tool.definition.name!r} was refused, nothing ran: {error}."
    return ToolReturn(f"{text} It takes: {_fields(tool)}.", ToolOutcome.REFUSED)


def _fields(tool: Tool) -> str:
    known = tool.definition.schema.get("properties")
    return ", ".join(known) if isinstance(known, dict) and known else "no arguments"
