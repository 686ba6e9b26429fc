# Every target installs what it needs first; CI calls only these.
PYTHON ?= $(shell for p in python3.12 python3.13 python3.11 python3; do \
	  "$$p" -c 'import sys, venv, ensurepip; raise SystemExit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
STAMP_DEV := $(VENV)/.installed-dev
ONCE ?=

.DEFAULT_GOAL := help
.PHONY: help install install-dev demo test check run worker chat bench golden sample clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: $(STAMP)  ## make .venv with everything that Penstock needs to run

install-dev: $(STAMP_DEV)  ## the same, and what its tests need

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Penstock needs Python 3.11, 3.12 or 3.13 with venv: install one, or name it: make PYTHON=/path/to/python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' uv

# uv is quick; where it cannot reach the package index that pip is set up for, pip does the same work.
$(STAMP): $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e . 2>/dev/null || $(BIN)/python -m pip install --quiet -c constraints.txt -e .
	@touch $@

$(STAMP_DEV): $(STAMP)
	$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e . --group dev 2>/dev/null || $(BIN)/python -m pip install --quiet -c constraints.txt -e . --group dev
	@touch $@

demo: $(STAMP)  ## share a sample manual in a local Slack, ask about it; ONCE=1 ends by itself
	$(BIN)/penstock demo $(if $(ONCE),--once)

test: $(STAMP_DEV)  ## run the tests; parts whose server is missing are skipped and named
	$(BIN)/python -m pytest -q -rs

check: $(STAMP_DEV)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

run: $(STAMP)  ## the bot and one worker, connected to your Slack
	$(BIN)/penstock run

worker: $(STAMP)  ## one more worker
	$(BIN)/penstock worker

chat: $(STAMP)  ## the same conversation in this terminal
	$(BIN)/penstock chat

bench: $(STAMP_DEV)  ## speed and memory, as tables
	$(BIN)/python -m tests.bench

golden: $(STAMP_DEV)  ## rewrite the expected output of the parsers, for review
	$(BIN)/python -m pytest -q tests/ingest --rewrite-golden

sample: $(STAMP)  ## make the sample manual again
	$(BIN)/python -m bot.playground.sample.make_manual

clean:  ## remove .venv and caches, never your data
	rm -rf $(VENV) .mypy_cache .ruff_cache build dist
