# Targets of the local engine; the Makefile at the root includes this and has
# .venv/ready, an environment with pytest and clickhouse-connect.

.PHONY: engine
engine: ## Fetch libchdb into the cache and build bin/chstate-engine, the local ClickHouse
	engine/fetch-libchdb.sh
	mkdir -p bin
	# A running engine keeps its file: the new one takes its name in one step.
	cd engine && CGO_ENABLED=0 go build -trimpath -o ../bin/.chstate-engine.$$$$ . && mv ../bin/.chstate-engine.$$$$ ../bin/chstate-engine

.PHONY: engine-test
engine-test: engine .venv/ready ## Test the local engine with clickhouse-go, curl and clickhouse-connect
	cd engine && go test -count=1 ./...
	CHSTATE_ENGINE="$(CURDIR)/bin/chstate-engine" .venv/bin/python -m pytest -q engine/tests

.PHONY: engine-vet
engine-vet: ## Vet the local engine for each system that it runs on
	cd engine && for p in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do \
		echo "go vet $$p (engine)"; CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go vet ./... || exit 1; \
	done
