.DEFAULT_GOAL := help
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unversioned)
FUZZTIME ?= 10s
BASE     ?= main
TESTFLAGS ?=
NODE_PARTS = e2e/node_modules/.package-lock.json
.PHONY: demo build test check fuzz bench bench-peers conformance e2e help

demo: build ## serve a demo gateway with a built-in upstream; needs nothing but Go
	bin/gatehouse serve --demo
build: ## build bin/gatehouse: static, trimmed, stamped with the version
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/gatehouse .
test: ## run the tests with the race detector; needs nothing but Go
	go test -race -shuffle=on $(TESTFLAGS) ./...
check: ## vet, gofmt, staticcheck, and govulncheck when its database can be reached
	.ci/check
fuzz: ## fuzz every target for FUZZTIME
	.ci/fuzz $(FUZZTIME)
bench: ## compare the benchmarks with those of BASE, by default the last commit on main
	.ci/bench $(BASE)
bench-peers: build ## measure the whole process against a bare proxy; needs HARNESS, the folder of the comparison harness
	.ci/bench-peers "$(HARNESS)"
conformance: build $(NODE_PARTS) ## run the official conformance suite at and through the gateway; needs npm
	cd e2e && go test -v -count=1 -timeout 15m ./conformance
e2e: build $(NODE_PARTS) ## drive the binary with foreign clients and servers; needs npm
	cd e2e && go test -count=1 -p 1 -timeout 15m $(TESTFLAGS) ./client ./scenarios ./console ./monitoring
$(NODE_PARTS): e2e/package-lock.json
	cd e2e && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
help: ## show this
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
