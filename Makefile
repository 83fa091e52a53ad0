# Everything a person or CI runs, from a machine that has Python 3.11 or newer, make and a package
# registry. The environment is built in .venv from hashed locks: what running needs first, what
# tests and checks need when one of these is asked for.

VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
LOCK := requirements/dev.txt
PROJECT := pyproject.toml --extra uvloop
EDITABLE := --no-deps --no-build-isolation --editable .

# Tried in this order; override with PYTHON=/path/to/python.
PYTHONS := python3.13 python3.12 python3.11 python3 python

# Settings of the caller that would make pip install elsewhere, or Python import from elsewhere, or
# every process compile all sources anew: tests start more than a hundred.
unexport PYTHONHOME PYTHONPATH PYTHONDONTWRITEBYTECODE PIP_TARGET PIP_PREFIX PIP_ROOT
export PIP_USER := 0
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

.DEFAULT_GOAL := help
.PHONY: help demo bench performance docs page pictures release audit test quick near conformance soak fuzz mutate check format-check lint types imports format lock upgrade clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r target text; do printf '%-20s %s\n' "$$target" "$$text"; done

# --- Run ----------------------------------------------------------------------------------------

demo: $(VENV)/.runs ## Run a cluster in a box (options: ARGS="...")
	$(BIN)/kubestow demo $(ARGS)

bench: $(VENV)/.runs ## Run the benchmark workloads (options: ARGS="...")
	$(BIN)/kubestow bench $(ARGS)

performance: $(VENV)/.installed ## Measure anew what docs/performance.md says (ARGS="--repeat 3")
	$(BIN)/python docs/scripts/performance.py $(ARGS)

docs: $(VENV)/.installed ## Run the commands that pages show, and write their outputs
	$(BIN)/python -m tools.schemas
	$(BIN)/python docs/scripts/caches.py
	$(BIN)/python docs/scripts/report_picture.py
	$(BIN)/python docs/scripts/outputs.py

# Needs Node.js and npm, which nothing else does: what it writes is committed.
page: web/node_modules/.installed ## Build the page from web into src/kubestow/web/assets
	cd web && npm run --silent types && npm run --silent build

pictures: $(VENV)/.installed ## Make the pictures of the page that README and guides show (needs Chromium)
	$(BIN)/python docs/scripts/pictures.py

release: $(VENV)/.installed ## Build everything that is published, into dist (VERSION=x.y.z BASE_DIGEST=sha256:...)
	$(BIN)/python scripts/release.py $(if $(VERSION),--version $(VERSION)) $(if $(BASE_DIGEST),--base-digest $(BASE_DIGEST))

# Not in CI: advisories are published on the network. `--strict` because without it a package whose
# advisories cannot be read counts as one without any.
audit: $(VENV)/.installed ## Compare the pinned versions with published advisories (needs a network)
	$(UV) tool run --quiet --system-certs --from pip-audit==2.10.0 pip-audit --strict --disable-pip --require-hashes \
		--progress-spinner off $(foreach lock,runtime dev build,-r requirements/$(lock).txt) $(ARGS)

# --- Check --------------------------------------------------------------------------------------

test: $(VENV)/.installed ## Run all tests (options: ARGS="...")
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

quick: $(VENV)/.installed ## Run the tests that are not marked slow (options: ARGS="...")
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" $(ARGS)

near: $(VENV)/.installed ## Run the tests near what differs from main (BASE=origin/main, options: ARGS="...")
	$(BIN)/python -m tools.near $(if $(BASE),--base $(BASE)) $(ARGS)

conformance: $(VENV)/.runs ## Replay all recorded decisions and count differences (options: ARGS="...")
	$(BIN)/kubestow conformance conformance $(ARGS)

soak: $(VENV)/.installed ## Run the service under faults (SEEDS=1000, or ARGS="--minutes 60", "--seed 17 --shrink")
	$(BIN)/python -m tools.faults $(if $(SEEDS),--seeds $(SEEDS)) $(ARGS)

fuzz: $(VENV)/.installed ## Run arbitrary input through every parser (INPUTS=1000000, or ARGS="--minutes 60")
	$(BIN)/python -m tools.fuzz $(if $(INPUTS),--inputs $(INPUTS)) $(ARGS)

