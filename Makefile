# Few verbs; `make` alone lists them. The environment lives in .venv of this
# checkout; stamp files in it say what it was made from, so nothing is built twice.

.DEFAULT_GOAL := help
.PHONY: help build dev test lint docs clients tools check checks wheel clean
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory

BIN := .venv/bin
PROFILE ?= dev
MINUTES ?= 1
NAME ?=
COUNT ?=
ARGS ?=
ONLY ?=
# The stub is a package, the engine one module: its chapters are not there when it runs.
STUB_ONLY := __all__ $(filter-out __init__,$(basename $(notdir $(wildcard python/foreblock/_engine/*.pyi))))
# Tests marked `heavy` run in the thorough tier alone.
PYTEST := $(BIN)/python -m pytest --quiet -m 'not heavy' --dist=loadfile --no-loadscope-reorder
# Folders whose tests start processes.
PROCESS_TESTS := $(addprefix tests/,bench cli client/test_dev_chain.py crash faults follow log page recording replication service snapshot system)
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
NEED_RUST = command -v cargo >/dev/null || { echo "cargo is missing: install Rust 1.91 or newer (rustup)" >&2; exit 1; }; command -v cc >/dev/null || { echo "cc is missing: install a C compiler (Debian: build-essential)" >&2; exit 1; }
NEED_PYTHON = test -n "$$($(FIND_PYTHON))" || { echo "Python is missing: install Python 3.11 or newer with venv (Debian: python3 python3-venv)" >&2; exit 1; }

help: ## explain the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: .venv/.engine ## make .venv and build the engine into it

dev: build ## run two local chains with real flashblocks
	@exec $(BIN)/foreblock dev

test: build ## run the Rust tests, then the Python tests: those within one process beside those that start processes
	@$(NEED_RUST)
	@FOREBLOCK_CASES=25 PROPTEST_CASES=16 cargo test --locked --package foreblock-engine --lib
	@cargo test --locked --manifest-path fuzz/Cargo.toml --target-dir target --test corpus
	@$(PYTEST) --numprocesses=logical --ignore=tests/clients $(PROCESS_TESTS:%=--ignore=%) >.venv/in-process.log 2>&1 & in_process=$$!; \
	  trap 'exit 130' INT; trap "kill $$in_process 2>/dev/null || true" EXIT; \
	  failed=0; $(PYTEST) --numprocesses=auto $(PROCESS_TESTS) | tee .venv/processes.log || failed=1; \
	  wait $$in_process || failed=1; cat .venv/in-process.log; \
	  echo "in-process tests:    $$(tail -n 1 .venv/in-process.log)"; \
	  echo "multi-process tests: $$(tail -n 1 .venv/processes.log)"; exit $$failed

lint: build ## check format, style and types of both languages, and the engine's stub
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy
	@$(BIN)/python -m mypy.stubtest foreblock._engine --allowlist <(printf 'foreblock._engine.%s\n' $(STUB_ONLY))
	@cargo fmt --all --check
	@cargo fmt --manifest-path fuzz/Cargo.toml --check
	@cargo clippy --locked --workspace --all-targets -- --deny warnings
	@cargo clippy --locked --manifest-path fuzz/Cargo.toml --all-targets --target-dir target -- --deny warnings

docs: website/.venv/.installed ## build the docs as a site in build/site, and check its links and that it loads nothing from elsewhere
	@NO_MKDOCS_2_WARNING=1 PYTHONPATH=. website/.venv/bin/mkdocs build --quiet --strict --config-file website/mkdocs.yml
	@PYTHONPATH=. website/.venv/bin/python -m website.check build/site

clients: build tests/clients/.installed ## try the libraries and tools of tests/clients, which it installs, against the service
	@FOREBLOCK_CLIENTS=required $(BIN)/python -m pytest tests/clients

tools: build ## run everyday flows of 15 tools, which it installs, against dev chains and anvil; ONLY=viem
	@PYTHONPATH=tests $(BIN)/python tests/tools/run.py $(ONLY:%=--only=%)
	@$(if $(ONLY),,$(BIN)/python -m pytest --quiet tests/tools/test_integrations.py)

check: build ## run one heavy suite: NAME=crash, with MINUTES=1 or COUNT=50, ARGS="--only drop"; lists them without NAME
	@$(BIN)/python tests/checks.py $(NAME) --minutes $(MINUTES) $(if $(COUNT),--count $(COUNT)) --args="$(ARGS)"

checks: build ## run every heavy suite for MINUTES=1 each and write docs/checked.md
	@$(BIN)/python tests/checks.py --all --minutes $(MINUTES)

wheel: .venv/.tools ## build the packages into dist, and try the wheel in an empty environment; ONLY=x86_64
	@$(NEED_RUST)
	@mkdir -p dist && rm -f dist/engine-sources && $(HASH_SOURCES) >dist/engine-sources.part
	@PYTHONPATH=tests $(BIN)/python tests/packages/run.py $(ONLY:%=--only=%)
	@mv dist/engine-sources.part dist/engine-sources # as they were when the build began

clean: ## remove everything that was built
	rm -rf website/.venv website/__pycache__ build/site tests/clients/.installed tests/clients/.venv tests/clients/node_modules tests/clients/ethclient/ethclient
	rm -rf tests/tools/.installed tests/tools/node_modules tests/tools/*/.installed tests/tools/*/.venv tests/tools/*/node_modules
	rm -rf .venv target dist .mypy_cache .pytest_cache .ruff_cache .hypothesis python/foreblock/_engine*.so
	find python tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A lock names everything, so nothing is resolved: where a package wants another with an extra, pip
# would take the newest version of that, which no lock has.
.venv/.tools: requirements.lock
	@$(NEED_PYTHON)
	@test -x $(BIN)/python || "$$($(FIND_PYTHON))" -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement requirements.lock
	@touch $@

# `make wheel` writes the hash of the sources beside the wheels. The engine of a wheel with the same
# hash is used instead of compiling it; the Python code is that of the checkout.
HASH_SOURCES = cat $(sort $(ENGINE_SOURCES)) | sha256sum
define INSTALL_WHEEL
$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall --find-links "$$FOREBLOCK_WHEEL_DIR" foreblock; \
packages="$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"; \
mv "$$packages"/foreblock/_engine*.so python/foreblock; rm -r "$$packages/foreblock"; \
echo "$(CURDIR)/python" >"$$packages/foreblock.pth"
endef

# A profile that is named builds even if the engine is up to date: it may be that of another profile.
ifeq ($(origin PROFILE),command line)
.PHONY: .venv/.engine
endif
.venv/.engine: .venv/.tools pyproject.toml $(ENGINE_SOURCES)
	@if [ $(origin PROFILE) = file ] && [ -n "$${FOREBLOCK_WHEEL_DIR:-}" ]; then \
	  if $(HASH_SOURCES) | cmp -s - "$$FOREBLOCK_WHEEL_DIR/engine-sources"; then $(INSTALL_WHEEL); exit; fi; \
	  echo "FOREBLOCK_WHEEL_DIR has no wheel of these sources: compiling the engine" >&2; \
	fi; $(NEED_RUST); VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/maturin develop --locked --profile $(PROFILE)
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
