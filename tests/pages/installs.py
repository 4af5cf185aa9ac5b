"""Runs each documented install with the oldest pip of Python 3.11: `make installs`.

The file is not called test_*.py because it needs the network and some minutes.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.pages.site import ROOT

OLDEST_PIP = "22.3"
"""The pip that Python 3.11.0 brings."""

TOLD_BY = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*", "deploy/**/*", ".github/**/*.yml")
    for path in ROOT.glob(pattern)
    if path.is_file() and path.suffix != ".pyc"
)
_INSTALL = re.compile(r"\b(?:-m )?pip install +([^\n&|;`]+)")
_NO_MATTER = {
    "--disable-pip-version-check",
    "--no-cache-dir",
    "--quiet",
    "--requirement",
    "-r",
}
_ARGUMENT = re.compile(r"^ARG (\w+)=(\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Install:
    """A `pip install` that a page, an image, a workflow or the Makefile runs.

    Attributes:
        place: The file with the command.
        options: What follows `pip install`; paths of locks are relative to the repository.
    """

    place: str
    options: tuple[str, ...]

    @property
    def lock(self) -> str | None:
        """The file of pinned versions and hashes, if the command installs one."""
        return next((option for option in self.options if "requirements/" in option), None)

    @property
    def is_from_registry(self) -> bool:
        """Whether it names a lock or a package, and not a directory or a wheel."""
        names_a_package = all(re.fullmatch(r"[\w-]+", option) for option in self.options)
        return self.lock is not None or names_a_package

    @property
    def meaning(self) -> frozenset[str]:
        """The options that matter for the result: commands that share them are run once."""
        return frozenset(self.options) - _NO_MATTER


def read_installs(place: str, text: str) -> list[Install]:
    """Read the commands of a file; names of an image's arguments get their defaults."""
    for name, default in _ARGUMENT.findall(text):
        text = text.replace(f"${{{name}}}", default)
    installs = []
    for options in _INSTALL.findall(text.replace("\\\n", " ")):
        # A page may name a lock from another directory.
        words = (re.sub(r"^.*?((\.github/)?requirements/)", r"\1", w) for w in shlex.split(options))
        installs.append(Install(place, tuple(words)))
    return installs


def all_installs() -> list[Install]:
    """Collect the commands of all files, and those that make would run."""
    targets = [".venv/.run", ".venv/.dev", ".venv/.mutants", ".venv/.docs"]
    made = subprocess.run(  # noqa: S603
        # make looks for a Python at each place that names one, unless it is given.
        ["make", "--dry-run", "--always-make", f"PYTHON={sys.executable}", *targets],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    pages = [(str(path.relative_to(ROOT)), path.read_text("utf-8")) for path in TOLD_BY]
    texts = [*pages, ("Makefile", made.stdout)]
    return [install for place, text in texts for install in read_installs(place, text)]


@pytest.fixture(scope="session")
def oldest_pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pip of Python 3.11.0, in an environment of its own."""
    environment = tmp_path_factory.mktemp("oldest-pip")
    pip = environment / "bin" / "pip"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)  # noqa: S603
    subprocess.run([pip, "install", "--quiet", f"pip=={OLDEST_PIP}"], check=True)  # noqa: S603
    return pip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each install that reads a registry, once."""
    if "install" in metafunc.fixturenames:
        installs = [install for install in all_installs() if install.is_from_registry]
        once = {install.meaning: install for install in installs}.values()
        metafunc.parametrize("install", once, ids=lambda install: install.lock or "package")


@pytest.mark.timeout(600)
def test_an_install_works_with_the_oldest_pip(install: Install, oldest_pip: Path) -> None:
    command = [str(oldest_pip), "install", "--dry-run", "--quiet", *install.options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
