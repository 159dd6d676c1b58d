# Builds, checks and runs Proffer. Needs Go, make, bash and git; the targets of "Deploy" also need
# kubectl. `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# An exported KUBECONFIG may name a production cluster. Targets ignore it, and take only an argument
# of make.
unexport KUBECONFIG
export GOWORK := off
# No program needs cgo, as that of the image does not. Only the race detector needs a C compiler.
export CGO_ENABLED := 0
# All targets build with the same flags, so that Go's build cache has each package once. -trimpath makes
# it independent of the module cache. Nobody debugs these programs, and what a debugger needs takes a
# seventh of the compiler's time.
export GOFLAGS := $(strip $(shell go env GOFLAGS) -trimpath -gcflags=all=-dwarf=false)

# Most of the time of both commands goes into page faults, where these are slow.
run test: SHELL := hack/hugepages.sh

TOOL := go tool -modfile=hack/tools/go.mod
CONTROLPLANE := go run ./hack/controlplane/cmd/controlplane
GOLANGCI := bin/golangci-lint

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
TEST_FLAGS ?=
# The timeout per package. The slowest takes 30 minutes on two cores, beside two others.
TEST_TIMEOUT ?= 60m
BENCH ?=
BUG ?=
SCALE ?= 1
KILLS ?= 100
CHECKS ?= 100
DRAWS ?= 1000
HISTORIES ?= 20000

# All modules that hold Go code, and those that hold tests: test/deploy runs test/kubernetes. Of the
# tests, the longest come first: test/image takes two minutes, but with an empty build cache it compiles
# for three platforms, one program after the other.
CODE_MODULES := . $(patsubst %/go.mod,%,$(wildcard test/*/go.mod examples/*/go.mod hack/gotest/go.mod))
TEST_FIRST := . test/slices test/image
TEST_MODULES := $(TEST_FIRST) $(filter-out $(TEST_FIRST) test/kubernetes,$(CODE_MODULES))

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the operator: bin/proffer
	go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/proffer ./cmd/proffer

.PHONY: run
run: ## Run a live demo on its own control plane; KUBECONFIG=file only watches that cluster, SAMPLES=1 applies samples there
	@go build -trimpath -o bin/demo ./hack/demo # go run would report Ctrl-C as an error
	@exec bin/demo $(if $(filter command,$(origin KUBECONFIG)),--kubeconfig='$(KUBECONFIG)') $(if $(SAMPLES),--samples)

.PHONY: lab lab-broker
lab: build ## Run a consumer and a provider with the real Liqo, and a shell to try them: Linux, 3 GB of memory
	@$(RUN_LAB) pair
lab-broker: build ## Run a consumer, a broker and two providers with the real Liqo, and a shell to try them: Linux, 6 GB of memory
	@$(RUN_LAB) broker
RUN_LAB = go build -C test/slices -o "$(CURDIR)/bin/lab" ./cmd/lab && cd test/slices && PROFFER_BIN="$(CURDIR)/bin/proffer" exec "$(CURDIR)/bin/lab"

.PHONY: image
image: ## Build the container image for all platforms, without Docker: bin/image, an OCI layout
	@VERSION='$(VERSION)' hack/ko/image.sh build

.PHONY: image-push
image-push: ## Build the container image and push it: IMG=registry/name:tag
	@VERSION='$(VERSION)' hack/ko/image.sh push '$(if $(filter command,$(origin IMG)),$(IMG))'

.PHONY: controlplane
controlplane: ## Get kube-apiserver, etcd and kubectl, and print their directory
	@$(CONTROLPLANE)

##@ Deploy

# The cluster and the image must be arguments of make, as for `make run`.
KUBECTL ?= kubectl
NAMESPACE := proffer-system
COMPONENTS :=
CONFIG :=
INSTALLER := dist/install.yaml
DEPLOY = @CLUSTER='$(if $(filter command,$(origin KUBECONFIG)),$(KUBECONFIG))' IMAGE='$(if $(filter command,$(origin IMG)),$(IMG))' \
	NAMESPACE='$(NAMESPACE)' COMPONENTS='$(COMPONENTS)' CONFIG='$(CONFIG)' INSTALLER='$(INSTALLER)' KUBECTL='$(KUBECTL)' \
	WITH_POLICIES='$(if $(filter command,$(origin WITH_POLICIES)),$(WITH_POLICIES))' hack/deploy/deploy.sh

