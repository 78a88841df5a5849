# What a newcomer needs, from an empty machine with Python 3.11 or later and a C++20 compiler.
# Stamp files under $(VENV) remember what is installed, so a second call installs and builds nothing.

.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3.14 python3,$(shell command -v $(p))))
VENV ?= .venv
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
HOST ?= vllm
HOSTS := build/hosts-$(HOST)
CPREFIX := $(abspath build/c/prefix)
BENCH_COUNT ?= 300
BENCH_ENGINES ?= structgen,llguidance,xgrammar-compliant
BENCH_DATA ?= $(or $(STRUCTGEN_DATA),../shared/data)/maskbench
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check install -qq -c constraints.txt
CORE := $(VENV)/.core
SOURCES := CMakeLists.txt $(shell find csrc -type f)
BUILDING = PATH="$(abspath $(VENV)/bin):$$PATH" CMAKE_GENERATOR=Ninja CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS)
STUB := -m structgen._core -o structgen/_core.pyi -M structgen/py.typed -q
ASAN := build/asan
TSAN := build/tsan
FUZZ := build/fuzz-core
FUZZ_SECONDS ?= 120
# `make core`: Debug is for gdb, RelWithDebInfo for perf
TYPE ?= Release
DEV := build/core-$(TYPE)
INSTALLED = $(wildcard $(VENV)/lib/python*/site-packages/structgen/_core*.so)
# `make test-clients` (litellm's text_completion reads mcp): each in an environment of its own, since their requirements exclude each other's newest versions
CLIENTS ?= openai anthropic mcp openai-agents instructor pydantic-ai-slim[openai,mcp] langchain-openai litellm outlines[openai]
CPP = $(shell find csrc tests -name '*.cc' -o -name '*.h')
# `make differential`: pairs of a schema and a text, in all
PAIRS ?= 1000000
# `make attack`
SCHEMAS ?= 2000
# `make recorded`: cases in all, and the part of them to do
CASES ?= 1000000
SHARD ?= 1/1
# clang 16 or later: the newest that carries its number, else a plain clang++ that is new enough
CLANG ?= $(firstword $(foreach v,22 21 20 19 18 17 16,$(shell command -v clang++-$(v))) \
  $(shell test "$$(clang++ -dumpversion 2>/dev/null | cut -d. -f1)" -ge 16 2>/dev/null && command -v clang++))
ASAN_TESTS ?= tests/test_laws.py tests/test_regex_syntax.py tests/test_json_schema.py tests/test_numbers.py \
  tests/test_formats.py tests/test_hostile.py tests/test_logits.py tests/test_vocabulary.py

.PHONY: help setup demo hf test core format lint hooks docs test-clients test-page test-hosts test-cpp test-c test-asan test-tsan faults wheel test-wheel wheels check-release recursions fuzz cluster damage \
  attack planted differential recorded model bench bench-speculation stubs clean

help:  ## this list
	@sed -nE 's/^([a-z-]+):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(VENV)/.test $(VENV)/.qwen $(CORE)  ## a virtual environment in .venv with the package and its test dependencies

demo: $(VENV)/.types $(CORE)  ## set everything up, then answer three requests with the embedded model
	@$(VENV)/bin/structgen generate --prompts examples/requests.jsonl --limit 3

hf: $(VENV)/.hf  ## torch and transformers, for models of the hub and of folders

test: setup lint  ## set up the test dependencies, then lint and pytest
	@$(PY) -m pytest -q -n $(JOBS) --dist worksteal

# The library that pip built is replaced, so that every process of $(VENV) has the new one.
core:  ## the C++ core again after a change in csrc/, in seconds; TYPE=Debug for a debugger
	@test -e $(CORE) || $(MAKE) setup
	@$(VENV)/bin/cmake -S . -B $(DEV) -G Ninja -DCMAKE_BUILD_TYPE=$(TYPE) -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DSTRUCTGEN_BATCH=2 \
	  -DPython_EXECUTABLE=$(abspath $(PY)) -DCMAKE_MAKE_PROGRAM=$(abspath $(VENV)/bin/ninja) --log-level=WARNING
	@$(VENV)/bin/cmake --build $(DEV) -j $(JOBS)
	@for so in $(INSTALLED); do cp $(DEV)/_core*.so $$so.new && mv $$so.new $$so || exit 1; done
	@touch $(CORE)

format: $(VENV)/.test  ## the whole tree as clang-format and ruff write it
	@$(VENV)/bin/clang-format -i $(CPP)
	@$(PY) -m ruff check -q --fix-only .
	@$(PY) -m ruff format .

