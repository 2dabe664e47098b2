# `make` or `make help` says what there is. Everything that is fetched comes from
# package registries through their ordinary clients.
SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VERSION := $(shell sed -n 's/^var Version = "\(.*\)"/\1/p' internal/version/version.go)
LDFLAGS := -s -w -X github.com/chstate/chstate/internal/version.Version=$(VERSION)
GOBUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "$(LDFLAGS)"

.PHONY: help
help: ## Say what each target does
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9._-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/chstate, a static binary
	$(GOBUILD) -o bin/chstate ./cmd/chstate
