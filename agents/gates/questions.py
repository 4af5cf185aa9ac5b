"""Further requests: choose from options, complete arguments, give feedback.

See `agents.core.asking.infos` for the common part of all infos.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agents.core.asking.answers import Cancelled, Expired, check_bools, check_texts
from agents.core.asking.infos import CallInfo, wrong_answer
from agents.core.codec import Json, register
from agents.core.errors import ResumeDataError


@register("countersign.choice/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of several options. Stored: version 1, must stay readable.

    Attributes:
        id: Unique among the options; used by answers.
        label: Label for people, one line.
        description: Explanation; may be empty.
        value: Value for a tool, JSON data; None means the id.
    """

    id: str
    label: str
    description: str = ""
    value: Json = None

    def __str__(self) -> str:
        return f"{self.label}: {self.description}" if self.description else self.label


@register("countersign.choice_result/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceResult:
    """A choice among options. Stored: version 1, must stay readable.

    Attributes:
        selected: Ids of options, in the order of the options.
        declined: No option was chosen; `selected` is then empty.
        reason: Why no option was chosen.
        digest: Digest of the call with the chosen argument, if a call depends on the choice.
        by: Who decided.
    """

    selected: tuple[str, ...] = ()
    declined: bool = False
    reason: str | None = None
    digest: str | None = None
    by: str | None = None

    def __post_init__(self) -> None:
        check_bools(self, "declined")
        check_texts(self, "reason", "digest", "by", optional=True)
        selected: object = self.selected  # stored answers are read without type checks
        if not isinstance(selected, tuple) or not all(
            isinstance(choice, str) for choice in selected
        ):
            raise TypeError("selected must be a tuple of texts")
        if self.declined and self.selected:
            raise ValueError("an answer cannot choose options and decline them all")


@register("countersign.choice_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceInfo:
    """Asks people to choose from options. No call depends on the answer.

    Stored: version 1, must stay readable.

    Attributes:
        question: The question for people.
        options: At least one, with distinct ids.
        multiple: Whether several can be chosen.
    """

    question: str
    options: tuple[Choice, ...]
    multiple: bool = False

    def __str__(self) -> str:
        return _listed(self.question, self.options)

    def choose(self, *ids: str, by: str | None = None) -> ChoiceResult:
        """Choose options.

        Raises:
            ResumeDataError: An id is unknown, or the number of ids is wrong.
        """
        return ChoiceResult(selected=ids_in_order(self, ids), by=by)

    def reject(self, reason: str | None = None, *, by: str | None = None) -> ChoiceResult:
        """Choose no option."""
        return ChoiceResult(declined=True, reason=reason, by=by)

    def check_answer(self, answer: object) -> None:
        """Refuse an answer that does not fit this request.

        Raises:
            ResumeDataError: The answer has the wrong type, no option, or an unknown one.
        """
        match answer:
            case ChoiceResult(declined=False):
                ids_in_order(self, answer.selected)
            case ChoiceResult() | Expired() | Cancelled():
                pass
            case _:
                raise wrong_answer("the question", answer, "ChoiceResult")


@register("countersign.call_choice_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class CallChoiceInfo(CallInfo):
    """Asks people to choose an argument of a call, which then runs.

    Stored: version 1, must stay readable.

    Attributes:
        question: The question for people.
        options: At least one, with distinct ids.
        multiple: Whether several can be chosen.
        parameter: Name of the argument. A value by the model is a suggestion.
    """

    question: str
    options: tuple[Choice, ...]
    parameter: str
    multiple: bool = False

    def __str__(self) -> str:
        return _listed(f"{self.title}: {self.question}", self.options)

    def chosen(self, ids: Sequence[str]) -> dict[str, Json]:
        """Return the arguments of the call with these options.

        Raises:
            ResumeDataError: An id is unknown, or the number of ids is wrong.
        """
        wanted = ids_in_order(self, ids)
        values = [_value(option) for option in self.options if option.id in wanted]
        return {**self.arguments, self.parameter: values if self.multiple else values[0]}

    def choose(self, *ids: str, by: str | None = None) -> ChoiceResult:
        """Approve the call with these options.

        Raises:
            ResumeDataError: An id is unknown, or the number of ids is wrong.
        """
        digest = self.digest_of(self.chosen(ids))
        return ChoiceResult(selected=ids_in_order(self, ids), digest=digest, by=by)

    def reject(self, reason: str | None = None, *, by: str | None = None) -> ChoiceResult:
        """Reject the call."""
        return ChoiceResult(declined=True, reason=reason, digest=self.digest, by=by)

    def check_answer(self, answer: object) -> None:
        """Refuse an answer that does not fit this request.

        Raises:
            ResumeDataError: The answer has the wrong type, no option or an unknown one, or the
                digest of another call.
        """
        match answer:
            case ChoiceResult(declined=False):
                self.check_digest(answer.digest, self.digest_of(self.chosen(answer.selected)))
            case ChoiceResult() | Expired() | Cancelled():
                pass
            case _:
                raise wrong_answer(self.tool_name, answer, "ChoiceResult")


@register("countersign.parameters_result/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ParametersResult:
    """Arguments that people filled in. Stored: version 1, must stay readable.

    Attributes:
        values: By name: exactly the requested ones.
        digest: Digest of the call with all arguments.
        by: Who filled them in.
    """

    values: dict[str, Json]
    digest: str | None = None
    by: str | None = None

    def __post_init__(self) -> None:
        check_texts(self, "digest", "by", optional=True)
        if not isinstance(self.values, dict):
            raise TypeError("values must be a dict")


@register("countersign.parameters_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ParametersInfo(CallInfo):
    """Asks people for arguments that the model omitted; then the call runs.

    `arguments` contains the model's arguments and defaults. Stored: version 1, must stay readable.

    Attributes:
        missing: JSON schemas of the requested arguments by name; at least one.
    """

    missing: dict[str, Json]

    def __str__(self) -> str:
        lines = [f"- {name}{_described(schema)}" for name, schema in self.missing.items()]
        return "\n".join([f"{self.title}: what are the missing arguments?", *lines])

    def complete(self, values: Mapping[str, Json], *, by: str | None = None) -> ParametersResult:
        """Approve the call with these values for the missing arguments."""
        given = dict(values)
        digest = self.digest_of({**self.arguments, **given})
        return ParametersResult(values=given, digest=digest, by=by)

    def check_answer(self, answer: object) -> None:
        """Refuse an answer that does not fit this request.

        The gate checks whether the values fit the tool.

        Raises:
            ResumeDataError: The answer has the wrong type, other values than the requested ones, or
                the digest of another call.
        """
        match answer:
            case ParametersResult(values=values):
                if set(values) != set(self.missing):
                    raise ResumeDataError(
                        f"{self.tool_name!r} needs {', '.join(self.missing)}, and nothing else; "
                        f"got {', '.join(values) or 'nothing'}"
                    )
                self.check_digest(answer.digest, self.digest_of({**self.arguments, **values}))
            case Expired() | Cancelled():
                pass
            case _:
                raise wrong_answer(self.tool_name, answer, "ParametersResult")


@register("countersign.feedback_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackInfo:
    """Asks for feedback on a text. The answer is a text, or this info with `feedback`.

    Stored: version 1, must stay readable.

    Attributes:
        original_content: The text. Untrusted.
        feedback: What to change; None in a request.
        no_need_to_edit: Nothing needs to change. Takes precedence over `feedback`.
        title: Title of the text, such as “Poem about potatoes”; may be empty.
        version: Number of this request about the text; starts at 1.
        previous: The previous version of the text; None in the first request.
        wanted: The feedback on the previous version. Untrusted.
    """

    original_content: str
    feedback: str | None = None
    no_need_to_edit: bool = False
    title: str = ""
    version: int = 1
    previous: str | None = None
    wanted: str | None = None

    def __post_init__(self) -> None:
        check_bools(self, "no_need_to_edit")
        check_texts(self, "original_content", "title")
        check_texts(self, "feedback", "previous", "wanted", optional=True)
        if type(self.version) is not int or self.version < 1:
            raise TypeError("version must be a whole number from 1")

    def __str__(self) -> str:
        return f"What do you think of this?\n\n{self.original_content}"

    def accept(self) -> FeedbackInfo:
        """Accept the text as it is."""
        return replace(self, feedback=None, no_need_to_edit=True)

    def give(self, text: str) -> FeedbackInfo:
        """Say what to change."""
        return replace(self, feedback=text, no_need_to_edit=False)

    def check_answer(self, answer: object) -> None:
        """Refuse an answer that is empty or about another text.

        Raises:
            ResumeDataError: The answer is empty, has the wrong type, or is about another text.
        """
        match answer:
            case FeedbackInfo(original_content=content) if content != self.original_content:
                raise ResumeDataError("the feedback is about another text than the one shown")
            case Expired() | Cancelled() | FeedbackInfo(no_need_to_edit=True):
                return
            case FeedbackInfo(feedback=text):
                pass
            case str(text):
                pass
            case _:
                raise wrong_answer("the review", answer, "FeedbackInfo or a text")
        if not (text or "").strip():
            raise ResumeDataError("the feedback is empty; give a text, or accept the content")


def ids_in_order(info: ChoiceInfo | CallChoiceInfo, ids: Sequence[str]) -> tuple[str, ...]:
    """Check chosen options and return their ids in the order of the options.

    Raises:
        ResumeDataError: An id is unknown, or the number of ids is wrong.
    """
    known = [option.id for option in info.options]
    for option_id in ids:
        if option_id not in known:
            raise ResumeDataError(
                f"there is no option {option_id!r}; options are: {', '.join(known)}"
            )
    wanted = tuple(known_id for known_id in known if known_id in ids)
    if not wanted or len(ids) != len(wanted) or (len(wanted) > 1 and not info.multiple):
        count = "one or more options, each once" if info.multiple else "exactly one option"
        raise ResumeDataError(f"choose {count}; got {', '.join(ids) or 'none'}")
    return wanted


def _value(option: Choice) -> Json:
    return option.id if option.value is None else option.value


def _listed(question: str, options: Sequence[Choice]) -> str:
    return "\n".join([question, *(f"{at}. {option}" for at, option in enumerate(options, 1))])


def _described(schema: Json) -> str:
    description = schema.get("description") if isinstance(schema, dict) else ""
    return f": {description}" if description else ""
