"""The architecture: imports keep their direction, and packages say what they offer.

Each contract of .importlinter is broken once, on a copy of the import graph, by the violation that
it is there for.
"""

import ast
import functools
import importlib
import itertools
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp
import importlinter.configuration
import pytest
from importlinter.application.use_cases import _register_contract_types, read_user_options
from importlinter.application.user_options import UserOptions
from importlinter.domain.contract import registry
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PACKAGES = ("agents", "bot", "countersign_client", "slack_sandbox", "storage")


@pytest.fixture(scope="module")
def options() -> UserOptions:
    importlinter.configuration.configure()
    user_options = read_user_options(str(ROOT / ".importlinter"))
    _register_contract_types(user_options)
    return user_options


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)


def is_kept(contract_id: str, options: UserOptions, graph: grimp.ImportGraph) -> bool:
    """Whether a contract holds on a graph."""
    (wanted,) = (entry for entry in options.contracts_options if entry["id"] == contract_id)
    contract = registry.get_contract_class(wanted["type"])(
        name=wanted["name"], session_options=options.session_options, contract_options=wanted
    )
    return contract.check(deepcopy(graph), verbose=False).kept


NEW = "new"
"""Stands for an import that makes a module nobody has listed."""

VIOLATIONS = [
    ("packages", "agents.runner", "storage.audit"),
    ("packages", "storage.base", "bot.ports.people"),
    ("agents-layers", "agents.tools.call", "agents.runner"),
    ("agents-layers", "agents.unlisted", NEW),
    ("storage-layers", "storage.sqlite.storage", "storage.mongo.client"),
    ("storage-layers", "storage.unlisted", NEW),
    ("bot-layers", "bot.questions.record", "bot.approvals.service"),
    ("bot-layers", "bot.scheduler", "bot.slack.listeners.events"),
    ("bot-layers", "bot.unlisted", NEW),
    ("bot-layers", "bot.layout.parts", "bot.approvals.withdrawals"),
    ("bot-layers", "bot.records.approval", "bot.policy.evaluation.evaluate"),
    ("layout-layers", "bot.layout.blocks", "bot.layout.parts"),
    ("layout-layers", "bot.layout.unlisted", NEW),
    ("slack-layers", "bot.slack.calls", "bot.slack.cards.approval"),
    ("slack-layers", "bot.slack.unlisted", NEW),
    ("question-layers", "bot.questions.base", "bot.questions.call"),
    ("question-layers", "bot.questions.doubt", "bot.questions.feedback"),
    ("question-layers", "bot.questions.unlisted", NEW),
    ("kinds-of-questions", "bot.approvals.service", "bot.questions.choice"),
    ("kinds-of-questions", "bot.approvals.disclosure", "bot.questions.drawing"),
    ("programs-decide-nothing", "bot.api.callers", "bot.approvals.votes"),
    ("api-alone", "bot.commands.run", "bot.api.callers"),
    ("use-cases-markup", "bot.approvals.service", "bot.words.mrkdwn"),
    ("use-cases", "bot.approvals.service", "bot.layout.blocks"),
    ("use-cases", "bot.threads.turns", "aiohttp"),
    ("use-cases-scheduler", "bot.threads.turns", "apscheduler"),
    ("agents-pure", "agents.runner", "slack_sdk"),
    ("agents-pure", "agents.tools.call", "os"),
    ("slack-edge", "bot.slack.cards.approval", "slack_sdk"),
    ("slack-edge", "bot.approvals.service", "bot.slack.calls"),
    ("mongo-driver", "bot.approvals.service", "motor"),
    ("mongo-driver", "storage.sqlite.collection", "bson"),
    ("sqlite-driver", "bot.approvals.service", "sqlite3"),
    ("sqlite-driver", "storage.log", "sqlite3"),
    ("one-composer", "bot.main", "storage.sqlite.storage"),
    ("one-composer", "bot.commands.cli", "storage.mongo"),
    ("sandbox-alone", "bot.slack.messages.notifier", "slack_sandbox.workspace.people"),
    ("sandbox-pure", "slack_sandbox.workspace.state", "storage.audit"),
    ("client-layers", "countersign_client.engine", "countersign_client.sync"),
    ("client-layers", "countersign_client.unlisted", NEW),
    ("client-alone", "bot.approvals.service", "countersign_client.sync"),
    ("client-pure", "countersign_client.connection", "bot.clock"),
    ("no-pickle", "storage.log", "pickle"),
    ("listeners-apart", "bot.slack.listeners.events", "bot.slack.listeners.actions"),
    ("no-cycles", "bot.slack.cards.listed", "bot.slack.home.items"),
    ("no-cycles", "bot.approvals.service", "bot.threads.worker"),
]


def test_every_contract_is_kept(options: UserOptions, graph: grimp.ImportGraph) -> None:
    broken = [
        entry["name"]
        for entry in options.contracts_options
        if not is_kept(entry["id"], options, graph)
    ]
    assert broken == []


