# Two commands do everything: `make demo` and `make test`. Both make what they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKSPACE ?= results
# Tests in three processes, a file in one of them, in the order of tests/conftest.py. pytest-xdist hangs or fails where it
# starts one anew (with --dist loadfile): a process that dies ends the run, and says in which test.
SPREAD ?= -n 3 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

.PHONY: demo test test-full lint types bench cluster cpus format clean

demo: $(VENV)/.demo
	$(BIN)/opera extract onnx --workspace $(WORKSPACE)
	$(BIN)/opera prioritize --workspace $(WORKSPACE)
	$(BIN)/opera run --compiler openvino --compiler onnxruntime --workspace $(WORKSPACE)
	$(BIN)/opera report --workspace $(WORKSPACE)
	$(BIN)/opera report --format html --output $(WORKSPACE)/report.html --workspace $(WORKSPACE)

test: lint types
	$(BIN)/python -m pytest $(SPREAD) -m "not full"

test-full: lint types
	$(BIN)/python -m pytest $(SPREAD)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: $(VENV)/.dev
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/all.py

# Ray clusters of several nodes on this machine, with nodes and drivers that are killed: some minutes.
cluster: $(VENV)/.dev
	$(BIN)/python -m pytest tests/cluster

# Verdicts must not depend on the CPU: a nightly check of some minutes.
cpus: $(VENV)/.dev
	$(BIN)/python benchmarks/cpus.py

# The demo needs no TVM and no tools; the tests need everything.
$(VENV)/.demo: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[onnx,onnxruntime,openvino]"
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[onnx,torch,keras,onnxruntime,mnn,opencv,openvino,tract,tvm,benchmark,cluster,pandas,parquet,dev]"
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
