"""Installs of pinned libraries; `make installs` runs each one with an old pip."""

from __future__ import annotations

from tests.pages.installs import Install, all_installs, read_installs
from tests.pages.site import ROOT


def test_each_lock_is_installed_without_a_look_at_what_its_packages_need() -> None:
    """A lock is complete; the pip of Python 3.11 refuses `google-auth[requests]`, a pin without."""
    installs = [install for install in all_installs() if install.lock]
    wanted = {"--no-deps", "--require-hashes"}
    assert [install for install in installs if not wanted <= {*install.options}] == []
    locks = {str(path.relative_to(ROOT)) for path in ROOT.glob("requirements/*.txt")}
    assert {install.lock for install in installs} == {*locks, ".github/requirements/build.txt"}


def test_commands_are_read_from_each_kind_of_file() -> None:
    page = "```sh\nvenv/bin/pip install --requirement sub/requirements/run.txt && true\n```\n"
    image = 'ARG LOCK=models\nRUN pip install --no-deps \\\n  -r "requirements/${LOCK}.txt"\n'
    assert read_installs("a page", page) == [
        Install("a page", ("--requirement", "requirements/run.txt"))
    ]
    assert read_installs("an image", image) == [
        Install("an image", ("--no-deps", "-r", "requirements/models.txt"))
    ]
