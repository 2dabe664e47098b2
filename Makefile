# `make` or `make help` says what there is. Everything that is fetched comes from
# package registries through their ordinary clients, in pinned versions.
SHELL         := /bin/bash
.SHELLFLAGS   := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VERSION := $(shell sed -n 's/^var Version = "\(.*\)"/\1/p' internal/version/version.go)
LDFLAGS := -s -w -X github.com/chstate/chstate/internal/version.Version=$(VERSION)
GOBUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "$(LDFLAGS)"

# The interpreter that the virtual environments are made with; 3.10 or newer.
PYTHON ?= python3

# The race detector needs a C compiler; where there is none the tests run without it.
RACE := $(if $(shell command -v $$(go env CC)),-race)

GOLANGCI_VERSION := 2.15.0
GOLANGCI         := bin/tools/golangci-lint-$(GOLANGCI_VERSION)

# Each system and processor that the tool has to compile for.
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: help
help: ## Say what each target does
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9._-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  CH_TEST_URI=clickhouse://user:password@host:port/database make test"
	@echo "                    runs the same tests on a server of yours (in schemas of their own)"

.PHONY: build
build: ## Build bin/chstate, a static binary
	$(GOBUILD) -o bin/chstate ./cmd/chstate

include engine/engine.mk

.PHONY: demo
demo: build engine ## Show it all: Meltano, a tap, a target, and the bookmark in ClickHouse
	@PYTHON=$(PYTHON) demo/run.sh

.PHONY: test
test: ## Run all linters and tests, on the local engine or on CH_TEST_URI
	@# Linting, and what is fetched or compiled, all together: half of it waits for the network.
	$(MAKE) -j4 --output-sync=target lint build engine .venv/ready .venv37/ready
	$(MAKE) test-go engine-test test-python

.PHONY: test-go
test-go: build engine ## Run the Go tests of library, tool and lock
	go test -count=1 $(RACE) $$(go list ./... | grep -Ev '/internal/(cli|races|sim)$$')
	@# Without the detector: what starts the tool as a process, some hundred times, for each start takes ten times
	@# as long with it; and the simulation, in which one goroutine runs at a time.
	go test -count=1 ./internal/cli ./internal/sim
	@# Real processes that race each other, by themselves.
	go test -count=1 ./internal/races
	@[ -e /usr/share/zookeeper/bin/zkServer.sh ] || echo 'NOT TESTED: the lock strategy "keeper", which needs a ZooKeeper (Debian: apt-get install zookeeper)'

.PHONY: test-python
test-python: build engine .venv/ready .venv37/ready ## Run the tests of the add-on, with the newest and the oldest Meltano
	.venv/bin/pip install --quiet --no-deps --no-build-isolation .
	.venv37/bin/pip install --quiet --no-deps --no-build-isolation .
	CHSTATE_MELTANO37="$(CURDIR)/.venv37/bin" .venv/bin/python -m pytest -q -n 2 --dist worksteal python/tests

.PHONY: lint
lint: lint-go lint-python audit ## Run the linters, and compile for every platform

.PHONY: lint-go
lint-go: $(GOLANGCI) engine-vet
	$(GOLANGCI) run ./...
	go vet -tags cluster ./internal/clickhouse
	cd engine && ../$(GOLANGCI) run --config ../.golangci.yaml ./...
	for p in $(PLATFORMS); do echo "go vet $$p"; CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go vet ./...; done

.PHONY: lint-python
lint-python: .venv/ready
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/shellcheck .ci/run .ci/audit demo/*.sh engine/*.sh
	.venv/bin/yamllint --strict -d '{extends: relaxed, rules: {line-length: disable}}' examples .github

.PHONY: audit
audit: ## Look for known vulnerabilities in what is used; skipped with a line where no database is in reach
	PYTHON=$(PYTHON) .ci/audit

$(GOLANGCI):
	mkdir -p bin/tools
	GOFLAGS= GOBIN="$(CURDIR)/bin/tools" go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(GOLANGCI_VERSION)
	mv bin/tools/golangci-lint $@

# A virtual environment is made anew when what it holds was pinned anew.
.venv/ready: requirements/dev.txt requirements/constraints.txt
	rm -rf .venv
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet -r requirements/dev.txt
	touch $@

.venv37/ready: requirements/dev37.txt requirements/constraints37.txt
	rm -rf .venv37
	$(PYTHON) -m venv .venv37
	.venv37/bin/pip install --quiet -r requirements/dev37.txt
	touch $@

.PHONY: sim
sim: ## Simulate SEEDS worlds around the lock (SEED=n: one, with its schedule)
	SIM_SEEDS=$(or $(SEEDS),10000) SIM_SEED=$(SEED) go test -count=1 -timeout 0 -v -run TestPromises ./internal/sim

.PHONY: man
man: ## Write the manual pages into bin/man
	go run ./internal/cli/man bin/man

# BENCH=full adds the sizes that take long; PEER=requirement installs another state backend beside ours.
.PHONY: bench
bench: build engine .venv/ready ## Measure what a bookmark costs, beside what it cannot be cheaper than
	.venv/bin/pip install --quiet --no-deps --no-build-isolation .
	$(PYTHON) bench/run.py --python .venv/bin/python --peer "$(PEER)" $(if $(filter full,$(BENCH)),--full)

SOAK_TIME ?= 10m
.PHONY: soak
soak: engine ## Let 16 processes write 40 states for SOAK_TIME (10m), while everything that can fail does
	go run ./internal/soak/run -duration $(SOAK_TIME)

WHEELS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
.PHONY: wheels
wheels: .venv/ready ## Build the add-on's wheels for every platform into dist/
	for p in $(WHEELS); do GOOS=$${p%/*} GOARCH=$${p#*/} .venv/bin/pip wheel --quiet --no-deps --no-build-isolation -w dist .; done

.PHONY: clean
clean: ## Remove what was built, and the demo's and the tests' environments
	rm -rf bin dist build .demo .venv .venv37 .mypy_cache .ruff_cache .pytest_cache