.PHONY: install
install: ## Apply only the CRDs: KUBECONFIG=file
	$(DEPLOY) install

.PHONY: deploy
deploy: ## Apply everything: IMG=image KUBECONFIG=file; optional: NAMESPACE=other COMPONENTS="networkpolicy flat" CONFIG=file
	$(DEPLOY) deploy

.PHONY: undeploy
undeploy: ## Delete everything except the CRDs, the policies and the Grants: KUBECONFIG=file
	$(DEPLOY) undeploy

.PHONY: uninstall
uninstall: ## Delete the CRDs: KUBECONFIG=file; WITH_POLICIES=1 also deletes the policies and Grants that exist
	$(DEPLOY) uninstall

.PHONY: build-installer
build-installer: ## Write everything that deploy applies to dist/install.yaml: IMG=image
	$(DEPLOY) build-installer

.PHONY: release
release: ## Make every file of a release in dist/VERSION: VERSION=v0.1.0 IMG=registry.example.com/proffer DOWNLOADS=https://example.com/v0.1.0
	@go run ./hack/release -version '$(if $(filter command,$(origin VERSION)),$(VERSION))' -image '$(if $(filter command,$(origin IMG)),$(IMG))' \
		-downloads '$(if $(filter command,$(origin DOWNLOADS)),$(DOWNLOADS))' -out '$(if $(filter command,$(origin OUT)),$(OUT))' \
		-platforms '$(if $(filter command,$(origin PLATFORMS)),$(PLATFORMS))'

##@ Check

.PHONY: gotest
gotest:
	@go build -C hack/gotest -o "$(CURDIR)/bin/gotest" .

.PHONY: unit
unit: gotest ## Run the tests that need no control plane and no database, with the race detector: a minute
	@bin/gotest -unit . -- $(TEST_FLAGS)

# The operator is built once for all tests that start it, and once with the race detector for those
# where replicas and consumers compete; so is kubectl-proffer. -count=1 is needed because Go does not notice
# changed sources of a program that a test starts.
.PHONY: test
test: ## Run all tests: half an hour; installs a browser and databases if root runs it on Debian or Ubuntu
	@hack/gotest/outline.sh
	@hack/gotest/packages.sh
	@$(MAKE) --no-print-directory gotest build
	@assets="$$($(CONTROLPLANE))"; $(CONTROLPLANE) liqo >/dev/null; $(CONTROLPLANE) prometheus >/dev/null; \
	echo "building the operator with the race detector (3 min on two cores, the first time)"; \
	CGO_ENABLED=1 go build -race -o bin/race/proffer ./cmd/proffer; \
	go build -o bin/kubectl-proffer ./cmd/kubectl-proffer; \
	export KUBEBUILDER_ASSETS="$$assets" PROFFER_BIN="$(CURDIR)/bin/proffer" PROFFER_RACE_BIN="$(CURDIR)/bin/race/proffer" \
		PROFFER_PLUGIN_BIN="$(CURDIR)/bin/kubectl-proffer"; \
	bin/gotest -record bin/test $(TEST_MODULES) -- -count=1 -timeout $(TEST_TIMEOUT) $(TEST_FLAGS)

.PHONY: test-names
test-names: ## List the tests that are gone or new since BASE=revision, or since BASE=copy of bin/test/names with subtests
	@hack/gotest/names.sh '$(if $(filter command,$(origin BASE)),$(BASE))'

.PHONY: try
try: ## Try the first command of the README, as a new user, in a clone with an empty module cache
	@go run ./hack/firstrun

.PHONY: cold
cold: ## Try the first command of the README with every cache empty: 8 minutes on two cores
	@go run ./hack/firstrun --cold

.PHONY: bench
bench: build ## Measure what Proffer costs; BENCH='Read|Push' selects benchmarks by name; also written to bin/bench.txt
	assets="$$($(CONTROLPLANE))"; \
	KUBEBUILDER_ASSETS="$$assets" test/bench/run.sh '$(BENCH)' | tee bin/bench.txt

