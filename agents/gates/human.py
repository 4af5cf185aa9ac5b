"""The human gate: people accept, ignore, respond to or edit a call.

The names and the wire form are those of LangGraph's agent inbox and of gographgo's prebuilt agent.
What a configuration does not allow is refused here, and whatever is missing or malformed runs
nothing; there, it ran the call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from agents.core.asking.answers import Cancelled, Expired, check_texts, check_voters
from agents.core.asking.infos import CallInfo, wrong_answer
from agents.core.calls import ToolReturn
from agents.core.codec import Json, register
from agents.core.errors import AgentConfigError, ResumeDataError
from agents.core.observers import ToolOutcome
from agents.gates.base import DEFAULT_RULE, CallGate
from agents.policy.base import Ask, PolicyCall
from agents.tools.base import Tool
from agents.tools.texts import ignored_text

ResponseType = Literal["accept", "ignore", "response", "edit"]
_TYPES: tuple[ResponseType, ...] = get_args(ResponseType)


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanInterruptConfig:
    """The answers that people may give to a call of a tool.

    Attributes:
        allow_accept: It may run as it is.
        allow_ignore: It does not run, and the model is told so.
        allow_respond: It does not run, and the model is told what the person says in its place.
        allow_edit: It may run with other arguments.
        description: What people read; a text, or a function of the call. Empty names the tool and
            its arguments.
        when: Whether people are asked about a call; it is called once for each. None asks always,
            and so does an error, or anything but False.

    Raises:
        AgentConfigError: Nothing is allowed.
    """

    allow_accept: bool = True
    allow_ignore: bool = True
    allow_respond: bool = True
    allow_edit: bool = True
    description: str | Callable[[PolicyCall], str] = ""
    when: Callable[[PolicyCall], bool] | None = None

    def __post_init__(self) -> None:
        if not self.allowed:
            raise AgentConfigError("a HumanInterruptConfig has to allow at least one answer")

    @property
    def allowed(self) -> tuple[ResponseType, ...]:
        """Types of responses that are allowed."""
        flags = (self.allow_accept, self.allow_ignore, self.allow_respond, self.allow_edit)
        return tuple(one for one, flag in zip(_TYPES, flags, strict=True) if flag is True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRequest:
    """An agent's wish to call a tool.

    Attributes:
        action: Name of the tool.
        args: Its arguments.
    """

    action: str
    args: dict[str, Json]


@register("countersign.human_response/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class HumanResponse:
    """A person's answer to a call; made by `accept`, `ignore`, `respond` and `edit`.

    Stored: version 1, must stay readable.

    Attributes:
        type: Which of them.
        args: None for `ignore`; the text for `response`; for `edit` all arguments, as
            `{"action": tool, "args": {…}}`, where an empty action is the tool that was asked about;
            for `accept` None, or what was shown, in the same form.
        digest: What the person was shown, or wants to run; compared when it is given. Whoever
            shows questions and takes answers at different times, as a bot does, always gives it.
        by: Who decided.
        ruling: For `edit`: the ruling that the arguments were approved under, when it is another
            than that of the question; see `CallInfo.ruling`.
        edited_by: For `edit`: who edited last, when somebody else decided.
        voters: All who were counted for it, where several had to be.
        editors: For `edit`: who edited before that, and so made a part of the arguments.
    """

    type: ResponseType
    args: Json = None
    digest: str | None = None
    by: str | None = None
    ruling: str | None = None
    edited_by: str | None = None
    voters: tuple[str, ...] = ()
    editors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_voters(self.voters)
        check_voters(self.editors, "editors")
        check_texts(self, "digest", "by", "ruling", "edited_by", optional=True)
        fault = _fault(self.type, self.args)
        if fault:
            raise ValueError(fault)

    @property
    def request(self) -> ActionRequest | None:
        """The call that runs because of this answer; None when none does."""
        if not isinstance(self.args, dict):
            return None
        args = cast("dict[str, Json]", self.args["args"])
        return ActionRequest(action=cast("str", self.args["action"]), args=args)

    @classmethod
    def read(cls, answer: object) -> HumanResponse:
        """Read a response, or its wire form `{"type": …, "args": …}`.

        Raises:
            ResumeDataError: It is neither, or malformed.
        """
        if isinstance(answer, HumanResponse):
            return answer
        if not isinstance(answer, dict):
            raise wrong_answer("the call", answer, "HumanResponse")
        unknown = sorted(str(key) for key in answer if key not in {"type", "args"})
        if unknown or "type" not in answer:
            fault = f"unknown keys: {', '.join(unknown)}" if unknown else "no type"
            raise ResumeDataError(f"the response is malformed: {fault}; nothing ran")
        try:
            return cls(type=answer["type"], args=answer.get("args"))
        except ValueError as error:
            raise ResumeDataError(f"the response is malformed: {error}; nothing ran") from error


def accept(*, digest: str | None = None, by: str | None = None) -> HumanResponse:
    """Let the call run as it was shown."""
    return HumanResponse(type="accept", digest=digest, by=by)


def ignore(*, by: str | None = None) -> HumanResponse:
    """Put the call aside: it does not run."""
    return HumanResponse(type="ignore", by=by)


def respond(text: str, *, by: str | None = None) -> HumanResponse:
    """Tell the model something in place of the tool's result; the call does not run.

    Raises:
        ValueError: The text is empty.
    """
    return HumanResponse(type="response", args=text, by=by)


def edit(
    args: Mapping[str, Json], *, action: str = "", digest: str | None = None, by: str | None = None
) -> HumanResponse:
    """Let the call run with other arguments.

    Args:
        args: All of them, changed or not.
        action: The tool; it must be the one that was asked about.
        digest: Digest of the edited call; see `HumanInterrupt.edit`.
        by: Who decided.
    """
    request: dict[str, Json] = {"action": action, "args": dict(args)}
    return HumanResponse(type="edit", args=request, digest=digest, by=by)


@register("countersign.human_interrupt/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class HumanInterrupt(CallInfo):
    """Asks what to do with a call. Stored: version 1, must stay readable.

    Attributes:
        allowed: Types of responses that are taken.
        description: What people read.
    """

    allowed: tuple[ResponseType, ...]
    description: str

    def __str__(self) -> str:
        return f"{self.description}\n\nAnswer with one of: {', '.join(self.allowed)}."

    @property
    def action_request(self) -> ActionRequest:
        """The agent's wish: the tool and its arguments."""
        return ActionRequest(action=self.tool_name, args=self.arguments)

    @property
    def config(self) -> HumanInterruptConfig:
        """The answers that people may give."""
        return HumanInterruptConfig(
            allow_accept="accept" in self.allowed,
            allow_ignore="ignore" in self.allowed,
            allow_respond="response" in self.allowed,
            allow_edit="edit" in self.allowed,
            description=self.description,
        )

    def accept(self, *, by: str | None = None) -> HumanResponse:
        """Let the call run as it is shown here."""
        return accept(digest=self.digest, by=by)

    def ignore(self, *, by: str | None = None) -> HumanResponse:
        """Put the call aside: it does not run."""
        return ignore(by=by)

    def respond(self, text: str, *, by: str | None = None) -> HumanResponse:
        """Tell the model something in place of the tool's result; the call does not run."""
        return respond(text, by=by)

    def edit(self, args: Mapping[str, Json], *, by: str | None = None) -> HumanResponse:
        """Let the call run with these arguments; all must be given, changed or not."""
        return edit(args, action=self.tool_name, digest=self.digest_of(args), by=by)

    def check_answer(self, answer: object) -> None:
        """Refuse an answer that does not belong to this question.

        Whether edited arguments fit the tool is checked by the gate.

        Raises:
            ResumeDataError: It is malformed, not allowed, about another tool, or not about what was
                shown.
        """
        if isinstance(answer, Expired | Cancelled):
            return
        response = HumanResponse.read(answer)
        if response.type not in self.allowed:
            raise ResumeDataError(
                f"{response.type!r} is not allowed for {self.tool_name!r}; "
                f"allowed are: {', '.join(self.allowed)}; nothing ran"
            )
        if response.type in {"accept", "edit"}:
            self._check_request(response)

    def _check_request(self, response: HumanResponse) -> None:
        request = response.request or self.action_request
        if request.action not in {"", self.tool_name}:
            raise ResumeDataError(
                f"a response cannot switch tools: {self.tool_name!r} was asked about, "
                f"not {request.action!r}; nothing ran"
            )
        digest = self.digest_of(request.args, ruling=response.ruling)
        if response.digest is not None:
            self.check_digest(response.digest, digest)
        if response.type == "accept":
            self.check_digest(digest, self.digest)