lint: $(VENV)/.test  ## clang-format, ruff and mypy --strict; changes nothing
	@$(VENV)/bin/clang-format --dry-run --Werror $(CPP)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

hooks: | $(PY)  ## format and lint before every commit, by pre-commit
	@$(PIP) pre-commit
	@$(VENV)/bin/pre-commit install

wheel: $(VENV)/.tools  ## the sdist, and the wheel built from the sdist, in dist/
	@rm -rf dist
	@$(BUILDING) $(PY) -m build --no-isolation --outdir dist

test-wheel: wheel  ## the wheel in a clean environment, as a stranger meets it
	@$(PIP) pytest mypy
	@$(PY) -m pytest -q --noconftest tests/wheel_checks.py

wheels: $(VENV)/.tools  ## a wheel for each platform that this machine can build, in wheelhouse/ (Linux: needs docker)
	@$(PIP) cibuildwheel
	@rm -rf wheelhouse
	@$(PY) -m cibuildwheel --output-dir wheelhouse

check-release:  ## is this commit what TAG says? the release workflow asks first
	@$(PYTHON) tools/check_release.py "$$TAG"

test-clients: setup  ## OpenAI's client and the frameworks on top of it, at a real server
	@failed=0; for client in $(CLIENTS); do \
	  name=$${client%%[*}; there=build/clients/$$name; test -x $$there/bin/python || $(PYTHON) -m venv $$there; \
	  $$there/bin/python -m pip --disable-pip-version-check install -qq "$$client" openai pydantic mcp || exit 1; \
	  $$there/bin/python tests/clients.py --python $(abspath $(PY)) --only $$name || failed=1; \
	done; exit $$failed

test-page: setup $(VENV)/.test-page  ## the playground's page in headless Chromium, which the system has (STRUCTGEN_CHROMIUM)
	@$(PY) -m pytest -q tests/test_page.py

docs: $(VENV)/.docs  ## the documentation site, strict, links checked: build/site
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build -q
	@echo "build/site/index.html"

$(VENV)/.docs: pyproject.toml | setup
	@$(PIP) 'mkdocs-material>=9.5' 'mkdocstrings[python]>=0.26'
	@touch $@

test-cpp: setup  ## the C++ tests: containers, sets of stacks, the regex algebra, the engine beside a judge of JSON Schema
	@$(PY) -m pytest -q tests/test_cpp.py

# As a stranger builds it: no Python in CMake, installed, found by pkg-config.
test-c: setup $(CPREFIX)/.installed  ## libstructgen built and installed without Python, then its tests against what was installed
	@STRUCTGEN_C_PREFIX=$(CPREFIX) $(PY) -m pytest -q tests/test_c_api.py

# The C++ library is loaded beside the sanitizer's, which looks for the thrower of exceptions when it starts; the
# sanitizer's frames are ten times as large, so the tests of deep nesting want a larger stack.
test-asan: setup  ## the C++-facing tests on a debug build with ASan and UBSan
	@$(VENV)/bin/cmake -S . -B $(ASAN) -G Ninja -DCMAKE_BUILD_TYPE=Debug -DSTRUCTGEN_SANITIZE=ON \
	  -DPython_EXECUTABLE=$(abspath $(PY)) -DCMAKE_MAKE_PROGRAM=$(abspath $(VENV)/bin/ninja)
	@$(VENV)/bin/cmake --build $(ASAN) -j $(JOBS) --target _core structgen_tests
	@$(ASAN)/structgen_tests
	@ulimit -s 65536; LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libstdc++.so)" ASAN_OPTIONS=detect_leaks=0 \
	  UBSAN_OPTIONS=print_stacktrace=1 STRUCTGEN_CORE=$(ASAN) \
	  $(PY) -m pytest -q -p oracles.sanitized_core $(ASAN_TESTS)

test-tsan: setup  ## compiles, fills and batches from many threads on a build with ThreadSanitizer
	@$(VENV)/bin/cmake -S . -B $(TSAN) -G Ninja -DCMAKE_BUILD_TYPE=Release -DSTRUCTGEN_TSAN=ON \
	  -DPython_EXECUTABLE=$(abspath $(PY)) -DCMAKE_MAKE_PROGRAM=$(abspath $(VENV)/bin/ninja)
	@$(VENV)/bin/cmake --build $(TSAN) -j $(JOBS) --target _core structgen_tests
	@TSAN_OPTIONS=suppressions=tests/tsan.supp:die_after_fork=0 setarch -R $(TSAN)/structgen_tests
	@LD_PRELOAD=$$($${CXX:-c++} -print-file-name=libtsan.so) TSAN_OPTIONS=suppressions=tests/tsan.supp:die_after_fork=0 \
	  STRUCTGEN_CORE=$(TSAN) setarch -R $(PY) -m pytest -q -p oracles.sanitized_core tests/test_threads.py