.PHONY: soak
soak: build ## Run an hour's worth of churn as fast as possible; SCALE=0.01 for a try; also written to bin/soak.txt
	assets="$$($(CONTROLPLANE))"; \
	KUBEBUILDER_ASSETS="$$assets" PROFFER_BIN="$(CURDIR)/bin/proffer" go test -C test/bench . -run '^$$' -bench Soak -timeout 12h \
		-benchtime "$$(awk 'BEGIN {printf "%d", 1000000 * $(SCALE)}')x" | tee bin/soak.txt

# Runs one test, and fails if there is none of that name: name, timeout, package, file for the output.
one-test = CGO_ENABLED=1 go test -race -count=1 -timeout $(2) -v -run '^$(1)$$' $(3) | tee $(4); grep -q '^--- PASS: $(1)' $(4)

CHAOS := TestNoCapacityIsGrantedTwiceUnderChaos

.PHONY: soak-chaos
soak-chaos: ## Kill the leader KILLS=100 times while a consumer attacks, and check every grant; also written to bin/soak-chaos.txt
	assets="$$($(CONTROLPLANE))"; mkdir -p bin; \
	KUBEBUILDER_ASSETS="$$assets" PROFFER_CHAOS_ADVERSARY=1 PROFFER_CHAOS_KILLS=$(KILLS) \
		$(call one-test,$(CHAOS),60m,./internal/command,bin/soak-chaos.txt)

BOOKS := TestTheBooksAreRightWhateverHappens

.PHONY: soak-books
soak-books: ## Let CHECKS=100 random histories of failures happen to the books; also written to bin/soak-books.txt
	mkdir -p bin; RAPID_CHECKS=$(CHECKS) $(call one-test,$(BOOKS),60m,./internal/metasync,bin/soak-books.txt)

REQUESTS := TestNoCertificateIsForMoreThanItsConsumer

.PHONY: soak-requests
soak-requests: ## Draw DRAWS=1000 hostile requests for certificates of each kind; also written to bin/soak-requests.txt
	assets="$$($(CONTROLPLANE))"; mkdir -p bin; \
	KUBEBUILDER_ASSETS="$$assets" PROFFER_REQUESTS=$(DRAWS) $(call one-test,$(REQUESTS),60m,./test/deploy,bin/soak-requests.txt)

# The packages of the core whose tests draw random histories.
PROPERTIES := $(addprefix ./internal/,broker capacity catalog grant offer rehearse/world source/nodes table trends)

.PHONY: soak-properties
soak-properties: ## Draw HISTORIES=20000 random histories for each property of the core; also written to bin/soak-properties.txt
	mkdir -p bin; RAPID_CHECKS=$(HISTORIES) go test -count=1 -timeout 60m $(PROPERTIES) | tee bin/soak-properties.txt

MINORS := TestEveryKubernetesAcceptsTheManifests
OLD := TestTheOperatorWorksOnThisKubernetes

.PHONY: test-old-kubernetes
test-old-kubernetes: ## Check the manifests with every Kubernetes from 1.25; install them on one of 1.25, and run the operator there
	assets="$$($(CONTROLPLANE))"; old="$$($(CONTROLPLANE) old)"; mkdir -p bin; \
	KUBEBUILDER_ASSETS="$$assets" PROFFER_ALL_MINORS=1 \
		$(call one-test,$(MINORS),60m,./test/deploy,bin/test-minors.txt); \
	KUBEBUILDER_ASSETS="$$old" PROFFER_KUBERNETES=1.25 \
		$(call one-test,$(OLD),10m,./test/deploy,bin/test-old-kubernetes.txt)

.PHONY: seeded-bugs
seeded-bugs: ## Make 18 mistakes in a copy of the last commit, one at a time, and check that the tests notice each: 15 minutes; BUG=regexp selects them by name
	@assets="$$($(CONTROLPLANE))"; KUBEBUILDER_ASSETS="$$assets" hack/seededbugs/run.sh '$(BUG)'

# Collecting garbage less often takes a fifth of its processor time off.
lint: export GOGC := 300