@dataclass(frozen=True, slots=True)
class HumanGate(CallGate):
    """A tool that runs only after a person has accepted or edited the call.

    Attributes:
        config: What people may answer, and when they are asked.
        rule: Name of the rule that asks; a part of the digest.
    """

    config: HumanInterruptConfig
    rule: str = DEFAULT_RULE

    @property
    def gate_name(self) -> str:
        """See `CallGate`."""
        return "human"

    async def _question(self, arguments: dict[str, Json]) -> CallInfo | None:
        call = self._policy_call(arguments)
        if not _asks(self.config, call):
            return None
        return HumanInterrupt(
            **self._shown(arguments, self.rule),
            allowed=self.config.allowed,
            description=_description(self.config, call),
        )

    def _declined(self, info: CallInfo, answer: object) -> ToolReturn | None:
        response = HumanResponse.read(answer)
        match response.type:
            case "ignore":
                return ToolReturn(ignored_text(info.tool_name), ToolOutcome.REJECTED)
            case "response":
                return ToolReturn(cast("str", response.args), ToolOutcome.ANSWERED)
            case _:
                return None

    def _wanted(
        self,
        info: CallInfo,  # noqa: ARG002 - see CallGate
        answer: object,
        arguments: dict[str, Json],
    ) -> dict[str, Json]:
        response = HumanResponse.read(answer)
        if response.type == "edit" and response.request is not None:
            return self._checked(response.request.args)
        return arguments

    def _narrowed(self, info: CallInfo, ask: Ask) -> CallInfo:
        if ask.kind == "review" or not isinstance(info, HumanInterrupt):
            return info
        return replace(info, allowed=tuple(one for one in info.allowed if one != "edit"))

    def _rule_of(self, info: CallInfo | None) -> str:  # noqa: ARG002 - see CallGate
        return self.rule


