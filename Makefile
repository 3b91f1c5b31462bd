PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := runs/demo

.PHONY: demo test lint docs clean

$(VENV)/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

$(VENV)/installed-docs: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

## Train four methods on the embedded digits, evaluate them under noise, and write runs/demo/report.html.
demo: $(VENV)/installed
	rm -rf $(RUN)
	$(BIN)/dign grid experiments/demo.toml --out $(RUN) --no-measure
	$(BIN)/dign report $(RUN) --out $(RUN)/report.html
	@echo "Open $(RUN)/report.html in a browser."

## The whole test suite.
test: $(VENV)/installed
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/installed
	$(BIN)/ruff check src tests examples benchmarks
	$(BIN)/ruff format --check src tests examples benchmarks
	$(BIN)/mypy

## The site, from docs/ into build/docs; a broken link or a docstring that cannot be read is an error.
docs: $(VENV)/installed-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "Open build/docs/index.html in a browser."

clean:
	rm -rf $(VENV) runs build dist
