# Two commands: `make demo` and `make test`. Each sets up .venv first if need be.
# PYTHON=/path/to/python picks another interpreter (3.11 or later).
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO_OUT ?= demo
# Where PyTorch comes from, such as https://download.pytorch.org/whl/cpu; else pip's own.
TORCH_INDEX ?=

.PHONY: demo test lint bench study docs release-check clean
demo: $(READY)
	$(BIN)/brainlsap demo --out $(DEMO_OUT)

# Bytecode is kept: else each process compiles the package and its tests anew.
# One thread for each of two processes, and commands that start no processes of their
# own unless told how many: more than there are cores make everything slow. The order of
# tests is that of tests/conftest.py.
test: $(READY)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 LOKY_MAX_CPU_COUNT=1 \
		$(BIN)/python -m pytest --numprocesses 2 --dist loadscope --no-loadscope-reorder

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/codespell brainlsap tests tutorials benchmarks docs packaging *.md

bench: $(READY)
	$(BIN)/python benchmarks/epoch.py
	$(BIN)/python benchmarks/epoch.py --growth
	$(BIN)/python benchmarks/epoch.py --figure
	$(BIN)/python benchmarks/epoch.py --long
	$(BIN)/python benchmarks/recurrence.py
	$(BIN)/python benchmarks/loading.py
	$(BIN)/python benchmarks/tractography.py

# Slow: some hours on 2 cores. Adds dated tables to benchmarks/results/.
study: $(READY)
	$(BIN)/python benchmarks/bound_study.py
	$(BIN)/python benchmarks/perfect_scores.py
	$(BIN)/python benchmarks/set_coverage.py
	$(BIN)/python benchmarks/external_verdicts.py --cohorts 60
	$(BIN)/python benchmarks/spin_study.py
	$(BIN)/python benchmarks/quality.py cohorts kernels fcon1000
	$(BIN)/python benchmarks/ridge.py coverage null bnu1 time
	$(BIN)/python benchmarks/ridge_variants.py
	$(BIN)/python benchmarks/network_share.py 40 60 100 --seeds 20
	$(BIN)/python benchmarks/network_share.py normalized combinatorial planted permuted \
		direction interplay --seeds 5
	$(BIN)/python benchmarks/layers.py
	$(BIN)/python benchmarks/splits_study.py
	$(BIN)/python benchmarks/audit_study.py
	$(BIN)/python benchmarks/null_study.py comparison permuted
	$(BIN)/python benchmarks/large_cohorts.py
	$(BIN)/python benchmarks/large_study.py --people 1176 5000 10000
	$(BIN)/python benchmarks/determinism_study.py
	$(BIN)/python benchmarks/ranking.py settings null everywhere
	$(BIN)/python benchmarks/compare.py
	$(BIN)/python benchmarks/nodes.py runs cora citeseer pubmed
	$(BIN)/python benchmarks/node_leak.py
	$(BIN)/python benchmarks/reproduction.py

# Open site/index.html. Runs the tutorials; a warning stops it.
docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group docs
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs site
	@echo "Documentation: site/index.html"

# Builds sdist and wheel, installs the wheel outside the checkout, and tries it there.
release-check: $(READY)
	$(BIN)/python packaging/release_check.py

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or later was found; install one, or say PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "make: $(PYTHON) cannot make virtual environments; on Debian install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group test --group style --editable .
	touch $(READY)

clean:
	rm -rf $(VENV) $(DEMO_OUT)
