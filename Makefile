# The verbs of the project; `make` alone lists them.
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 1
SOURCES := hvd_deepreduce tf/hvd_deepreduce torch/hvd_deepreduce
CPP := $(wildcard hvd_deepreduce/native/*.cpp hvd_deepreduce/native/*.hpp tf/hvd_deepreduce/tf/native/*.cpp tf/hvd_deepreduce/tf/native/*.hpp tests/fuzz/*.cpp tests/fuzz/*.hpp)

.DEFAULT_GOAL := help
.PHONY: help env demo demo-tf demo-ncf curves test test-long native-test fuzz lint format bench figure8 golden wheel \
	wheel-check tf-newer lock docs compose-check docker-check clean

help: ## List the verbs.
	@echo "hvd_deepreduce: gradient compression for stock Horovod"
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-13s %s\n", $$1, $$2 }'

env: ## Install what is missing and make .venv (the first time builds Horovod, about 8 minutes).
	@docker/setup.sh --venv $(VENV)

demo: env ## Train Fashion-MNIST on two ranks: dense, fp16, density 1 % and 0.1 %; print a table.
	@$(BIN)/python torch/examples/demo.py

demo-tf: env ## The same with TensorFlow and Keras.
	@$(BIN)/python tf/examples/demo.py

demo-ncf: env ## Train a model with sparse embeddings on two ranks, their gradients exchanged in four ways; print a table.
	@$(BIN)/python torch/examples/demo_ncf.py

curves: env ## Train by every method with three seeds; renew docs/training-curves.md (about half an hour).
	@$(BIN)/python tests/bench/curves/make_curves.py

test: env ## Run the tests.
	@$(BIN)/python -m pytest

test-long: env ## Run what takes too long for every submission: 4 ranks, every triple, 5,000 steps (about 40 minutes).
	@$(BIN)/python -m pytest -m long

native-test: env ## Run the kernels under ASan and UBSan on the kept fuzz inputs.
	@$(MAKE) --no-print-directory -C tests/fuzz replay PYTHON=$(abspath $(BIN))/python

fuzz: env ## Search for new inputs with libFuzzer (RUNS=10000000, JOBS=1) and keep them.
	@$(MAKE) --no-print-directory -C tests/fuzz -j$(JOBS) fuzz PYTHON=$(abspath $(BIN))/python

lint: env ## Check style and types: ruff, mypy --strict, clang-format.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CPP)

format: env ## Rewrite the sources in the project's style.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

bench: env ## Measure size and speed.
	@for script in tests/bench/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

figure8: env ## Measure DeepReduce's figure 8 again; writes docs/figure8.md and its picture (minutes).
	@$(BIN)/python tests/bench/figure8.py --write

golden: env ## Write golden vectors for new cases; never changes an old one.
	@$(BIN)/python tests/golden/make_golden.py

wheel: env ## Build a wheel and an sdist into dist/.
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation

wheel-check: wheel ## Install them in clean environments, without a framework and with each, and try them (about 5 minutes).
	@$(BIN)/python tests/packed/check_wheel.py

tf-newer: env ## Try a newer TensorFlow (VERSION=2.21) under Keras 2 and 3, Horovod built for it (about 15 minutes the first time).
	@docker/try_tensorflow.sh $(or $(VERSION),2.21)

lock: env ## Write the versions of all Python packages in .venv to docker/lock.txt.
	@docker/lock.sh $(BIN)/python

docs: ## Build the site into build/site; a warning is an error.
	@docker/docs.sh

compose-check: ## Run the roles of docker/compose.yaml in network namespaces, over ssh, on Gloo and MPI (as root).
	@docker/compose_check.sh

docker-check: ## Build docker/cpu.Dockerfile with buildah, train in it on MPI and Gloo, run the tests in it (as root).
	@docker/check.sh

clean: ## Remove what was built (not .venv, not the Horovod wheel).
	rm -rf build dist *.egg-info hvd_deepreduce/*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
