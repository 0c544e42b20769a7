# `make help` lists the targets. `make test` is everything that CI runs.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory --no-builtin-rules
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# A workspace around the checkout must not change what is built.
export GOWORK := off

MODULE := github.com/berth-dev/berth

# --- Settings, each to be overridden on the command line: make test-unit RACE= UNIT_TIMEOUT=2m

# The race detector needs a C compiler; without one Go itself turns cgo off, and so is it.
RACE ?= $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)
UNIT_TIMEOUT ?= 20m
# Packages whose tests start clusters, at once. Such tests mostly wait, for leases and for Kubernetes' own timers.
CLUSTER_PARALLEL ?= 2
CLUSTER_TIMEOUT ?= 40m
# Passed to every `go test`, for instance TESTFLAGS='-run TestWritesOfOneGang -v'.
TESTFLAGS ?=
# How often test-ten runs the suite.
PASSES ?= 10
BENCH ?= .
BENCH_COUNT ?= 6
BENCH_TIME ?= 1s
# How long `make fuzz` fuzzes each target, and which: a regular expression on their names.
FUZZTIME ?= 10m
FUZZ ?= .
# An earlier .cache/bench/latest.txt to compare with.
BENCH_BASE ?=
# The packages to measure, for instance ./test/performance; empty: all.
BENCH_PACKAGES ?=
# Passed to benchstat, for instance BENCHSTAT_FLAGS='-col /by' to put both sides of a decision beside each other.
BENCHSTAT_FLAGS ?=
LINT_TIMEOUT ?= 20m
IMAGE ?= berth-controller:dev
# What the commands call themselves. Empty (no tag, no git): what Go knows of the build.
RELEASE ?= $(shell git describe --tags --dirty 2>/dev/null)
# Non-empty: `make verify` accepts changes that are not committed. `make test` sets it, except in CI.
ALLOW_DIRTY ?=

# Two kinds of packages: those below test/ and those whose tests start a cluster; and the rest, quick and alone.
package-list = go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./...
heavy = ^$(MODULE)/test/|$(MODULE)/test/cluster
unit-packages = $$($(package-list) | grep -vE '$(heavy)' | cut -d' ' -f1)
# Those that take longest first, the others fit beside them.
cluster-packages = $$($(package-list) | grep -E '$(heavy)' | cut -d' ' -f1 | awk '/(invariants|matrix|guard|hardware|lifecycle|quota)$$/ {print; next} {rest = rest $$0 "\n"} END {printf "%s", rest}')
# Packages with tests that do less under the race detector.
whole-packages = $$($(package-list) | grep -vE '$(heavy)' | grep -F '$(MODULE)/test/race' | cut -d' ' -f1)
bench-packages = $$($(package-list) | grep -vE '$(heavy)' | cut -d' ' -f1; go list ./... | grep '^$(MODULE)/test/performance' || true)

# --- Tools: one module of pins each, built once per pin and Go version into .cache/bin

tool-key = $(shell { cat test/tools/$(1)/go.mod test/tools/$(1)/go.sum; go env GOVERSION; } | git hash-object --stdin | cut -c1-12)
CONTROLLER_GEN := .cache/bin/controller-gen-$(call tool-key,.)
GOLANGCI_LINT := .cache/bin/golangci-lint-$(call tool-key,lint)
BENCHSTAT := .cache/bin/benchstat-$(call tool-key,bench)

# $(call build-tool,module folder below test/tools,package)
# Renamed into place, so that an interrupted build leaves nothing that looks finished. Programs of older pins go; names
# with a dot are builds under way in another make.
define build-tool
@mkdir -p $(@D)
@echo "building $(@F) (once per pin)" >&2
@cd test/tools/$(1) && GOFLAGS=-mod=readonly go build -trimpath -ldflags='-s -w' -o $(CURDIR)/$@.$$$$ $(2) && mv $(CURDIR)/$@.$$$$ $(CURDIR)/$@
@find $(@D) -name '$(firstword $(subst -$(lastword $(subst -, ,$(@F))), ,$(@F)))-*' ! -name '$(@F)' ! -name '*.*' -delete
endef

$(CONTROLLER_GEN):
	$(call build-tool,.,sigs.k8s.io/controller-tools/cmd/controller-gen)