def human_gate(tool: Tool, config: HumanInterruptConfig, *, rule: str = DEFAULT_RULE) -> Tool:
    """Let a tool run only after a person has accepted or edited the call.

    Args:
        tool: The tool in it; any tool, also one that asks people itself.
        config: What people may answer, and when they are asked.
        rule: Name of the rule that asks.
    """
    return HumanGate(tool, config, rule)


def _fault(kind: object, args: object) -> str:
    """Return the fault of a response; empty when it has none."""
    match kind:
        case "accept":
            is_fine = args is None or _is_request(args)
            wanted = "nothing, or what was shown: {action, args}"
        case "ignore":
            is_fine, wanted = args is None, "nothing"
        case "response":
            is_fine = isinstance(args, str) and bool(args.strip())
            wanted = "a text"
        case "edit":
            is_fine, wanted = _is_request(args), "{action, args} with all arguments"
        case _:
            return f"its type is {kind!r}; use one of {', '.join(_TYPES)}"
    return "" if is_fine else f"{kind!r} takes as args: {wanted}"


def _is_request(args: object) -> bool:
    return (
        isinstance(args, dict)
        and set(args) == {"action", "args"}
        and isinstance(args["action"], str)
        and isinstance(args["args"], dict)
        and all(isinstance(name, str) for name in args["args"])
    )


def _asks(config: HumanInterruptConfig, call: PolicyCall) -> bool:
    if config.when is None:
        return True
    try:
        return config.when(call) is not False
    except Exception:  # noqa: BLE001 - whatever went wrong, people are asked
        return True


def _description(config: HumanInterruptConfig, call: PolicyCall) -> str:
    text: object = config.description
    if callable(text):
        try:
            text = text(call)
        except Exception:  # noqa: BLE001 - a text that cannot be made is no reason not to ask
            text = ""
    if isinstance(text, str) and text.strip():
        return text
    args = json.dumps(call.arguments, ensure_ascii=False, sort_keys=True)
    return f"Tool execution requires approval\n\nTool: {call.tool}\nArgs: {args}"
