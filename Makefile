# make demo    the bot and a stand-in for Slack, in a browser; needs nothing but Python; PORT=8901
#                  chooses the port of the page
# make test    the tests of each change; COVERAGE=1 measures what they run, and takes a half longer;
#                  PROFILE=thorough runs all tests, for longer, and at random
# make test-all    what make test leaves out: browsers, dying processes, both drivers, and a sample of
#                  mutants; SHOTS=1 keeps pictures of what the browser showed
# make test-mongo   what talks to MongoDB; SERVER=mongod, nx or java (needs mvn), PATHS=tests/contract
# make installs   each documented install, with the oldest pip of Python 3.11; needs the network
# make check   format, lint, types, and who imports whom
# make check-js  the types of the sandbox's page, by its comments; needs npm
# make bench   the benchmarks; QUICK=1 smaller ones
# make trace   the way of one click through our files, from the payload to the tool's first line
# make mutants  small wrong changes in what decides, which tests must notice; ONLY=agents/gates
# make pictures  the pictures of README.md and docs/, from the demo; needs chromium; ONLY=card
# make diagrams  the diagrams of docs/; needs chromium and npm
# make reference   the pages of docs/reference that are made from the code
# make docs    the documentation site, with strict links, at docs/_build/html/index.html
# make locks   requirements/*.txt from pyproject.toml; UPGRADE=--upgrade takes the newest versions
# make chaos   bots that die, a Slack that misbehaves, people who click and vote; SEEDS=20 THREADS=200
#
# The set-up happens by itself in .venv, and again when pyproject.toml or requirements/ change.

SHELL := /bin/sh
JOBS ?= 3
SAMPLE ?= 0
PROFILE ?= quick
VENV := .venv
OPENAI_AGENTS := tests/scenario/programs/adapters/openai-agents.txt
# Each worker, and each bot that a test starts, reads what another one has compiled.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(VENV)/bin

IS_NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	if $$python -c '$(IS_NEW_ENOUGH)' >/dev/null 2>&1; then echo $$python; break; fi; done)

# Of each of these parts, 95 % of lines and branches are run by tests.
COVERED := 95
PARTS := agents storage bot/approvals,bot/notifications,bot/threads,bot/people,bot/questions,bot/records

# Small among the tests for each change, and large in `make chaos`.
LARGE := tests/scenario/test_races.py tests/scenario/test_races_processes.py tests/conformance

.PHONY: help demo test test-all test-mongo installs check check-js bench trace chaos mutants pictures diagrams reference docs docs-links locks format clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: $(VENV)/.run
	@$(BIN)/countersign demo $(if $(PORT),--port $(PORT))

test: $(VENV)/.dev
	$(BIN)/python $(if $(COVERAGE),-m slipcover --format json --out .covered) -m pytest -n $(JOBS) \
		--dist worksteal --hypothesis-profile $(PROFILE)
	$(if $(COVERAGE),@$(BIN)/python -m tests.support.covered .covered --at-least $(COVERED) $(PARTS))

test-all: $(VENV)/.dev $(VENV)/openai-agents/.there
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --rest
	$(BIN)/python -m tests.mutants --own --only agents/gates --sample 3

test-mongo: $(VENV)/.dev $(if $(filter java,$(SERVER)),.javaserver/.there)
	COUNTERSIGN_TEST_MONGODB_SERVER=$(SERVER) $(BIN)/pytest -n $(JOBS) --dist worksteal \
		--hypothesis-profile $(PROFILE) -m mongo $(PATHS)

installs: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) tests/pages/installs.py

# A second server, by other people: mongo-java-server, from Maven Central.
.javaserver/.there: tests/javaserver/pom.xml
	mvn --quiet --batch-mode --file $< dependency:copy-dependencies \
		-DoutputDirectory=$(CURDIR)/.javaserver
	@touch $@

check: $(VENV)/.dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports
	$(BIN)/mypy

# A step of its own: nothing else here needs npm, and the page is served as it is written.
check-js:
	npx --yes --package typescript@7.0.2 tsc -p tsconfig.json

format: $(VENV)/.dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(VENV)/.dev
	@for file in benchmarks/bench_*.py; do \
		PYTHONPATH=. $(BIN)/python "$$file" $(if $(QUICK),--quick) || exit 1; done

trace: $(VENV)/.dev
	$(BIN)/pytest -q -s tests/cost/test_way.py

chaos: $(VENV)/.dev
	$(BIN)/python -m tests.chaos --seeds $(or $(SEEDS),3) --threads $(or $(THREADS),40)
	$(BIN)/python -m tests.chaos --seeds $(or $(SEEDS),3) --threads $(or $(THREADS),40) \
		--database sqlite
	$(BIN)/python -m tests.chaos --votes --seeds $(or $(SEEDS),3) --threads $(or $(THREADS),40)
	$(BIN)/python -m tests.chaos --votes --seeds $(or $(SEEDS),3) --threads $(or $(THREADS),40) \
		--database sqlite
	$(BIN)/python -m tests.chaos --programs --seeds $(or $(SEEDS),3) --threads $(or $(THREADS),40)
	$(BIN)/python -m tests.chaos --programs --seeds $(or $(SEEDS),3) --threads $(or $(THREADS),40) \
		--database sqlite
	$(BIN)/python -m pytest --hypothesis-profile thorough $(LARGE)