def test_no_contract_ignores_an_import(options: UserOptions) -> None:
    ignoring = [entry["name"] for entry in options.contracts_options if entry.get("ignore_imports")]
    assert ignoring == []


def test_every_contract_is_tried(options: UserOptions) -> None:
    ids = {entry["id"] for entry in options.contracts_options}
    assert ids == {contract_id for contract_id, _, _ in VIOLATIONS}


@pytest.mark.parametrize(("contract_id", "importer", "imported"), VIOLATIONS)
def test_a_violation_breaks_its_contract(
    contract_id: str,
    importer: str,
    imported: str,
    options: UserOptions,
    graph: grimp.ImportGraph,
) -> None:
    planted = deepcopy(graph)
    if imported == NEW:
        assert importer not in planted.modules
        planted.add_module(importer)
    else:
        assert importer in planted.modules
        if imported not in planted.modules:
            planted.add_module(imported, is_squashed=True)
        planted.add_import(
            importer=importer, imported=imported, line_number=1, line_contents="import"
        )
    assert not is_kept(contract_id, options, planted)


PUBLIC = (
    "agents",
    "agents.chat",
    "agents.gates",
    "agents.graph",
    "agents.middlewares",
    "agents.policy",
    "agents.prebuilt",
    "agents.tools",
    "agents.workflows",
    "countersign_client",
    "slack_sandbox",
)
MOST_NAMES = 61
"""At the top of `agents`: what an author uses daily."""


@pytest.mark.parametrize("name", PUBLIC)
def test_a_package_says_what_it_offers(name: str) -> None:
    package = importlib.import_module(name)
    tree = ast.parse(Path(str(package.__file__)).read_text(encoding="utf-8"))
    public = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for alias in node.names
        if node.module and node.module.startswith(f"{name}.")
    }
    offered = list(package.__all__)
    assert len(set(offered)) == len(offered)
    assert set(offered) >= public
    assert [item for item in offered if not hasattr(package, item)] == []


def test_agents_offers_what_its_stub_lists_and_nothing_else() -> None:
    stub = ast.parse((ROOT / "agents" / "__init__.pyi").read_text(encoding="utf-8"))
    listed = [
        alias.name
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    ]
    agents = importlib.import_module("agents")
    assert len(stub.body) == sum(isinstance(node, ast.ImportFrom) for node in stub.body)
    assert len(listed) == len(set(listed)) <= MOST_NAMES
    assert sorted(agents.__all__) == sorted(listed)
    assert set(listed) <= set(dir(agents))
    assert [name for name in listed if not hasattr(agents, name)] == []
    with pytest.raises(AttributeError, match="nothing"):
        agents.nothing  # noqa: B018 - the look-up is what is tested


