# The verbs of Knickpoint. `make help` lists them.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
SUITE ?= quickstart
DATA ?= var
NATIVE := perf/load/native
NATIVE_TARGET = $${KNICKPOINT_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/knickpoint}/native/target
CARGO_OPTIONS = --release --locked --manifest-path $(NATIVE)/Cargo.toml --target-dir "$(NATIVE_TARGET)"
INVENTORY ?= example
NIGHTS ?= 30
INTO ?= var/soak
ENGINE ?= python
# Whose clippy and rustfmt judge; those of the next one find something else. CI installs it.
RUST := 1.95

# Where it is set, Python compiles its sources and pytest rewrites all tests at each start, of which there are thousands.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup native native-lint native-test nightly reliability soak soak-real test test-slow test-all mutation lint format types contracts tree workflows wheel-smoke selftest reference pictures audit bench bench-ablation bench-bisection bench-comparison bench-detection bench-engines bench-scale site lock schema infra-check lab-up lab-down lab-status clean
.DEFAULT_GOAL := help

help: ## list the verbs
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 17

setup: .venv/.ready ## prepare .venv with everything that nightly needs

# Exported, not set in the recipe: so make runs the command itself, without a shell in between, and
# the command notices when make is killed.
nightly: export KNICKPOINT_DIE_WITH_PARENT = 1
nightly: .venv/.ready ## measure, append, judge, report: the whole job (SUITE=quickstart DATA=var)
	@$(BIN)/knickpoint nightly --suite $(SUITE) --data $(DATA)

test: .venv/.dev ## does it work? A real Cassandra included (three to seven minutes on two cores)
	$(BIN)/pytest -m "not slow" --numprocesses auto --dist loadfile

# Most of these wait, for a server, a limit or a download. The lab sets the kernel of the machine, which each trial reads
# before and after: only what runs no trial may run beside it. What fails beside others is tried once more by itself.
SLOW_WORKERS ?= 3
SLOW = $(BIN)/pytest --timeout 1800
TOGETHER = --numprocesses $(SLOW_WORKERS) --dist loadfile --no-loadscope-reorder
NO_TRIALS := tests/analysis tests/contract tests/perf/config tests/perf/history tests/perf/load tests/perf/workloads tests/perf/commands/test_history_lake.py tests/reports \
  $(foreach of,hostile_histories hostile_imports hostile_series hostile_texts kills_told limits same_site site_kills,tests/reliability/test_$(of).py) tests/act/test_comment.py tests/act/test_candidate_refusals.py tests/test_ci.py tests/test_packaging.py
test-slow: .venv/.dev ## what make test has no time for
	@failed=0; again=0; \
	$(SLOW) -m "slow and not alone" $(TOGETHER) tests/infra tests/lab $(NO_TRIALS) || again=1; \
	$(SLOW) -m "slow and not alone" $(TOGETHER) --ignore=tests/infra --ignore=tests/lab $(NO_TRIALS:%=--ignore=%) || again=1; \
	test $$again -eq 0 || env -u KNICKPOINT_TESTS_UNTIL $(SLOW) -m "slow and not alone" --last-failed --last-failed-no-failures none || failed=1; \
	$(SLOW) -m "slow and alone" || failed=1; \
	exit $$failed

test-all: export KNICKPOINT_EFFORT ?= 0.05
test-all: test test-slow ## all tests, with more tries than in make test (an hour and a half on two cores; all of them with KNICKPOINT_EFFORT=1)

# What needs the machine for itself comes last.
reliability: export KNICKPOINT_EFFORT = 1
reliability: .venv/.dev native ## every promise of docs/reliability.md, tried in full: the table with figures (fifty minutes)
	@export KNICKPOINT_TESTS_TOLD=$$(mktemp); failed=0; \
	$(BIN)/pytest -m "keeps and not alone" --timeout 900 --numprocesses auto --dist loadfile || failed=1; \
	$(BIN)/pytest -m "keeps and alone" --timeout 900 || failed=1; \
	$(BIN)/python tests/reliability/kept.py "$$KNICKPOINT_TESTS_TOLD" || failed=1; \
	rm "$$KNICKPOINT_TESTS_TOLD"; exit $$failed

