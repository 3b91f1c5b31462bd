PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := runs/demo
CIFAR10 := runs/allout

.PHONY: demo cifar10 test lint docs clean

# Bytecode is kept from its first use on: else each of the many processes that the tests start would compile torch anew.
unexport PYTHONDONTWRITEBYTECODE

$(VENV)/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e ".[dev]"
	touch $@

## Train four methods on the embedded digits, evaluate them under noise, and write runs/demo/report.html.
demo: $(VENV)/installed
	rm -rf $(RUN)
	$(BIN)/dign grid experiments/demo.toml --out $(RUN) --no-measure
	$(BIN)/dign report $(RUN) --out $(RUN)/report.html
	@echo "Open $(RUN)/report.html in a browser."

## Train the best CIFAR-10 model that two and a half hours of two CPU cores give, and measure it; goes on after a stop.
cifar10: $(VENV)/installed
	$(BIN)/dign data fetch cifar10
	if test -e $(CIFAR10)/config.toml; then $(BIN)/dign train --resume $(CIFAR10); \
	else $(BIN)/dign train experiments/allout-cifar10.toml --out $(CIFAR10); fi
	$(BIN)/dign evaluate $(CIFAR10) --devices 2
	$(BIN)/dign report $(CIFAR10) --out $(CIFAR10)/report.html
	@echo "Open $(CIFAR10)/report.html in a browser."

## The whole test suite.
test: $(VENV)/installed
	$(BIN)/python -m pytest -n 3 --dist worksteal  # one more than cores: tests wait for processes that they start

lint: $(VENV)/installed
	$(BIN)/ruff check src tests examples benchmarks
	$(BIN)/ruff format --check src tests examples benchmarks
	$(BIN)/lint-imports
	$(BIN)/mypy

## The site, from docs/ into build/docs; a broken link or a docstring that cannot be read is an error.
docs: $(VENV)/installed
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "Open build/docs/index.html in a browser."

clean:
	rm -rf $(VENV) runs build dist
