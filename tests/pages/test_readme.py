"""The README: its agent works as printed, and what it names exists."""

import re
import sys
from pathlib import Path

import pytest

from agents import Runner, ScriptedModel, user_message
from agents.models import call, say
from bot.config.agents import load_agents

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/*.md")])


def code_of(page: str, language: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(block)


async def test_the_agent_of_the_readme_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = code_of("README.md", "python")
    assert len(code.splitlines()) < 30
    (tmp_path / "wifi_of_readme.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    model = ScriptedModel([call("rotate", {"password_name": "summer"}), say("done")])
    agent = load_agents("wifi_of_readme:build", model)["*"]
    del sys.modules["wifi_of_readme"]
    events = [event async for event in Runner(agent).run([user_message("a new one, please")])]
    assert "Change the guest password to summer" in str(events[-1])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^):]*)\)", text) + re.findall(r'(?:src|srcset)="([^":]+)"', text)
    assert [link for link in links if not leads_somewhere(page, link)] == []


def leads_somewhere(page: Path, link: str) -> bool:
    """Whether a link has its file, and the place in it."""
    name, _, place = link.partition("#")
    target = page.parent / name if name else page
    if not place or target.suffix != ".md":
        return target.exists()
    return target.exists() and place in places_of(target)


def places_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made by who shows it."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def test_each_page_outside_of_the_site_is_on_the_map() -> None:
    """Sphinx finds pages of the site that no list names."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([^)#:]+)\)", text))
    pages = [page.relative_to(ROOT) for page in PAGES if page.name != "README.md"]
    assert {str(page) for page in pages if page.parts[0] != "docs"} - linked == set()


def test_the_quickstart_has_ten_steps_and_says_how_to_decide_alone_no_more() -> None:
    text = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    steps = re.findall(r"^\*\*(\d+)\. ", text, re.MULTILINE)
    assert steps == [str(number) for number in range(1, 11)]
    before, _, after = text.partition("## Now for more than one")
    assert "\nCOUNTERSIGN_SELF_APPROVAL=yes\n" in before
    assert "Delete the line `COUNTERSIGN_SELF_APPROVAL=yes`" in after


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 180
    assert re.findall(r"^make \w+|`make (?:demo|test)`", text, re.MULTILINE)[:2] == [
        "make demo",
        "`make test`",
    ]


def test_the_map_names_what_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"## Where things are\n\n```\n(.*?)```", text, re.DOTALL)
    lines = section.splitlines()
    places = [line.split()[0] for line in lines]
    rooms = {
        f"bot/{path.name}/" for path in (ROOT / "bot").iterdir() if (path / "__init__.py").is_file()
    }
    assert rooms <= set(places)
    assert sorted(set(places)) == sorted(places)
    assert {line.index(line.split(maxsplit=1)[1]) for line in lines} == {19}
    assert [place for place in places if not (ROOT / place).exists()] == []