$(GOLANGCI_LINT):
	$(call build-tool,lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
$(BENCHSTAT):
	$(call build-tool,bench,golang.org/x/perf/cmd/benchstat)

##@ Try it

.PHONY: demo
demo: components ## Show the main job on real components: a gang gets a whole slice
	@echo "compiling the demo and berth-controller (the first time, about two minutes)" >&2
	go run ./test/demo

.PHONY: cluster-up
cluster-up: components ## Start a control plane on the loopback interface and leave it running
	go run ./test/cluster/cmd/cluster up

.PHONY: cluster-down
cluster-down: ## Stop the control plane of cluster-up
	go run ./test/cluster/cmd/cluster down

##@ Test

# Cheap checks first. The last step is `go test`, so the last line of output is one of its own.
.PHONY: test
test: ## Everything CI runs: verify, build, lint, and all the tests below
	@$(MAKE) verify ALLOW_DIRTY=$(if $(CI),$(ALLOW_DIRTY),true)
	@$(MAKE) build
	@$(MAKE) lint
	@$(MAKE) test-chart
	@$(MAKE) test-unit
	@$(MAKE) test-cluster

.PHONY: test-unit
test-unit: ## Tests that need no cluster, with the race detector where a C compiler is found
	go test $(RACE) -timeout $(UNIT_TIMEOUT) $(TESTFLAGS) $(unit-packages)
	$(if $(RACE),go test -timeout $(UNIT_TIMEOUT) $(TESTFLAGS) $(whole-packages))

# -count=1: Go's test cache does not follow files outside the module.
.PHONY: test-chart
test-chart: ## Tests that Helm chart and kustomization install the same
	cd test/tools/chart && go test -count=1 ./...

# -count=1: Go's test cache cannot see that a component was built anew.
.PHONY: test-cluster
test-cluster: components ## Tests on etcd, Kubernetes, Kueue and KWOK
	go test -count=1 -p $(CLUSTER_PARALLEL) -timeout $(CLUSTER_TIMEOUT) $(TESTFLAGS) $(cluster-packages)

.PHONY: test-matrix
test-matrix: components ## Only the fault matrix and the frozen leader; BERTH_MATRIX=full plays every cell
	go test -count=1 -timeout 90m $(TESTFLAGS) ./test/matrix

.PHONY: test-ten
test-ten: components ## The tests on the clusters ten times in a row, with the time of each pass
	test/tools/repeat.sh $(PASSES) $(MAKE) test-cluster

.PHONY: fuzz
fuzz: ## Fuzz every input from outside, FUZZTIME each, and keep the inputs that matter
	go run ./test/fuzz -time $(FUZZTIME) -run '$(FUZZ)'

.PHONY: bench
bench: $(BENCHSTAT) ## Benchmarks, summed up by benchstat; BENCH_BASE=<file> compares
	@mkdir -p .cache/bench
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCH_COUNT) -benchtime $(BENCH_TIME) -timeout 2h $(TESTFLAGS) $(or $(BENCH_PACKAGES),$(bench-packages)) | tee .cache/bench/latest.txt
	$(BENCHSTAT) $(BENCHSTAT_FLAGS) $(BENCH_BASE) .cache/bench/latest.txt

# About ten minutes of one core. The same seeds give the same bytes, so a difference is one of Berth's.
.PHONY: sim-report
sim-report: ## Simulate anew what docs/simulation.md shows, tables and charts
	go run ./cmd/berth-sim report -s docs/simulation/scenarios.yaml --into docs/simulation.md

##@ Develop

.PHONY: build
build: ## Build the commands into bin/
	@mkdir -p bin
	go build -trimpath -ldflags='-X github.com/berth-dev/berth/cmd/internal/release.version=$(RELEASE)' -o bin/ ./cmd/...
	go build ./...

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Deepcopy functions, CRDs, kustomization and chart
	$(CONTROLLER_GEN) object paths=./pkg/api/... crd paths=./pkg/api/... output:crd:dir=config/crd
	test/tools/manifests.sh

.PHONY: verify
verify: ## Fail if generation, gofmt, go mod tidy or go vet would change or refuse anything
	ALLOW_DIRTY=$(ALLOW_DIRTY) test/tools/verify.sh

.PHONY: lint
lint: $(GOLANGCI_LINT) ## golangci-lint, with the import rule of the functional core
	$(GOLANGCI_LINT) run --timeout $(LINT_TIMEOUT) ./...

.PHONY: components
components: ## Build etcd, Kubernetes, Kueue and KWOK from their pins (minutes the first time, then nothing)
	go run ./test/cluster/cmd/cluster build

.PHONY: image
image: ## Build the controller's image (needs docker)
	docker build --build-arg RELEASE='$(RELEASE)' -t $(IMAGE) .

.PHONY: help
help: ## This list
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile
	@echo