mutation: .venv/.dev ## would a test notice a mistake in what decides? 40 mutants of each such room (an hour of one core)
	$(BIN)/uv run --quiet --no-project --python $(BIN)/python --with mutmut==3.8.1 .ci/mutate.py

soak: .venv/.dev ## simulated nights in a row, with all that goes wrong in a season (NIGHTS=300: an hour or more; into INTO=var/soak)
	$(BIN)/python tests/reliability/soak.py simulated --nights $(NIGHTS) --into $(INTO)

soak-real: .venv/.dev ## real nights of one Cassandra server in a row, unattended (NIGHTS=30: an hour; into INTO=var/soak)
	$(BIN)/python tests/reliability/soak.py real --nights $(NIGHTS) --into $(INTO)

native: .venv/.ready ## build the native load engine, into the cache (needs Rust; the first time takes minutes)
	@$(BIN)/python -m perf.load.native_build

native-lint: ## style of the native load engine (rustfmt, clippy: of Rust 1.95)
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || { echo "rustfmt or clippy is missing: rustup component add rustfmt clippy" >&2; exit 1; }
	cargo fmt --check --manifest-path $(NATIVE)/Cargo.toml
	cargo clippy $(CARGO_OPTIONS) --all-targets -- -D warnings

native-test: ## the unit tests of the native load engine
	cargo test $(CARGO_OPTIONS)

lint: format-check types contracts tree workflows ## style, types, import contracts, sizes, docs and workflows; where there is Rust 1.95, native-lint too
	@case "$$(rustc --version 2>/dev/null)" in "rustc $(RUST)."*) $(MAKE) --no-print-directory native-lint ;; *) echo "LEFT OUT, for want of Rust $(RUST): make native-lint" ;; esac

format-check: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: .venv/.dev ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: .venv/.dev ## strict type check
	$(BIN)/mypy

contracts: .venv/.dev ## import contracts: who may import whom
	$(BIN)/lint-imports

tree: .venv/.dev ## sizes of files and functions, and whether the docs say what the code has
	$(BIN)/python .ci/check_tree.py

# shellcheck and pyflakes would be used where a machine has them; findings are to be the same everywhere.
workflows: .venv/.dev ## are the workflows right, and safe? (actionlint, zizmor)
	PATH="$$PATH:$(CURDIR)/$(BIN)" go run $(ACTIONLINT) -shellcheck= -pyflakes=
	$(BIN)/zizmor --offline --pedantic --quiet .github

wheel-smoke: .venv/.dev ## build the wheel, install it in a clean environment, use it
	sh .ci/wheel-smoke

selftest: .venv/.ready ## does a load engine report what was planted? (ENGINE=python; a minute for each protocol, on a quiet machine)
	$(BIN)/knickpoint selftest engine --engine $(ENGINE)

bench: .venv/.dev ## measure our own code (some minutes)
	$(BIN)/pytest tests/benchmarks --benchmark-only

bench-engines: .venv/.dev native ## both load engines beside YCSB and latte, on null servers and on Cassandra: the table of docs/engine.md (three quarters of an hour)
	PYTHONPATH=tests/peers $(BIN)/python tests/benchmarks/engines/beside_peers.py

bench-scale: .venv/.dev ## one to ten years of 100 series kept, judged, reported and queried, beside SQLite and Otava (docs/performance.md; an hour)
	$(BIN)/python tests/benchmarks/scale/years.py

bench-bisection: .venv/.dev ## how often a bisection finds the culprit, and what it costs: the goals of docs/statistics.md (a quarter of an hour)
	$(BIN)/python tests/benchmarks/bisection/table.py

