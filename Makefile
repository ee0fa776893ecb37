# Everything here needs python3, make and git; the rest is installed when it is first needed.
# Variables: PYTHON (an interpreter to make .venv with), WORKERS, SPARK (of `smoke`), ARGS (passed on).

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

WORKERS ?= 2
SPARK ?= 4.0
ARGS ?=
BOOTSTRAP := sh .ci/bootstrap.sh

.PHONY: help demo demo-streaming test thorough check lint nightly simulation chaos cluster connect oldest-spark oldest-sqlglot smoke neighbours neighbours-chaos neighbours-smoke rapids bench oracle gpu docs clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: ## flights that left New York in 2013, in windows and joins on Spark: tables and a picture
	@$(BOOTSTRAP) --extras demo --java python -m examples.flights $(ARGS)

demo-streaming: ## the same flights as a stream: late rows, early results, a live table
	@$(BOOTSTRAP) --extras demo --java python -m examples.flights --streaming $(ARGS)

test: ## the quick tests: every behaviour in a case or two
	@HYPOTHESIS_PROFILE=quick $(BOOTSTRAP) --java python -m pytest -n $(WORKERS) --dist load --maxschedchunk 1 $(ARGS)

thorough: ## what `make test` leaves out: the other cases, the other examples of each property
	@HYPOTHESIS_PROFILE=ci $(BOOTSTRAP) --java python -m pytest \
		-m '(thorough or hypothesis) and not slow and not connect and not neighbours' \
		-n $(WORKERS) --dist load --maxschedchunk 1 $(ARGS)

check: test thorough lint docs connect neighbours-smoke ## what every change must pass; `.ci/run` does so, but for neighbours

neighbours-smoke:
	@$(MAKE) neighbours MARKED='neighbours and smoke'

lint: ## ruff, mypy, the layers' contracts and the list of words
	@$(BOOTSTRAP) ruff check
	@$(BOOTSTRAP) ruff format --check
	@$(BOOTSTRAP) mypy
	@$(BOOTSTRAP) lint-imports
	@$(BOOTSTRAP) python -m tests.words

nightly: ## all tests, the slow ones too, with many more examples of each property
	@HYPOTHESIS_PROFILE=nightly SPARK_DRIVER_MEMORY=4g $(BOOTSTRAP) --java --postgres \
		python -m pytest -m 'not connect and not neighbours' -n $(WORKERS) --dist load --maxschedchunk 1 --timeout 3600 $(ARGS)

chaos: ## kill streaming queries at random moments and compare what they write
	@$(BOOTSTRAP) --java python -m tests.chaos $(ARGS)

cluster: ## a cluster on loopback: executors and workers that die, ways of shipping, Spark Connect
	@$(BOOTSTRAP) --java python -m tests.cluster $(or $(ARGS),deaths)

simulation: ## streaming queries from seeds, cut and crashing, e.g. ARGS='--seeds 0..100000'
	@$(BOOTSTRAP) python -m tests.simulation $(ARGS)

oracle: ## recorded runs again on a real Flink, or new: make oracle ARGS='fuzz --seed 7 --count 200'
	@$(BOOTSTRAP) --java python -m tests.oracle $(or $(ARGS),rerun)

connect: ## the tests through Spark Connect
	@$(BOOTSTRAP) --java python -m pytest -m connect $(ARGS)

oldest-spark: ## the smoke tests on the oldest PySpark supported
	@$(MAKE) smoke SPARK=4.0

oldest-sqlglot: ## the tests of SQL on the oldest sqlglot supported, in an environment of its own
	@$(BOOTSTRAP) --venv .venv-sqlglot --extras plots,spark,test --pin 'sqlglot==30.22.*' --java \
		python -m pytest tests/sql tests/expressions -n $(WORKERS) --dist load --maxschedchunk 1 $(ARGS)

smoke: ## the smoke tests on another PySpark, in an environment of its own: make smoke SPARK=4.1
	@$(BOOTSTRAP) --venv .venv-spark-$(SPARK) --extras plots,spark,test --pin 'pyspark==$(SPARK).*' --java \
		python -m pytest -m 'smoke and not neighbours' $(ARGS)

neighbours: ## Kafka, Delta Lake and Iceberg, with PySpark 4.1 in .venv-neighbours (fetches 700 MB)
	@$(BOOTSTRAP) --venv .venv-neighbours --extras plots,spark,test --pin 'pyspark==4.1.*' --java \
		python -m pytest tests/neighbours -m '$(or $(MARKED),neighbours)' $(ARGS)

neighbours-chaos: ## the same killed at random moments
	@$(BOOTSTRAP) --venv .venv-neighbours --extras plots,spark,test --pin 'pyspark==4.1.*' --java \
		python -m tests.neighbours $(ARGS)

rapids: ## what the RAPIDS Accelerator would run of our plans, asked without a GPU (fetches 1 GB)
	@$(BOOTSTRAP) --venv .venv-rapids --extras plots,spark,test --pin 'pyspark==4.0.3' --java \
		python -m tests.rapids $(ARGS)

bench: ## benchmarks, e.g. make bench ARGS='sliding --rows 10000000 --peers spark,polars'
	@$(BOOTSTRAP) --extras benchmarks --java python -m benchmarks $(or $(ARGS),sliding --rows 1000000)

# No virtual environment: a machine with a GPU may have no network, and brings its own packages.
gpu: ## four minutes of measurements on a machine with a GPU (ARGS='--seconds 590': ten); ARGS=--dry tries all but the launches
	@$(or $(PYTHON),$(wildcard .venv/bin/python),python3) -m benchmarks.gpu $(ARGS)

docs: ## the site of the documentation, in build/site; made in .venv-docs, a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(BOOTSTRAP) --venv .venv-docs --extras docs mkdocs build --strict $(ARGS)

clean: ## remove what was made here, virtual environments included
	rm -rf .venv .venv-spark-* .venv-sqlglot .venv-neighbours .venv-rapids .venv-docs .venv*.log dist build
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log artifacts
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
