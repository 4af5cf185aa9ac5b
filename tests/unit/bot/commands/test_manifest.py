"""`countersign manifest`: what is printed to be pasted."""

from __future__ import annotations

import pytest

from bot.commands.cli import WRONG_SETTINGS, main
from bot.config.manifest import COMMANDS, check_manifest, manifest_text, read_manifest


def printed(*typed: str) -> tuple[int, str]:
    lines: list[str] = []
    code = main(["manifest", *typed], environ={}, say=lines.append)
    return code, "\n".join(lines)


def test_for_socket_mode_it_is_the_file_as_it_stands() -> None:
    assert printed("--socket") == (0, manifest_text().rstrip())


@pytest.mark.parametrize("way", [("--socket",), ("--url", "https://bot.example.com")])
def test_the_surface_for_agents_can_be_left_out(way: tuple[str, ...]) -> None:
    code, text = printed(*way, "--no-agent-view")
    assert (code, check_manifest(text)) == (0, [])
    assert not any(word in text for word in ("agent_view", "assistant:write", "agent_session"))


@pytest.mark.parametrize(
    ("url", "whole"),
    [
        ("https://bot.example.com", "https://bot.example.com/slack/events"),
        ("https://bot.example.com/", "https://bot.example.com/slack/events"),
        ("https://bot.example.com:8443/x/events", "https://bot.example.com:8443/x/events"),
        (" https://bot.example.com/slack/events ", "https://bot.example.com/slack/events"),
    ],
)
def test_for_http_each_address_is_the_given_one(url: str, whole: str) -> None:
    code, text = printed("--url", url)
    assert code == 0
    assert check_manifest(text) == []
    assert text.count(f": {whole}\n") == 2 + len(COMMANDS)
    settings = read_manifest(text)["settings"]
    assert isinstance(settings, dict)
    assert settings["socket_mode_enabled"] is False


@pytest.mark.parametrize(
    "url",
    [
        "",
        "bot.example.com",
        "http://bot.example.com",
        "https://",
        "https://a b",
        "https://user:secret@bot.example.com",
        "https://bot.example.com:99999",
        "https://bot.example.com/?x=1",
        "https://bot.example.com/#x",
        "https://[::1",
    ],
)
def test_an_address_that_slack_cannot_reach_is_refused(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed("--url", url) == (WRONG_SETTINGS, "")
    assert "--url" in capsys.readouterr().err


@pytest.mark.parametrize("typed", [[], ["--socket", "--url", "https://x.example"]])
def test_one_of_both_has_to_be_chosen(typed: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        printed(*typed)
    assert stopped.value.code == 2