faults: setup  ## calls that fail at every allocation and every unit of work, one child each: half an hour and more
	@STRUCTGEN_TESTS="-tc=atomic*" STRUCTGEN_FAULTS=0 $(PY) -m pytest -q -s tests/test_cpp.py

recursions:  ## recursions of the core that nothing bounds, from gcc's call graph
	@$(PYTHON) tools/recursions.py

fuzz: setup  ## every text that is read, fuzzed for FUZZ_SECONDS (120) each, then what ran of csrc/; fuzz/README.md
	@$(PIP) atheris || echo "without atheris: seeds are mutated at random" >&2
	@if [ -n "$(CLANG)" ]; then \
	  CC=$(subst ++,,$(CLANG)) CXX=$(CLANG) $(VENV)/bin/cmake -S . -B $(FUZZ) -G Ninja -DCMAKE_BUILD_TYPE=Release \
	    -DSTRUCTGEN_FUZZ=ON -DSTRUCTGEN_COVERAGE=ON -DPython_EXECUTABLE=$(abspath $(PY)) -DCMAKE_MAKE_PROGRAM=$(abspath $(VENV)/bin/ninja) && \
	  $(VENV)/bin/cmake --build $(FUZZ) -j $(JOBS) || exit 1; \
	else echo "without clang 16 or later: the C++ core is not instrumented" >&2; fi
	@$(if $(CLANG),STRUCTGEN_CORE=$(FUZZ)) nice $(PY) -m fuzz all --seconds $(FUZZ_SECONDS) --out build/fuzz
	@$(if $(CLANG),STRUCTGEN_CORE=$(FUZZ) nice $(PY) -m fuzz coverage --out build/fuzz)

cluster: setup  ## .clusterfuzzlite/build.sh without its image, and a hundred inputs of each target; needs clang
	@$(PIP) atheris
	@PATH="$(abspath $(VENV)/bin):$$PATH" CC=$(subst ++,,$(CLANG)) CXX=$(CLANG) $(PY) -m fuzz.cluster

damage: setup  ## saved files damaged 10,000 times each: refused or harmless?
	@$(PY) -m bench.damage