mutants: $(VENV)/.mutants
	$(BIN)/python -m tests.mutants --only '$(ONLY)' --jobs $(JOBS) --sample $(SAMPLE)

pictures: $(VENV)/.dev
	$(BIN)/python -m tests.pictures --only '$(ONLY)'

# Renders diagrams that are new or have changed. Readers of the site load no script.
diagrams: $(VENV)/.dev
	@folder=$$(mktemp -d) && \
		npm install --silent --no-save --no-audit --no-fund --prefix $$folder mermaid@11.17.2 && \
		$(BIN)/python -m tests.pictures.diagrams $$folder/node_modules/mermaid/dist/mermaid.min.js; \
		status=$$?; rm -rf $$folder; exit $$status

reference: $(VENV)/.dev
	PYTHONPATH=docs/_ext $(BIN)/python -m reference_pages

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -b html -W --keep-going -q -j auto docs docs/_build/html

# Links to other hosts, too; this needs the network.
docs-links: $(VENV)/.docs
	$(BIN)/sphinx-build -b linkcheck -q docs docs/_build/links

clean:
	rm -rf $(VENV) mutants mutants-own .javaserver .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache \
		.covered build docs/_build dist *.egg-info countersign_client/build countersign_client/*.egg-info

# Every version and every hash, for all supported versions of Python and both architectures. uv writes
# one file for all of them; pip-tools would write one for each. A file keeps the versions of those before.
locks: $(VENV)/.dev
	$(call lock,run)
	$(call lock,models,run,openai anthropic google bedrock otel)
	$(call lock,dev,models,dev)
	$(call lock,docs,dev,dev docs)
	$(call lock,mutants,docs,dev mutants)
	$(BIN)/uv pip compile countersign_client/pyproject.toml --quiet --universal $(UPGRADE) --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --extra openai-agents \
		--output-file $(OPENAI_AGENTS)

# Furo's parser needs Python 3.11.5; the build needs setuptools, and fetches nothing unpinned.
define lock
printf 'setuptools>=77\n' | $(BIN)/uv pip compile pyproject.toml - --quiet --universal $(UPGRADE) \
	--python-version $(if $(filter docs,$(1)),3.11.5,3.11) --generate-hashes --no-header --no-annotate \
	$(if $(2),--constraint requirements/$(2).txt) $(addprefix --extra ,$(3)) --output-file requirements/$(1).txt
endef

# What `make demo` needs.
$(VENV)/.run: pyproject.toml requirements/run.txt
	@$(call install,run)
	@touch $@

# What developers need; it has all of the above.
$(VENV)/.dev: pyproject.toml countersign_client/pyproject.toml requirements/dev.txt
	@$(call install,dev)
	@touch $(VENV)/.run $@

# Its package is called `agents`, as ours: it stands in a folder of its own, with all that it needs.
$(VENV)/openai-agents/.there: $(VENV)/.dev $(OPENAI_AGENTS)
	@rm -rf $(@D)
	@$(BIN)/pip install --quiet --no-deps --require-hashes --target $(@D) -r $(OPENAI_AGENTS)
	@touch $@

# mutmut is not for everybody: it brings a user interface, and parsers.
$(VENV)/.mutants: pyproject.toml countersign_client/pyproject.toml requirements/mutants.txt
	@$(call install,mutants)
	@touch $(VENV)/.run $(VENV)/.dev $@

$(VENV)/.docs: pyproject.toml countersign_client/pyproject.toml requirements/docs.txt
	@$(call install,docs)
	@touch $(VENV)/.run $(VENV)/.dev $@

define install
test -n "$(PYTHON)" || { \
	echo "Countersign needs Python 3.11 or newer, and found none." >&2; \
	echo "Install it, or name it: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }; \
$(PYTHON) -c '$(IS_NEW_ENOUGH)' || { \
	echo "Countersign needs Python 3.11 or newer; $(PYTHON) is older." >&2; exit 1; }; \
echo "Setting up $(VENV) with $(PYTHON). This happens once, and takes a minute or two ..."; \
$(BIN)/python -c '$(IS_NEW_ENOUGH)' 2>/dev/null || rm -rf $(VENV); \
test -d $(VENV) || $(PYTHON) -m venv $(VENV) || { \
	rm -rf $(VENV); \
	echo "Python's venv module does not work; on Debian and Ubuntu, install python3-venv." >&2; \
	exit 1; }; \
$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	--no-deps --require-hashes --requirement requirements/$(1).txt && \
$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	--no-deps --no-build-isolation --editable . \
	$(if $(filter run,$(1)),,--editable ./countersign_client)
endef
