"""The page of the command line: every command, with its arguments."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from bot.commands import call, cli
from bot.commands.parser import build_parser
from reference_pages import text

PURPOSE = (
    "Every command of `countersign` with its arguments and exit codes, for operators and policy "
    "authors. `countersign COMMAND --help` prints the same texts."
)
_EXITS = (
    ("0", "The command succeeded."),
    (str(cli.FAILED), "The command failed. `policy test` exits so if a case differs."),
    (
        str(cli.WRONG_SETTINGS),
        "A setting, a policy file or its cases are wrong, or an argument is unknown.",
    ),
    (
        str(call.CUT_OFF),
        "A process was stopped, and work such as a blocked tool did not end in time.",
    ),
)


def build() -> str:
    """Make the page."""
    parts = [
        text.section(2, "Exit codes"),
        text.table(("Code", "Meaning"), [(text.code(number), said) for number, said in _EXITS]),
    ]
    for name, parser in commands():
        parts += _command(name, parser)
    return text.page("Command line", PURPOSE, parts)


def commands() -> list[tuple[str, argparse.ArgumentParser]]:
    """Give all commands with their parsers, in the order of the help."""
    return list(_walk(build_parser(), "countersign"))


def arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Give the arguments of one command, without those of its subcommands and without the help."""
    skipped = (argparse._HelpAction, argparse._SubParsersAction)  # noqa: SLF001 - no public names
    return [action for action in parser._actions if not isinstance(action, skipped)]  # noqa: SLF001


def help_of(action: argparse.Action) -> str:
    """Give the text of an argument, with its default filled in."""
    if isinstance(action, argparse._VersionAction):  # noqa: SLF001
        return "print the version and exit"
    return (action.help or "") % {"default": action.default}


def _walk(
    parser: argparse.ArgumentParser, name: str
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield name, parser
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for word, inner in action.choices.items():
                yield from _walk(inner, f"{name} {word}")


def _command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield text.section(2, text.code(name), text.anchor(name.replace("countersign", "command", 1)))
    yield text.fence("text", " ".join([name, *(_usage(action) for action in _all(parser))]))
    if about := summary_of(name):
        yield text.wrap(_sentence(about))
    if rows := [
        (text.code(_named(action)), _sentence(help_of(action))) for action in arguments(parser)
    ]:
        yield text.table(("Argument", "Meaning"), rows)


def summary_of(name: str) -> str:
    """Give what the help of the level above says of a command."""
    above, _, word = name.rpartition(" ")
    if not above:
        return str(build_parser().description)
    (parser,) = (parser for command, parser in commands() if command == above)
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for choice in action._choices_actions:  # noqa: SLF001
                if choice.dest == word:
                    return choice.help or ""
    return ""


def _all(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [
        action
        for action in parser._actions  # noqa: SLF001
        if not isinstance(action, argparse._HelpAction)  # noqa: SLF001
    ]


def _usage(action: argparse.Action) -> str:
    named = _named(action)
    if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
        named = f"{action.metavar} …"
    is_optional = action.nargs == "?" if not action.option_strings else not action.required
    if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
        is_optional = not action.required
    return f"[{named}]" if is_optional else named


def _named(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    name = action.option_strings[-1]
    if action.nargs == 0:
        return name
    value = (
        action.metavar or "|".join(str(choice) for choice in action.choices or ()) or action.dest
    )
    return f"{name} {value}"


def _sentence(words: str) -> str:
    if not words:
        return ""
    ended = words if words.endswith((".", ")")) else f"{words}."
    return ended[:1].upper() + ended[1:]
