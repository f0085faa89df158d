# Two commands: `make compare` runs the quick study, `make test` runs every check.
# Each sets up what it needs in .venv first; PYTHON picks the interpreter (3.11 or newer).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
OUT ?= runs/quick

.PHONY: compare test
compare: $(VENV)/ready-to-run
	$(BIN)/posattn compare quick --out $(OUT) --jobs $(JOBS)

test: $(VENV)/ready-to-test
	PATH="$(CURDIR)/$(BIN):$$PATH" tools/check

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "posattn needs Python 3.11 or newer; run: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/ready-to-run: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/ready-to-test: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test,dev]'
	@touch $@ $(VENV)/ready-to-run
