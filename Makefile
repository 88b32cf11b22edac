# Everything a developer types. Needs make, git and Python 3.11 or newer with venv; the rest goes into .venv.

PYTHON ?= python3
VENV ?= .venv
PORT ?= 8000
TESTS ?=
JOBS ?= 2
SOAK ?=
BENCH ?=

BIN := $(VENV)/bin
MANAGE := $(BIN)/python manage.py
# The site as a developer runs it. A DEBUG from outside wins.
DEVELOP := DEBUG=$${DEBUG:-on} $(MANAGE)
# What somebody has exported for the site (a key, a database) must not reach the tests: every variable that
# .env.example names is taken away, and no .env file is read.
SITE_VARIABLES := $(shell sed -nE 's/^\#? ?([A-Z][A-Z0-9_]*)=.*/\1/p' .env.example)
CLEAN := env $(addprefix -u ,$(SITE_VARIABLES)) ENV_FILE=
CHECK := $(CLEAN) SECRET_KEY=only-for-checks DATABASE_URL=sqlite://:memory:

.DEFAULT_GOAL := help
.PHONY: help run admin test soak bench lint format audit requirements system-packages
.DELETE_ON_ERROR:

help:
	@echo "make run            start the site on http://127.0.0.1:$(PORT) (PORT=8137 make run for another port)"
	@echo "make admin          make an account that may use /admin/"
	@echo "make test           install what the tests need, then check everything; TESTS='-k stop' for some of it, JOBS=4 for more cores"
	@echo "make bench          measure what the site costs beside other designs; BENCH=redis for one section"
	@echo "make soak           a storm of stops and faults, a random walk over the rows, some 25 minutes; SOAK='--seed 7' for a certain one"
	@echo "make lint           only the checks that start nothing"
	@echo "make format         put the code into its standard form"
	@echo "make audit          ask an advisory service about the pinned packages; needs the network"
	@echo "make requirements   resolve the pinned requirements again"

run: $(VENV)/.site
	@echo "Bringing the database up to date"
	@$(DEVELOP) migrate --verbosity 0
	@if [ -d locale ]; then echo "Compiling translations"; $(BIN)/python -m babel.messages.frontend -q compile -d locale -D django; fi
	@echo "Collecting static files"
	@$(DEVELOP) collectstatic --noinput --verbosity 0
	@echo "Starting the site; Ctrl-C ends it"
	@$(DEVELOP) serve --port $(PORT)

admin: $(VENV)/.site
	@$(DEVELOP) migrate --verbosity 0
	@$(DEVELOP) createsuperuser

test: system-packages lint
	@echo "Running the tests"
	@$(CLEAN) $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder $(TESTS)

bench: system-packages $(VENV)/.tests
	@$(CLEAN) $(BIN)/python -m testing.bench $(BENCH)

soak: system-packages $(VENV)/.tests
	@$(CLEAN) $(BIN)/python -m testing.storm $(SOAK)
	@$(CLEAN) $(BIN)/python -m pytest -q --hypothesis-profile=long chat/tests/test_any_order.py

lint: $(VENV)/.tests
	@echo "Checking style (ruff)"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@echo "Checking types (mypy)"
	@$(CHECK) $(BIN)/mypy --no-error-summary .
	@echo "Checking container files (hadolint, compose schema, Kubernetes schemas, yamllint)"
	@$(BIN)/hadolint Dockerfile
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec docker-compose.yml
	@$(BIN)/kubernetes-validate --quiet --strict $(filter-out %/kustomization.yaml,$(wildcard deploy/k8s/*.yaml))
	@$(BIN)/yamllint --strict docker-compose.yml deploy
	@echo "Checking that no migration is missing"
	@$(CHECK) $(MANAGE) makemigrations --check --dry-run --verbosity 0

format: $(VENV)/.tests
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

# Strict: a package about which the service knows nothing, or a service that is away, is a failure too.
audit: $(VENV)/.tests
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check pip-audit
	@$(BIN)/pip-audit --strict --disable-pip --no-deps -r requirements.txt -r requirements-dev.txt

system-packages:
	@scripts/install-system-packages

requirements: $(VENV)/.tests
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check uv
	@scripts/lock-requirements $(BIN)/uv

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Chatsite needs Python 3.11 or newer; name one: make run PYTHON=python3.12" >&2; exit 1; }
	@echo "Making the virtual environment $(VENV)"
	@# A Python that has gone leaves links to nowhere.
	@rm -f $(VENV)/bin/python*
	@$(PYTHON) -m venv $(VENV)

# Written when the environment is made: whatever was installed before may be for another Python.
$(VENV)/pyvenv.cfg: | $(VENV)/bin/python ;

# The stamps keep the second start fast: pip runs only after the pinned versions have changed.
$(VENV)/.site: requirements.txt $(VENV)/pyvenv.cfg
	@echo "Installing the site's Python packages"
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

$(VENV)/.tests: requirements-dev.txt $(VENV)/.site
	@echo "Installing the tests' Python packages"
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@
