# Targets of the local engine; the Makefile at the root includes this.

.PHONY: engine engine-test engine-vet

engine: ## Fetch libchdb into the cache and build bin/chstate-engine
	sh engine/fetch-libchdb.sh
	mkdir -p bin
	cd engine && CGO_ENABLED=0 go build -trimpath -o ../bin/.chstate-engine.$$$$ . && mv ../bin/.chstate-engine.$$$$ ../bin/chstate-engine

engine-test: ## Test the local engine: Go client, curl, and the rest
	cd engine && go test ./...

engine-vet: ## Vet the local engine for every system it runs on
	cd engine && for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do \
		echo "go vet $$target"; \
		CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} go vet ./... || exit 1; \
	done
