# Two commands do everything: `make demo` and `make test`. Both make what they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKSPACE ?= results

.PHONY: demo test test-full lint types bench format clean

demo: $(VENV)/.demo
	$(BIN)/opera extract onnx --workspace $(WORKSPACE)
	$(BIN)/opera prioritize --workspace $(WORKSPACE)
	$(BIN)/opera run --compiler openvino --compiler onnxruntime --workspace $(WORKSPACE)
	$(BIN)/opera report --workspace $(WORKSPACE)
	$(BIN)/opera report --format html --output $(WORKSPACE)/report.html --workspace $(WORKSPACE)

test: lint types
	$(BIN)/python -m pytest -m "not full"

test-full: lint types
	$(BIN)/python -m pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/all.py

# The demo needs no TVM and no tools; the tests need everything.
$(VENV)/.demo: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[onnx,onnxruntime,openvino]"
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[onnx,torch,keras,onnxruntime,openvino,tvm,benchmark,dev]"
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
