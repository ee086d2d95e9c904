# Everything happens in .venv, which `make setup` builds from the locked requirements.

PYTHON ?= python3
BIN := .venv/bin
# Tests start hundreds of processes, each of which would compile the package again.
export PYTHONDONTWRITEBYTECODE :=
# Type checks without a cache take a minute or two on one core.
SIDE_BY_SIDE := $(MAKE) --no-print-directory -j3 lint types pytest \
	|| { echo 'Failed. A line with "Error" above names what did: lint, types or pytest.' >&2; exit 1; }
PYTEST := pytest -q -n auto --maxprocesses 4 --dist worksteal

.PHONY: help setup demo tour check test pytest coverage sim faults rewrite lint types format docs bench lock clean

help:  ## Show what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

.venv/.ready: requirements/dev.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("kubesched needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch .venv/.ready

setup: .venv/.ready  ## Build the virtual environment

demo: .venv/.ready  ## Run a cluster here: placed, preempted, the leader killed and replaced, explained
	@$(BIN)/kubesched sandbox --nodes 6 --zones a,b,c --node-cpu 4 --no-scheduler \
		--start-latency 200ms --stop-latency 200ms -- $(BIN)/python examples/live_demo.py

tour: .venv/.ready  ## Place a saved cluster's pods, and explain one that does not fit
	@$(BIN)/kubesched demo

check: .venv/.ready  ## Run linters, type checks and the tests of what differs from main, or all fast tests
	@TESTS="$$($(BIN)/python -m tests.changed)" $(SIDE_BY_SIDE)

test: .venv/.ready  ## Run linters, type checks and all tests, side by side
	@TESTS= $(SIDE_BY_SIDE)

pytest: .venv/.ready
	$(BIN)/python -m $(PYTEST) $$TESTS

coverage: .venv/.ready  ## Measure the branch coverage of all tests, processes included; fails below the floor
	$(BIN)/coverage erase
	$(BIN)/coverage run -m $(PYTEST)
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

sim: .venv/.ready  ## Play SEEDS random scenarios (1000) under every fault plan, all invariants checked
	$(BIN)/python -m tests.simulation

faults: .venv/.ready  ## Play RUNS random runs (200) of two replicas under faults, over sockets
	@$(BIN)/python -m tests.e2e.faults

rewrite: .venv/.ready  ## Write down what the scenarios' transcripts do now; read the difference
	$(BIN)/python -m tests.scenarios

lint: .venv/.ready  ## Check style and the imports between rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: .venv/.ready  ## Check types
	$(BIN)/mypy

format: .venv/.ready  ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/.ready  ## Build the reference of the Python API into build/api
	$(BIN)/sphinx-build -q -n -W docs/api build/api

bench: .venv/.ready  ## Run the benchmarks and append to benchmarks/history.jsonl
	$(BIN)/python -m benchmarks

lock: .venv/.ready  ## Renew the locked requirements (needs uv)
	uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -o requirements/run.txt
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -o requirements/dev.txt

clean:  ## Remove what was built
	rm -rf .venv dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
