.DEFAULT_GOAL := help
BIN := .venv/bin
MILLIONS ?= 1,10,50
MUTANTS ?=
JOBS ?= 2
# Each process collects all tests, which takes as long as hundreds of fast ones: a third process made
# the fast tier slower. Container tests run alone: they keep both cores busy, and took as long beside
# the tests of Spark.
PARALLEL ?= --numprocesses 2 --dist worksteal
SHARD ?=
SPLIT = $(if $(SHARD),--splits $(lastword $(subst /, ,$(SHARD))) --group $(firstword $(subst /, ,$(SHARD))) --durations-path tests/durations.json)
# `tests/harness/test_snapshots.py` finds unused snapshots in less time.
TIER = $(BIN)/pytest --snapshot-disable-unused --durations=20
# Without kept byte code each process of a test run would compile the project again.
export PYTHONDONTWRITEBYTECODE =

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "  %-10s %s\n", $$1, $$2}'

setup: ## Python environment, Java, container engine, images
	@bash scripts/setup.sh

images: ## build the images that are missing
	@SKIP_IMAGES=1 bash scripts/setup.sh
	@bash scripts/engine.sh
	@$(BIN)/streamquake images build

demo: setup ## the main experiment; prints the path of its report
	$(BIN)/streamquake run kill-taskmanager-mid-checkpoint

test: setup ## every test but the nightly ones: fast, spark, container
	@status=0; for tier in fast spark container; do \
	  $(MAKE) --no-print-directory tier-$$tier || status=1; \
	done; exit $$status

test-fast: ## the tests in one process, with neither a container engine nor Spark
	@SKIP_IMAGES=1 bash scripts/setup.sh
	@$(MAKE) --no-print-directory tier-fast

test-spark: ## the slow tests and those that start Spark or another process, without a container engine
	@SKIP_IMAGES=1 bash scripts/setup.sh
	@$(MAKE) --no-print-directory tier-spark

tier-fast:
	TMPDIR=$$(bash scripts/test-folder.sh) $(TIER) $(PARALLEL) -m "not slow and not process and not spark and not container and not nightly"

tier-spark:
	$(TIER) $(PARALLEL) -m "(slow or process or spark) and not container and not nightly"

tier-container:
	$(TIER) -m "container and not nightly"

check: ## format, lint, types
	@SKIP_IMAGES=1 bash scripts/setup.sh
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

reference: ## generate the pages of docs/ that describe the code
	@SKIP_IMAGES=1 bash scripts/setup.sh
	$(BIN)/python -m streamquake.harness.reference

bench: setup ## measure; MILLIONS=1 for a small run of the reconciliation
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-bench.txt
	$(BIN)/python -m tests.benchmarks.bench_producer
	$(BIN)/python -m tests.benchmarks.bench_reconcile --millions $(MILLIONS)
	$(BIN)/python -m tests.benchmarks.bench_verdict
	$(BIN)/python -m tests.benchmarks.bench_injection
	$(BIN)/python -m tests.benchmarks.bench_agent
	$(BIN)/python -m tests.benchmarks.bench_trigger
	$(BIN)/python -m tests.benchmarks.bench_trials

bench-large: setup ## a hundred million records per side, once with few anomalies and once with a million of each class
	$(BIN)/python -m tests.benchmarks.bench_reconcile --millions 100 --rounds 1 --engines streamquake
	$(BIN)/python -m tests.benchmarks.bench_reconcile --millions 100 --rounds 1 --engines streamquake --planted 1000000

mutants: ## mutation testing without an engine; MUTANTS="streamquake.harness.verdict.checks.*" selects a part
	@SKIP_IMAGES=1 bash scripts/setup.sh
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-mutants.txt
	@JOBS=$(JOBS) bash scripts/mutants.sh $(MUTANTS)
	@$(BIN)/python -m tests.mutation $(MUTANTS)

nightly: setup ## the long tests; SHARD=2/6 runs the second of six parts of about the same duration
	$(TIER) -m nightly $(SPLIT)

clean: ## remove containers, networks, images and the environment; keeps runs/ and fetched artefacts
	@bash scripts/clean.sh

.PHONY: help setup images demo test test-fast test-spark tier-fast tier-spark tier-container check reference bench bench-large mutants nightly clean
