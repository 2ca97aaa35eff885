# Everything that is done to this repository. Go is needed for all of it; `make
# test` installs redis-server and a C compiler with the system's package manager
# where they are missing.

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: run
run: ## generate and run the quickstart
	cd examples && go generate ./quickstart/... && go run ./quickstart

.PHONY: test
test: ## vet and test every module, with the race detector and a Redis server
	.ci/test $(ARGS)

.PHONY: test-faults
test-faults: ## have Redis servers fail under traffic, and print what became of the calls
	.ci/redis env RATELIMITGEN_FAULTS=1 go test -count=1 -run 'TestFaults|TestFailover|TestEightProcesses|TestVersions|ReplyIsLost|RefusedConnections|PoolOfOne|ThatIsOverIsNotSent|AreFlushed|BusyOrFull|AreDead' -v ./runtime/redisstore

.PHONY: test-std
test-std: ## limit all of the standard library and of the dependencies, in memory
	.ci/selftest

.PHONY: lint
lint: ## run gofmt, go vet, staticcheck, errcheck and revive
	.ci/lint

.PHONY: bench
bench: ## measure speed, generation and Redis round trips against their targets
	.ci/redis .ci/bench

.PHONY: bench-redis
bench-redis: ## compare Redis limiters: time, server's time, commands, throughput
	.ci/redis sh -c 'cd bench && go run ./redispeers'

.PHONY: generate
generate: ## write all generated files
	.ci/ratelimitgen
	for module in $$(.ci/modules); do (cd $$module && go generate ./...) || exit 1; done

.PHONY: check
check: ## list generated files that are missing, stale or orphaned
	.ci/ratelimitgen check

.PHONY: clean
clean: ## remove what these targets leave behind
	rm -rf .tmp
