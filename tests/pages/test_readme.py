"""The README: its agent works as printed, and what it names exists."""

import re
import sys
from pathlib import Path

import pytest

from bot.commands.cli import main
from bot.layout.action_ids import ActionId
from tests.support.stage import a_stage

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])


def code_of(page: str, language: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(block)


def test_the_code_of_the_readme_is_that_of_the_examples() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for code, example in zip(blocks, ("ci_deploy.py", "wifi.py"), strict=True):
        assert len(code.splitlines()) < 30
        assert code in (ROOT / "examples" / example).read_text(encoding="utf-8")


async def test_the_agent_of_the_readme_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"^COUNTERSIGN_AGENT=(\S+) PYTHONPATH=examples ", text, re.MULTILINE)
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=named) as stage:
        await stage.say("Rosa", "@countersign rotate the password")
        card = await stage.card(word=ActionId.APPROVE)
        assert "Change the guest password to summer" in str(card)
        await stage.click("Ada", card, ActionId.APPROVE)
        await stage.said("The guest Wi-Fi now uses summer")
    del sys.modules[named.partition(":")[0]]


def test_the_policy_of_the_readme_has_no_faults(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(code_of("README.md", "yaml"), encoding="utf-8")
    said: list[str] = []
    assert main(["policy", "check", str(policy), "--offline"], environ={}, say=said.append) == 0
    assert "ok, 1 rule" in str(said)


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
    """The anchors of a page: of its headings, and those that it names itself."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    own = re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | {
        *own
    }


def test_each_page_outside_of_the_site_is_on_the_map() -> None:
    """Sphinx finds pages of the site that no list names."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([^)#:]+)\)", text))
    pages = [page.relative_to(ROOT) for page in PAGES if page.name != "README.md"]
    assert {str(page) for page in pages if page.parts[0] != "docs"} - linked == set()


def test_the_first_bot_decides_alone_until_its_last_step() -> None:
    text = (ROOT / "docs" / "how-to" / "connect-slack.md").read_text(encoding="utf-8")
    steps = re.findall(r"^## (\d+)\. ", text, re.MULTILINE)
    assert steps == [str(number) for number in range(1, len(steps) + 1)]
    before, _, after = text.partition(f"## {len(steps)}. Require another person")
    assert "\nCOUNTERSIGN_SELF_APPROVAL=yes\n" in before
    assert "delete the line `COUNTERSIGN_SELF_APPROVAL=yes`" in after


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
    assert {line.index(line.split(maxsplit=1)[1]) for line in lines} == {21}
    assert [place for place in places if not (ROOT / place).exists()] == []


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / ".pre-commit-config.yaml"], ids=lambda page: page.name
)
def test_programs_of_the_environment_are_in_it(page: Path) -> None:
    named = set(re.findall(r"(?<!/)\.venv/bin/([\w-]+)", page.read_text(encoding="utf-8")))
    there = {path.name for path in Path(sys.executable).parent.iterdir()}
    assert named <= there | {"pip"}  # venv brings it, uv does not