def test_agents_alone_is_quick_and_knows_nobody() -> None:
    code = (
        "import sys; import agents; agents.AgentError; "
        "known = {'slack_sdk', 'slack_bolt', 'motor', 'pymongo', 'aiohttp', 'pydantic_ai'}; "
        "print(sorted(known & set(sys.modules)))"
    )
    completed = subprocess.run(  # noqa: S603 - the code above
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert completed.stdout == "[]\n"


@pytest.mark.parametrize("package", PACKAGES)
def test_each_file_begins_with_what_lives_there(package: str) -> None:
    silent = [str(path) for path, file in files_of(package) if not file.text]
    assert silent == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_docstring_says_what_a_thing_is_and_asks_no_riddle(package: str) -> None:
    riddles = [
        f"{path.relative_to(ROOT)}: {text}"
        for path, file in files_of(package)
        for text in file.docstrings
        if text.split()[:1] and text.split()[0] in RIDDLES
    ]
    assert riddles == []


@pytest.mark.parametrize("package", PACKAGES)
def test_what_a_docstring_points_to_is_there(package: str) -> None:
    gone = [
        f"{path.relative_to(ROOT)}: {name}"
        for path, file in files_of(package)
        for text in file.docstrings
        for name in POINTERS.findall(text)
        if not is_there(name)
    ]
    assert gone == []


POINTERS = re.compile(rf"`((?:{'|'.join(PACKAGES)})(?:\.\w+)+)`")


@functools.cache
def is_there(name: str) -> bool:
    """Whether there is such a module, or such a name in one."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@dataclass
class SourceFile:
    """All that is looked at in a file of ours."""

    text: str | None
    docstrings: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)


@functools.cache
def files_of(package: str) -> list[tuple[Path, SourceFile]]:
    """The files of a package, in order; each is parsed once for all tests."""
    return [(path, a_source_file(path)) for path in sorted((ROOT / package).rglob("*.py"))]


def a_source_file(path: Path) -> SourceFile:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    file = SourceFile(ast.get_docstring(tree))
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef():
                file.classes.append(node.name)
                file.docstrings += docstrings(node)
            case ast.Module() | ast.FunctionDef() | ast.AsyncFunctionDef():
                file.docstrings += docstrings(node)
            case _:
                pass
    return file


RIDDLES = frozenset({"What", "Which", "Who", "Whom", "Whose"})


def docstrings(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
) -> list[str]:
    """The docstring of a thing, and of the constants and fields in it."""
    texts = [
        item.value.value
        for item in node.body
        if isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)
    ]
    return [text for text in texts if isinstance(text, str)]


LOCKS = {
    "run": [],
    "models": ["openai", "anthropic", "google", "bedrock", "otel"],
    "dev": ["dev"],
    "docs": ["dev", "docs"],
    "mutants": ["dev", "mutants"],
}
"""The extras that each file of requirements/ installs."""


def locked(name: str) -> dict[str, str]:
    """The version of each package in a file of requirements/. Each line must be a pin or a hash."""
    lines = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("    --hash=sha256:")]
    matches = [
        re.match(r"([\w.-]+)(?:\[[\w,-]+\])?==([\w.]+)(?: ; [^/@]+)? \\$", pin) for pin in pins
    ]
    assert [pin for pin, match in zip(pins, matches, strict=True) if match is None] == []
    return {name_of(match[1]): match[2] for match in matches if match}


def test_locks_name_each_file_of_requirements() -> None:
    assert {path.stem for path in (ROOT / "requirements").iterdir()} == LOCKS.keys()


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_a_version_of_each_direct_dependency_that_fits(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for extra in LOCKS[name] for line in project["optional-dependencies"][extra]]
    wanted = [Requirement(line) for line in (*project["dependencies"], *extras, "setuptools>=77")]
    pins = locked(name)
    unfit = [
        requirement
        for requirement in wanted
        if not requirement.specifier.contains(pins[name_of(requirement.name)], True)
    ]
    assert unfit == []


def test_locks_agree_about_versions() -> None:
    versions: dict[str, set[str]] = {}
    for name in LOCKS:
        for package, version in locked(name).items():
            versions.setdefault(package, set()).add(version)
    assert {name: pinned for name, pinned in versions.items() if len(pinned) > 1} == {}


@pytest.mark.parametrize(
    ("project", "packages", "beside"),
    [
        # pydantic-core comes with pydantic, in the version that fits it.
        ("pyproject.toml", {*PACKAGES} - {"countersign_client"}, {"pydantic_core"}),
        ("countersign_client/pyproject.toml", {"countersign_client"}, set()),
    ],
)
def test_imports_of_a_distribution_are_its_dependencies(
    project: str, packages: set[str], beside: set[str], graph: grimp.ImportGraph
) -> None:
    written = tomllib.loads((ROOT / project).read_text(encoding="utf-8"))["project"]
    # An extra's packages are imported by one module, which is imported for one command alone.
    optional = written["optional-dependencies"].get("mcp", [])
    wanted = {name_of(requirement) for requirement in (*written["dependencies"], *optional)}
    distributions = packages_distributions()
    imported = {
        module.partition(".")[0]
        for module in graph.modules
        if graph.is_module_squashed(module)
        and any(
            importer.partition(".")[0] in packages
            for importer in graph.find_modules_that_directly_import(module)
        )
    }
    # A namespace such as opentelemetry's belongs to several; one of them must be asked for.
    missing = {
        name
        for name in imported & distributions.keys()
        if not wanted & {name_of(distribution) for distribution in distributions[name]}
    }
    assert missing == beside


def name_of(requirement: str) -> str:
    """The name at the beginning of a requirement, in its normal form."""
    name = "".join(char if char.isalnum() or char in "-_." else " " for char in requirement)
    return name.split()[0].lower().replace("_", "-")


CLIENT = ("countersign_client",)
"""Its names are those of the public API, and meet the bot's in no file."""


@pytest.mark.parametrize("packages", [{*PACKAGES} - {*CLIENT}, CLIENT], ids=["bot", "client"])
def test_a_class_name_stands_once(packages: Iterable[str]) -> None:
    places: dict[str, list[str]] = {}
    for path, file in itertools.chain(*map(files_of, packages)):
        for name in file.classes:
            places.setdefault(name, []).append(str(path.relative_to(ROOT)))
    twice = {name: files for name, files in places.items() if len(files) > 1}
    assert twice == {}, "give each class a name of its own, so that it can be found"


LONGEST_CHAINS = {"agents": 15, "storage": 9, "bot": 18}
"""How many modules stand in the longest chain of imports inside of each package, at most."""


@pytest.mark.parametrize("package", LONGEST_CHAINS)
def test_chains_of_imports_grow_no_longer(package: str, graph: grimp.ImportGraph) -> None:
    own = {name for name in graph.modules if name == package or name.startswith(f"{package}.")}
    lengths: dict[str, int] = {}

    def length(module: str) -> int:
        if module not in lengths:
            below = graph.find_modules_directly_imported_by(module) & own
            lengths[module] = 1 + max(map(length, below), default=0)
        return lengths[module]

    assert max(map(length, own)) <= LONGEST_CHAINS[package]
