"""The wheel and the source distribution have the packages, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]
BESIDE = {"LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}
PACKAGES = {"agents", "bot", "slack_sandbox", "storage"}
BUILD = """
from setuptools.build_meta import build_sdist, build_wheel
build_sdist("out")
build_wheel("out")
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a build from a copy of the repository gives."""
    copy = tmp_path_factory.mktemp("packages") / "copy"
    copy.mkdir()
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "manifest.yml"):
        shutil.copy(ROOT / name, copy)
    (copy / "tests").mkdir()
    for path in (ROOT / "tests").glob("*.py"):
        shutil.copy(path, copy / "tests")
    for name in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, copy / name, ignore=ignored, symlinks=True)
    command = [sys.executable, "-c", BUILD]
    subprocess.run(command, cwd=copy, check=True, capture_output=True)  # noqa: S603
    return copy / "out"


def files_of(folder: Path) -> set[str]:
    """The files of our packages in the repository, without what Python writes."""
    paths = [path for name in PACKAGES for path in (folder / name).rglob("*") if path.is_file()]
    return {
        path.relative_to(folder).as_posix() for path in paths if "__pycache__" not in path.parts
    }


def test_the_source_distribution_has_the_packages_and_nothing_else(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = [PurePosixPath(member.name) for member in archive.getmembers() if member.isfile()]
    inside = {"/".join(name.parts[1:]) for name in names}
    made = {name for name in inside if name.startswith("countersign_bot.egg-info/")}
    assert inside - made == files_of(ROOT) | BESIDE


def test_the_wheel_has_the_packages_and_nothing_else(built: Path) -> None:
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        inside = set(archive.namelist())
    made = {name for name in inside if ".dist-info/" in name}
    assert inside - made == files_of(ROOT)
    assert any(name.endswith("/licenses/LICENSE") for name in made)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of the client for programs, from a copy of its folder alone."""
    copy = tmp_path_factory.mktemp("client") / "copy"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    shutil.copytree(ROOT / "countersign_client", copy, ignore=ignored)
    command = [sys.executable, "-c", BUILD]
    subprocess.run(command, cwd=copy, check=True, capture_output=True)  # noqa: S603
    return copy / "out"


def test_the_wheel_of_the_client_has_its_modules_and_its_script(client: Path) -> None:
    (path,) = client.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        inside = set(archive.namelist())
        scripts = archive.read(next(name for name in inside if name.endswith("entry_points.txt")))
    made = {name for name in inside if ".dist-info/" in name}
    folder = ROOT / "countersign_client"
    modules = {path.relative_to(ROOT).as_posix() for path in folder.rglob("*.py")}
    assert inside - made == modules | {"countersign_client/py.typed"}
    assert b"countersign-ask = countersign_client.cli.entry:main" in scripts
