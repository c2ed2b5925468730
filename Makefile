# Few verbs; `make` alone lists them. The environment lives in .venv of this
# checkout; stamp files in it say what it was made from, so nothing is built twice.

.DEFAULT_GOAL := help
.PHONY: help build dev test busy lint bench measure dev-times abuse crash soak watched clients tools consistency weather faults replicas follow fuzz wheel clean
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory

BIN := .venv/bin
PROFILE ?= release
RUNS ?= 20
KILLS ?= 200
BLOCKS ?= 1800
MINUTES ?= 1
SEED ?= 0
CALLS ?= 200
CUTS ?= 50
CHECKS ?=
TARGETS ?=
ONLY ?=
SMALL ?=
# Tests keep temporary files in memory; these verbs are about what is on a disk.
ON_DISK := $(or $(TMPDIR),/tmp)
# The stub is a package, the engine one module: its chapters are not there when it runs.
STUB_ONLY := __all__ $(filter-out __init__,$(basename $(notdir $(wildcard python/foreblock/_engine/*.pyi))))
ETHCLIENT_SOURCES := $(wildcard tests/clients/ethclient/*.go tests/clients/ethclient/go.*)
ENGINE_SOURCES := $(shell find crates -name '*.rs' -o -name 'Cargo.toml') Cargo.toml Cargo.lock

# Bytecode is kept even where the environment says otherwise: a service is several
# processes, and each of them starts in less than half the time with it.
unexport PYTHONDONTWRITEBYTECODE

# PyO3 asks this interpreter for its layout; the same one every time, so that
# maturin, clippy and the tests share what cargo has built.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

define FIND_PYTHON
for python in $${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do \
  if $$python -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
    echo $$python; exit 0; \
  fi; \
done
endef
NEED_PYTHON = test -n "$$($(FIND_PYTHON))" || { echo "Python is missing: install Python 3.11 or newer with venv (Debian: python3 python3-venv)" >&2; exit 1; }

help: ## explain the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: .venv/.engine ## make .venv and build the engine into it

dev: build ## run two local chains with real flashblocks
	@exec $(BIN)/foreblock dev

test: build ## run the Rust tests, then the Python tests
	@cargo test --locked --package foreblock-engine
	@cargo test --locked --manifest-path fuzz/Cargo.toml --target-dir target
	@$(BIN)/python -m pytest --numprocesses=auto --dist=loadgroup --ignore=tests/clients

busy: build ## run all tests RUNS times while something else burns every core, and once on one core
	@$(BIN)/python tests/busy/run.py --runs $(RUNS)

lint: build ## check format, style and types of both languages, and the engine's stub
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy
	@$(BIN)/python -m mypy.stubtest foreblock._engine --allowlist <(printf 'foreblock._engine.%s\n' $(STUB_ONLY))
	@cargo fmt --all --check
	@cargo fmt --manifest-path fuzz/Cargo.toml --check
	@cargo clippy --locked --workspace --all-targets -- --deny warnings
	@cargo clippy --locked --manifest-path fuzz/Cargo.toml --all-targets --target-dir target -- --deny warnings

.PHONY: docs
docs: website/.venv/.installed ## build the docs as a site in build/site, and check its links and that it loads nothing from elsewhere
	@NO_MKDOCS_2_WARNING=1 PYTHONPATH=. website/.venv/bin/mkdocs build --quiet --strict --config-file website/mkdocs.yml
	@PYTHONPATH=. website/.venv/bin/python -m website.check build/site

bench: build ## measure the engine on this machine
	@$(BIN)/foreblock bench engine

measure: build ## measure logs, their index, subscribers and dev chains, beside geth and anvil; SMALL=1 for a quick look
	@PYTHONPATH=tests $(BIN)/python tests/measures/index_commits.py $(if $(SMALL),--blocks 30 --rounds 1)
	@PYTHONPATH=tests $(BIN)/python tests/measures/logs.py $(if $(SMALL),--blocks 100 --long 1000 --settle 5)
	@PYTHONPATH=tests $(BIN)/python tests/abuse/subscribers.py $(if $(SMALL),--subscribers 100 --load 50 --seconds 4 --idle 200)
	@PYTHONPATH=tests $(BIN)/python tests/measures/dev_times.py $(if $(SMALL),--rounds 1 --transactions 100 --blocks 100 --slots 100)

dev-times: build ## take the times of dev --like anvil beside anvil, in rounds that alternate; ONLY=slots
	@PYTHONPATH=tests $(BIN)/python tests/measures/dev_times.py $(if $(ONLY),--only $(ONLY)) $(if $(PEERS),--peers $(PEERS))

abuse: build ## attack the service at full scale, and see that others are served meanwhile
	@PYTHONPATH=tests $(BIN)/python tests/abuse/run.py

crash: build ## run long histories of the store beside a model, then kill writers KILLS times, with clients watching what they lose
	@FOREBLOCK_CASES=$$(($(KILLS) * 50)) cargo test --locked --package foreblock-engine store::tests
	@TMPDIR=$(ON_DISK) FOREBLOCK_DEV_KILLS=$(KILLS) FOREBLOCK_BLOCK_KILLS=$(KILLS) FOREBLOCK_SOAK=$(KILLS) \
	  FOREBLOCK_FOLLOWER_KILLS=$$(($(KILLS) / 4)) \
	  FOREBLOCK_DEV_EXAMPLES=$(KILLS) FOREBLOCK_DEV_STEPS=$$(($(KILLS) * 4)) \
	  $(BIN)/python -m pytest tests/crash tests/sequencer/dev/test_everything.py

soak: build ## let a chain live for BLOCKS blocks, faster than time, and see what grows
	@PYTHONPATH=tests $(BIN)/python tests/soak/run.py --blocks $(BLOCKS)

watched: build ## leave the page open, then let Prometheus scrape while processes are killed, for MINUTES each
	@PYTHONPATH=tests $(BIN)/python tests/soak/page.py --minutes $(MINUTES)
	@PYTHONPATH=tests $(BIN)/python tests/soak/scraped.py --minutes $(MINUTES)

clients: build tests/clients/.installed ## try the libraries and tools of tests/clients, which it installs, against the service
	@FOREBLOCK_CLIENTS=required $(BIN)/python -m pytest tests/clients

tools: build ## run everyday flows of 15 tools, which it installs, against dev chains and anvil; ONLY=viem
	@PYTHONPATH=tests $(BIN)/python tests/tools/run.py $(ONLY:%=--only=%)

consistency: build ## hammer a dev chain under load for a minute, and judge every answer
	@PYTHONPATH=tests $(BIN)/python tests/checker/run.py

weather: build ## follow a chain through every fault for MINUTES each, and judge every answer
	@FOREBLOCK_REORG=500 $(BIN)/python -m pytest -q tests/ledger/following/test_deep_reorgs.py tests/sources/test_deep_reorg.py
	@PYTHONPATH=tests $(BIN)/python tests/weather/run.py --minutes $(MINUTES) --seed $(SEED)

replicas: build ## run a cluster on NATS through KILLS kills and CUTS cuts, and hold every node against the log
	@PYTHONPATH=tests $(BIN)/python tests/replicas/run.py --kills $(KILLS) --cuts $(CUTS) $(CHECKS)

follow: build ## follow a busy chain from an empty store, with lies, weather, silence and kills, for MINUTES each; CHECKS names some
	@PYTHONPATH=tests $(BIN)/python tests/follow/run.py --minutes $(MINUTES) $(or $(CHECKS),all)

faults: build ## let the disk fail at each of CALLS calls, be full and be read-only, and see that networks come back
	@TMPDIR=$(ON_DISK) FOREBLOCK_FAULTS=$(CALLS) $(BIN)/python -m pytest tests/faults
	@PYTHONPATH=tests $(BIN)/python tests/faults/run.py --calls $(CALLS)

fuzz: build ## let inputs look for what breaks a promise, for MINUTES in all; TARGETS names some
	@PYTHONPATH=tests $(BIN)/python tests/fuzz/run.py --minutes $(MINUTES) $(TARGETS)

wheel: .venv/.tools ## build the packages into dist, and try the wheel in an empty environment; ONLY=x86_64
	@PYTHONPATH=tests $(BIN)/python tests/packages/run.py $(ONLY:%=--only=%)

clean: ## remove everything that was built
	rm -rf website/.venv website/__pycache__ build/site tests/clients/.installed tests/clients/.venv tests/clients/node_modules tests/clients/ethclient/ethclient
	rm -rf tests/tools/.installed tests/tools/node_modules tests/tools/*/.installed tests/tools/*/.venv tests/tools/*/node_modules
	rm -rf .venv target dist .mypy_cache .pytest_cache .ruff_cache .hypothesis python/foreblock/_engine*.so
	find python tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A lock names everything, so nothing is resolved: where a package wants another with an extra, pip
# would take the newest version of that, which no lock has.
.venv/.tools: requirements.lock
	@command -v cargo >/dev/null || { echo "cargo is missing: install Rust 1.91 or newer (rustup)" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "cc is missing: install a C compiler (Debian: build-essential)" >&2; exit 1; }
	@$(NEED_PYTHON)
	@test -x $(BIN)/python || "$$($(FIND_PYTHON))" -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement requirements.lock
	@touch $@

.venv/.engine: .venv/.tools pyproject.toml $(ENGINE_SOURCES)
	@VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/maturin develop --locked --profile $(PROFILE)
	@$(BIN)/python -m compileall -q python/foreblock
	@touch $@

tests/clients/.installed: tests/clients/package-lock.json tests/clients/requirements.lock $(ETHCLIENT_SOURCES) .venv/.tools
	@command -v npm >/dev/null || { echo "npm is missing: install node 20 or newer (Debian: npm)" >&2; exit 1; }
	@command -v go >/dev/null || { echo "go is missing: install Go 1.24 or newer" >&2; exit 1; }
	@npm ci --prefix tests/clients --loglevel=error --no-audit --no-fund
	@test -x tests/clients/.venv/bin/python || $(BIN)/python -m venv tests/clients/.venv
	@tests/clients/.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement tests/clients/requirements.lock
	@CGO_ENABLED=0 go build -C tests/clients/ethclient -o ethclient .
	@touch $@

website/.venv/.installed: website/requirements.lock
	@$(NEED_PYTHON)
	@test -x website/.venv/bin/python || "$$($(FIND_PYTHON))" -m venv website/.venv
	@website/.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement website/requirements.lock
	@touch $@