# The host and the wheel in an environment of their own: vLLM finds the backend by its entry point. Where torch comes
# from is the machine's business (UV_FIND_LINKS, UV_INDEX, ...). Those three want CUDA, and transformers imports them.
# The tests run in a folder of their own: pytest and Ray's workers import from where they start, and `structgen` has to
# be the wheel's and not the checkout's.
test-hosts: wheel $(if $(filter llama_cpp,$(HOST)),$(CPREFIX)/.installed)  ## the real serving engine HOST (vllm) with the wheel: gigabytes, once
	@test -f tests/hosts/test_$(HOST).py || { echo "HOST is one of: $(patsubst tests/hosts/test_%.py,%,$(wildcard tests/hosts/test_*.py))" >&2; exit 2; }
	@$(PIP) uv
	@test -x $(HOSTS)/bin/python || $(VENV)/bin/uv venv -q --python $(abspath $(PY)) $(HOSTS)
	@$(VENV)/bin/uv pip install -q --python $(HOSTS)/bin/python -r tests/hosts/$(HOST).txt pytest jsonschema openai httpx 'lark<1.4'
	@! test -f tests/hosts/$(HOST).nodeps.txt || $(VENV)/bin/uv pip install -q --no-deps --python $(HOSTS)/bin/python -r tests/hosts/$(HOST).nodeps.txt
	@$(VENV)/bin/uv pip uninstall -q --python $(HOSTS)/bin/python torchvision torchaudio torchcodec
	@$(VENV)/bin/uv pip install -q --python $(HOSTS)/bin/python --no-deps --reinstall dist/*.whl
	@cd $(HOSTS) && STRUCTGEN_C_PREFIX=$(CPREFIX) bin/python -m pytest -q --noconftest --import-mode=importlib \
	  -p no:cacheprovider --rootdir $(CURDIR)/tests/hosts $(CURDIR)/tests/hosts/test_$(HOST).py

attack: setup  ## SCHEMAS (2000) hostile schemas with 100 random walks each, then the other hostile inputs: a table
	@$(PY) -m bench.attack --seeds 0:$(SCHEMAS) --walks 100 --mask 200000 --jobs $(JOBS) --vocabulary tekken
	@$(PY) -m bench.attack --seeds 0:$(SCHEMAS) --walks 10 --mask 200000 --jobs $(JOBS) --kind regex
	@$(PY) -m bench.attack --seeds 0:$(SCHEMAS) --walks 10 --mask 200000 --jobs $(JOBS) --kind grammar
	@$(PY) -m bench.hostile
	@$(PY) -m bench.damage

planted: setup  ## bugs put into a copy of the engine on purpose: which tests see them?
	@PATH="$(abspath $(VENV)/bin):$$PATH" $(PY) -m bench.planted --jobs $(JOBS)

differential: setup  ## verdicts on random schemas beside two judges: PAIRS (1000000) in all, earlier runs included
	@$(PY) -m bench.differential --pairs $(PAIRS) --jobs $(JOBS)

recorded: setup  ## random grammars, tools, budgets and samplers beside their oracles: SHARD (1/1) of CASES (1000000)
	@$(PY) -m bench.recorded --cases $(CASES) --shard $(SHARD) --jobs $(JOBS)

model: $(VENV)/.train $(CORE)  ## train both embedded models (hours; resumes) and put them into the package
	@for model in target draft; do \
	  $(PY) -m training.train --model $$model && $(PY) -m training.export --model $$model || exit 1; done

bench: $(VENV)/.bench $(VENV)/.test $(CORE)  ## speed beside llguidance and xgrammar on MaskBench schemas, and a page
	@rm -rf build/bench
	@$(VENV)/bin/structgen bench masks --data $(BENCH_DATA) --engines $(BENCH_ENGINES) --count $(BENCH_COUNT) \
	  --jobs 1 --out build/bench
	@$(VENV)/bin/structgen bench report build/bench --out build/bench-report

bench-speculation: $(VENV)/.bench $(VENV)/.test $(CORE)  ## tokens a forward and seconds of speculative decoding
	@HF_HUB_OFFLINE=1 $(PY) -m bench.speculation

stubs: setup  ## write structgen/_core.pyi anew, after a change of csrc/bind/
	@$(PY) -m nanobind.stubgen $(STUB)

clean:  ## remove the builds, the caches and the virtual environment
	rm -rf build dist wheelhouse .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The requirements of one extra of pyproject.toml, without the package itself, which is built below.
$(VENV)/.%: pyproject.toml constraints.txt | $(PY)
	@echo "installing the requirements of '$*'" >&2
	@$(PY) -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); r = p["project"]; \
	  print(*r["dependencies"], *r["optional-dependencies"]["$*"], sep="\n")' > $(VENV)/$*.txt
	@$(PIP) -r $(VENV)/$*.txt
	@touch $@

# dashscope is wanted for one file, Qwen's vocabulary: its requirements (a web server) are left out.
$(VENV)/.qwen: constraints.txt $(VENV)/.test
	@$(PIP) --no-deps dashscope
	@touch $@

# What a build takes, so that it needs no isolated environment.
$(VENV)/.tools: pyproject.toml constraints.txt | $(PY)
	@$(PIP) $$($(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])') \
	  numpy cmake ninja build
	@touch $@

$(CPREFIX)/.installed: $(SOURCES) $(VENV)/.tools
	@$(VENV)/bin/cmake -S . -B build/c -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(VENV)/bin/ninja) \
	  -DSTRUCTGEN_PYTHON=OFF -DSTRUCTGEN_C=ON -DCMAKE_INSTALL_LIBDIR=lib --log-level=WARNING
	@$(VENV)/bin/cmake --build build/c -j $(JOBS)
	@$(VENV)/bin/cmake --install build/c --prefix $(CPREFIX) >/dev/null
	@touch $@

# An editable install: Python files are read where they are, the library is built under build/.
$(CORE): $(VENV)/.tools $(SOURCES) | $(PY)
	@echo "building the C++ core ($(JOBS) jobs, a few minutes the first time)" >&2
	@$(BUILDING) $(subst -qq,-v,$(PIP)) --no-build-isolation --no-deps --editable . 2>&1 | tee $(VENV)/build.log | \
	  sed -unE 's#^ *(\[[0-9]+/[0-9]+\]) .*/([^/]+)$$#  \1 \2#p' >&2; \
	  [ $${PIPESTATUS[0]} = 0 ] || { tail -50 $(VENV)/build.log; exit 1; }
	@touch $@

$(PY):
	@test -n "$(PYTHON)" || { echo "structgen needs Python 3.11 or later on the PATH" >&2; exit 2; }
	@echo "making $(VENV) with $(PYTHON)" >&2
	@$(PYTHON) -m venv $(VENV)