mutate: $(VENV)/.installed ## Change single operators and count what tests find (SAMPLE=200 SEED=1)
	$(BIN)/python -m tools.mutation $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) $(ARGS)

check: format-check lint types imports ## Check format, lint, types and imports

format-check: $(VENV)/.installed ## Check the format
	$(BIN)/ruff format --check .

lint: $(VENV)/.installed ## Check for mistakes
	$(BIN)/ruff check .

types: $(VENV)/.installed ## Check the types, strictly
	$(BIN)/pyright --pythonpath $(BIN)/python

imports: $(VENV)/.installed ## Check that folders import downwards only
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.installed ## Format, and mend what the linter can mend
	$(BIN)/ruff check --fix --exit-zero --quiet .
	$(BIN)/ruff format .

# --- Environment --------------------------------------------------------------------------------

lock: $(VENV)/.locked ## Write the lock anew, keeping versions that still fit pyproject.toml
	$(call compile,requirements/runtime.txt,$(PROJECT))
	$(call compile,$(LOCK),$(PROJECT) --extra reports --extra dask --group dev --constraint requirements/runtime.txt)
	$(call compile,requirements/build.txt,--group build --constraint $(LOCK))
	$(call compile,requirements/installer.txt,--group installer --constraint $(LOCK))

upgrade: ## Write the lock anew with the newest versions
	$(MAKE) lock COMPILE_FLAGS=--upgrade

clean: ## Remove the environment, caches and builds
	rm -rf $(VENV) web/node_modules .pytest_cache .ruff_cache .import_linter_cache .hypothesis .mutation build dist
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

# Names, versions and hashes only: which registry they come from is the business of each machine.
define compile
$(UV) pip compile $(2) --quiet --system-certs $(COMPILE_FLAGS) \
	--universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --output-file $(1)
endef

# A command may exist and still not run (a pyenv shim without its version), or lack what venv needs
# (Debian without python3-venv): each candidate is tried, not looked up.
define find_python
for candidate in $(if $(PYTHON),"$(PYTHON)",$(PYTHONS)); do \
	if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
		>/dev/null 2>&1; then python="$$candidate"; break; fi; \
done; \
if [ -z "$$python" ]; then \
	echo "cannot build $(VENV): none of" $(if $(PYTHON),"$(PYTHON)",$(PYTHONS)) \
		"is a Python 3.11 or newer with venv; install one or set PYTHON=/path/to/python" >&2; \
	exit 1; \
fi
endef

web/node_modules/.installed: web/package-lock.json
	cd web && npm ci --silent
	@touch $@

# uv installs in a tenth of pip's time. It does not read pip's settings, so where it fails, as for a
# registry that only pip was told about, pip does it.
define install
$(UV) pip $(1) --quiet --system-certs --python $(BIN)/python $(2) || $(BIN)/python -m pip install --quiet $(3)
endef

$(VENV)/.made: requirements/installer.txt
	@python=; $(find_python); \
	echo "building $(VENV) with $$python (once, until requirements change)"; \
	"$$python" -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes -r $<
	@touch $@

# What running needs. The package itself is this folder on the path.
$(VENV)/.runs: $(VENV)/.made requirements/runtime.txt requirements/build.txt pyproject.toml src/kubestow/__init__.py
	@$(call install,install,--require-hashes -r requirements/runtime.txt -r requirements/build.txt,--require-hashes -r requirements/runtime.txt -r requirements/build.txt)
	@$(call install,install,$(EDITABLE),$(EDITABLE))
	@touch $@

# A changed lock also removes what it no longer names.
$(VENV)/.locked: $(VENV)/.made $(LOCK)
	@$(call install,sync,--require-hashes $(LOCK),--require-hashes -r $(LOCK))
	@touch $@

# A changed pyproject.toml or version only registers the package again.
$(VENV)/.installed: $(VENV)/.locked pyproject.toml src/kubestow/__init__.py
	@$(call install,install,$(EDITABLE),$(EDITABLE))
	@touch $(VENV)/.runs $@
