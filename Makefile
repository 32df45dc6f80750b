# Set-up goes into .venv and .cache, once; every target does what it needs of it. `make help` lists the targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# The Python to make .venv from, 3.11 or newer; found on PATH when not given.
PYTHON ?=

# Written last, so that an interrupted set-up is completed the next time.
INSTALLED := .venv/installed
# Marks that the native path was built from the sources as they are, or that there is no compiler for it.
KERNEL := .venv/kernel
JARS := .cache/jars/ready
TEST_JARS := .cache/jars/ready-for-tests
SPARK_CLASSES := .cache/spark/ready

# A moved clone or a removed Python leaves an environment that no longer runs.
ifneq ($(wildcard $(INSTALLED)),)
ifneq ($(shell .venv/bin/scylla-cdc --version >/dev/null 2>&1 && echo runs),runs)
$(shell rm -f $(INSTALLED))
endif
endif

# What Python compiles is kept, whatever the environment says: tests start hundreds of processes of these sources.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s  %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: needed $(SPARK_CLASSES) ## all that the other targets need, into .venv and .cache (PYTHON=... to choose one)

# Without what pays off only after several starts of Spark.
.PHONY: needed
needed: $(INSTALLED) $(KERNEL) $(JARS)

.PHONY: demo
demo: needed ## the whole way on this machine (ARGS='--rows 5000')
	@.venv/bin/scylla-cdc demo $(ARGS)

.PHONY: test
test: needed $(TEST_JARS) ## all gates and tests (ARGS='tests/cli -k help')
	@# Once, before each of the processes would do it.
	@.venv/bin/python -m compileall -q -j 2 -x '/test_[^/]*$$' connector embedded scylla_cdc smt spark_jobs tests
	@.venv/bin/python -m pytest --numprocesses=5 $(ARGS)

# The password is taken from SCYLLA_PASSWORD in the environment, where USER is somebody else.
.PHONY: real
real: needed $(TEST_JARS) ## the suite on a ScyllaDB of your own (SCYLLA=host:port[,...] USER=... TLS=ca.pem API=http://node:10000)
	@test -n '$(SCYLLA)' || { echo 'make real SCYLLA=host:port[,...]: which cluster?' >&2; exit 2; }
	@.venv/bin/scylla-cdc embedded check '$(SCYLLA)' $(if $(findstring command line,$(origin USER)),--user '$(USER)') \
		$(if $(TLS),--tls '$(TLS)') $(if $(API),--api '$(API)') $(ARGS)

.PHONY: lint
lint: $(INSTALLED) ## the gates alone: style, types, rules of the house
	@.venv/bin/python -m pytest --quiet tests/test_rooms.py tests/test_house.py tests/test_tools.py \
		tests/simulation/test_simulation_mutants.py::test_the_text_of_each_rule_stands_once_in_its_file $(ARGS)

.PHONY: soak
soak: needed $(TEST_JARS) ## hours of faults, simulated and real (SEEDS=1000 MINUTES=10)
	@.venv/bin/python -m tests.simulation.simulate 0 $(or $(SEEDS),1000)
	@.venv/bin/python -m tests.simulation.simulate 0 $(or $(SEEDS),1000) --plan snapshots
	@.venv/bin/python -m tests.simulation.simulate 0 $(or $(SEEDS),1000) --plan "snapshots again"
	@.venv/bin/python -m tests.simulation.simulate 0 $(or $(SEEDS),1000) --plan "snapshots anew"
	@.venv/bin/python -m tests.simulation.simulate 0 $(or $(SEEDS),1000) --plan signals
	@.venv/bin/python -m tests.simulation.simulate 0 $(or $(SEEDS),1000) --plan doubt
	@.venv/bin/python -m tests.simulation.simulate 0 $(or $(SEEDS),1000) --plan registry
	@.venv/bin/python -m tests.simulation.simulate 0 $(or $(SEEDS),1000) --plan "late leaders"
	@.venv/bin/python -m tests.simulation.simulate 0 $(or $(SEEDS),1000) --plan "stamped offsets"
	@.venv/bin/python -m tests.simulation.simulate 0 $(or $(SEEDS),1000) --plan unanswered
	@.venv/bin/python -m tests.native.soak $(or $(RECORDS),1000000)
	@.venv/bin/python -m tests.soak --minutes $(or $(MINUTES),10) $(ARGS)
	@.venv/bin/python -m tests.soak.snapshots --seeds 1,2,3
	@.venv/bin/python -m tests.soak.snapshot_histories --seeds 2,5,11,14,19,24
	@.venv/bin/python -m tests.soak.landing --seeds 1,2,3
	@.venv/bin/python -m tests.soak.whole --seeds 1,2,3
	@.venv/bin/python -m tests.soak.definitions --seeds 1,2,3
	@.venv/bin/python -m tests.soak.definitions --seeds 4,5 --sink iceberg
	@.venv/bin/python -m tests.soak.control --seeds 1,2,3 --minutes $(or $(MINUTES),10)

.PHONY: bench
bench: needed ## measure (ARGS=kafka for one of the benchmarks)
	@.venv/bin/python -m bench $(ARGS)

# The library in them runs wherever glibc 2.17 does; the compiler is the zig compiler's own wheel.
.PHONY: wheels
wheels: $(INSTALLED) ## wheels with the native path inside, for Linux on x86-64 and arm64, into dist
	@.ci/wheels

.PHONY: extras
extras: needed ## fetch the optional jars too: Iceberg, schema registry
	@.venv/bin/python -m spark_jobs.jvm jars

.PHONY: lock
lock: $(INSTALLED) ## pin Python packages and jars anew (needs uv)
	@uv pip compile --quiet --universal --python-version 3.11 --all-extras --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --no-emit-package scylla-cdc --no-emit-package scylla-cdc-embedded \
		pyproject.toml embedded/pyproject.toml -o requirements.lock
	@.venv/bin/python -m spark_jobs.jvm lock

.PHONY: clean
clean: ## remove .venv, .cache and what the tools left
	@rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info embedded/build embedded/*.egg-info

$(INSTALLED): requirements.lock pyproject.toml embedded/pyproject.toml .ci/setup
	@rm -f $@
	@PYTHON='$(PYTHON)' .ci/setup
	@touch $@

$(KERNEL): $(wildcard connector/native/kernel/*.[ch]) connector/native/build.py | $(INSTALLED)
	@.venv/bin/python -m connector.native
	@touch $@

$(JARS): spark_jobs/jvm/jars.lock | $(INSTALLED)
	@.venv/bin/python -m spark_jobs.jvm jars broker
	@.venv/bin/python -m spark_jobs.jvm java
	@# The one waits for the network, the other computes.
	@.venv/bin/python -m embedded.prepare_classes & made=$$!; \
		.venv/bin/python -m spark_jobs.jvm jars spark || { kill $$made; exit 1; }; wait $$made
	@mkdir -p $(@D)
	@touch $@

$(SPARK_CLASSES): spark_jobs/jvm/jars.lock requirements.lock | needed
	@.venv/bin/python -m spark_jobs.prepare_classes
	@mkdir -p $(@D)
	@touch $@

# What a user asks for and tests always try.
$(TEST_JARS): spark_jobs/jvm/jars.lock | $(JARS)
	@.venv/bin/python -m spark_jobs.jvm jars iceberg
	@touch $@