bench-detection: .venv/.dev ## the detector against Otava, same data: the goals of docs/statistics.md (a quarter of an hour on two cores)
	$(BIN)/python tests/benchmarks/detection/table.py

bench-ablation: .venv/.dev ## what each part of the detector earns: the same series, read without it (docs/statistics.md; a quarter of an hour on two cores)
	$(BIN)/python tests/benchmarks/detection/ablation.py

bench-comparison: .venv/.dev ## side-by-side comparisons with a known truth: the tables of docs/statistics.md (a quarter of an hour of one core)
	PYTHONPATH=tests/benchmarks/detection $(BIN)/python tests/benchmarks/comparison/table.py

site: .venv/.ready ## write the site again from the history
	$(BIN)/knickpoint report --data $(DATA)

infra-check: .venv/.dev ## what Ansible would change on the hosts of an inventory; changes nothing (INVENTORY=example)
	cd infra && ../$(BIN)/ansible-playbook -i inventory/$(INVENTORY).yaml site.yml --check --diff

schema: .venv/.ready ## write configs/schema again
	$(BIN)/knickpoint schema

reference: .venv/.ready schema ## write docs/reference again: the command line and the configuration files
	$(BIN)/python .ci/reference.py

pictures: .venv/.dev ## take docs/overview.webp, the picture of the README, of the demo (needs Chromium)
	$(BIN)/python docs/pictures.py

# Each asks a service on the Internet: PyPI, and the advisories of RustSec on GitHub; where one cannot be asked about a
# package, that is a failure (--strict). The lists are CycloneDX.
CARGO_AUDIT := 0.22.2
audit: .venv/.dev ## known vulnerabilities of all that is pinned, Python and Rust; lists of it in dist/sbom (needs the Internet)
	@mkdir -p dist/sbom
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv/audit
	$(BIN)/uv pip install --quiet --python .venv/audit/bin/python --require-hashes -r requirements/audit.lock
	@failed=0; for lock in $(wildcard requirements/*.lock); do \
	.venv/audit/bin/pip-audit --strict --progress-spinner off --require-hashes --disable-pip -r $$lock \
	--format cyclonedx-json --output dist/sbom/$$(basename $$lock .lock).json || failed=1; done; exit $$failed
	cargo install --quiet --locked --root .venv/audit cargo-audit@$(CARGO_AUDIT)
	.venv/audit/bin/cargo-audit audit --file $(NATIVE)/Cargo.lock

lock: .venv/.dev ## renew the hash-pinned lock files
	sh requirements/lock

lab-up: .venv/.ready ## three database hosts and two client hosts on this machine, over SSH (needs root)
	$(BIN)/python infra/lab/lab.py up

lab-down: .venv/.ready ## remove the lab with all its data
	$(BIN)/python infra/lab/lab.py down

lab-status: .venv/.ready ## which hosts of the lab are up
	@$(BIN)/python infra/lab/lab.py status

clean: ## remove the environment and all caches of tools; var/ (your results) stays
	rm -rf .venv mutants .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks dist

# pip retries by itself; hashes are in the lock files, addresses are not.
# Each lock binds extras too (-c): a package that is asked for with an extra is pinned without it, and pip would take
# the newest one, which has no hash here, as soon as there is a newer one.
.venv/.ready: requirements/all.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is %d.%d; say which: make PYTHON=python3.12 …" % sys.version_info[:2])'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { rm -rf .venv; echo "this Python cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "installing the pinned packages into .venv (about a minute)"
	@$(PIP) install -q --retries 5 --require-hashes -r requirements/all.lock -c requirements/all.lock
	@$(PIP) install -q --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.dev: .venv/.ready requirements/dev.lock
	@echo "installing the pinned development packages into .venv"
	@$(PIP) install -q --retries 5 --require-hashes -r requirements/dev.lock -c requirements/dev.lock
	@touch $@