.PHONY: lint
lint: $(GOLANGCI) ## Lint every module that holds Go code, and check its format
	@failed=; $(GOLANGCI) fmt --diff || failed=" format (run make fmt)"; \
	for module in $(CODE_MODULES); do \
		echo "lint: $$module"; \
		(cd "$$module" && "$(CURDIR)/$(GOLANGCI)" run --allow-parallel-runners --config "$(CURDIR)/.golangci.yml" ./...) || failed="$$failed $$module"; \
	done; \
	[[ -z "$$failed" ]] || { echo "lint: problems in:$$failed" >&2; exit 1; }

.PHONY: verify
verify: ## Check generated files, go.mod files, imports, kustomizations and the public Go API
	@hack/verify/run.sh

##@ Change

CHART_FILES := charts/proffer/files

.PHONY: generate
generate: ## Generate Go: deep copies, the wire contract and the queries of the books
	$(if $(wildcard api),$(TOOL) controller-gen object paths=./api/...)
	$(if $(wildcard buf.gen.yaml),$(TOOL) buf generate)
	@# vet checks the queries against the tables of each engine.
	go tool -modfile=hack/sqlc/go.mod sqlc generate -f internal/metasync/sqlc.yaml
	go tool -modfile=hack/sqlc/go.mod sqlc vet -f internal/metasync/sqlc.yaml

.PHONY: manifests
manifests: ## Generate the CRDs and the RBAC role from the markers in the code, and copy them to the chart
	$(if $(wildcard api),$(TOOL) controller-gen crd paths=./api/... output:crd:dir=config/crd/bases)
	@# Components, which are removed with their CRDs.
	mv config/crd/bases/proffer.dev_offers.yaml config/components/catalog/crd.yaml
	mv config/crd/bases/proffer.dev_orchestrations.yaml config/components/orchestrator/crd.yaml
	mv config/crd/bases/proffer.dev_providerchoices.yaml config/components/orchestrator/providerchoice_crd.yaml
	$(if $(wildcard internal/controllers),$(TOOL) controller-gen rbac:roleName=proffer-manager paths=./internal/controllers/... paths=./internal/source/... paths=./internal/operator/... output:rbac:dir=config/rbac)
	@# The chart takes these as they are. Its templates are for what its values change.
	rm -rf $(CHART_FILES) && mkdir -p $(CHART_FILES)/{crds,rbac,admission,guards,served-classes,slice-pod-guard,provider-guard,catalog,orchestrator,federation,alerts,dashboard}
	cp config/crd/bases/*.yaml $(CHART_FILES)/crds
	cp config/rbac/{*role*,plugin_accounts}.yaml $(CHART_FILES)/rbac
	cp config/admission/resourcepolicy.yaml $(CHART_FILES)/admission
	cp config/guards/*-guard.yaml $(CHART_FILES)/guards
	cp config/components/served-classes/{admissionpolicy,role}.yaml $(CHART_FILES)/served-classes
	cp config/components/slice-pod-guard/{admissionpolicy,role}.yaml $(CHART_FILES)/slice-pod-guard
	cp config/components/provider-guard/admissionpolicy.yaml $(CHART_FILES)/provider-guard
	cp config/components/catalog/{crd,role}.yaml $(CHART_FILES)/catalog
	cp config/components/orchestrator/{crd,providerchoice_crd,role,user_roles,toggle_role}.yaml $(CHART_FILES)/orchestrator
	cp config/components/federation/role.yaml $(CHART_FILES)/federation
	cp config/components/alerts/prometheusrule.yaml $(CHART_FILES)/alerts
	cp config/components/dashboard/proffer.json $(CHART_FILES)/dashboard

.PHONY: fmt
fmt: $(GOLANGCI) ## Format the Go code of all modules
	$(GOLANGCI) fmt

.PHONY: clean
clean: ## Remove bin; the cache of the control plane stays
	rm -rf bin

$(GOLANGCI): hack/lint/go.mod hack/lint/go.sum
	@echo "building golangci-lint (minutes, the first time)" >&2
	go build -C hack/lint -o "$(CURDIR)/$@" github.com/golangci/golangci-lint/v2/cmd/golangci-lint
