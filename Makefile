# Everything that builds, checks or runs Proffer. Needs Go, make, bash and git, and kubectl for what changes a cluster.
# `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# An exported KUBECONFIG may be somebody's real cluster. No target hears of it; `make run KUBECONFIG=...` asks for it.
unexport KUBECONFIG
export GOWORK := off

TOOL := go tool -modfile=hack/tools/go.mod
CONTROLPLANE := go run ./hack/controlplane/cmd/controlplane
GOLANGCI := bin/golangci-lint

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
TEST_FLAGS ?=
# For one package: the longest takes 12 minutes on two cores.
TEST_TIMEOUT ?= 40m
BENCH ?=
SCALE ?= 1
KILLS ?= 100

# Modules of their own under test/, and all that hold Go code.
TEST_MODULES := $(patsubst %/go.mod,%,$(wildcard test/*/go.mod))
CODE_MODULES := . $(TEST_MODULES)

##@ Use

.PHONY: help
help: ## Say what there is
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the operator: bin/proffer
	go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/proffer ./cmd/proffer

.PHONY: run
run: ## Show it live, on a control plane of its own; KUBECONFIG=file looks on at that cluster, SAMPLES=1 applies samples there; EXACT=1 rounds nothing
	@go build -trimpath -o bin/demo ./hack/demo # go run would call Ctrl-C an error
	@exec bin/demo $(if $(filter command,$(origin KUBECONFIG)),--kubeconfig='$(KUBECONFIG)') $(if $(SAMPLES),--samples) $(if $(EXACT),--exact)

.PHONY: image
image: ## Build the container image for every platform, without Docker: bin/image, an OCI layout
	@VERSION='$(VERSION)' hack/ko/image.sh build

.PHONY: image-push
image-push: ## Build the container image and push it: IMG=registry/name:tag
	@VERSION='$(VERSION)' hack/ko/image.sh push '$(if $(filter command,$(origin IMG)),$(IMG))'

.PHONY: controlplane
controlplane: ## Get kube-apiserver, etcd and kubectl, and print where they are
	@$(CONTROLPLANE)

##@ Deploy

# As with `make run`, the cluster is named on the command line, and so is the image.
KUBECTL ?= kubectl
NAMESPACE := proffer-system
COMPONENTS :=
INSTALLER := dist/install.yaml
DEPLOY = @CLUSTER='$(if $(filter command,$(origin KUBECONFIG)),$(KUBECONFIG))' IMAGE='$(if $(filter command,$(origin IMG)),$(IMG))' \
	NAMESPACE='$(NAMESPACE)' COMPONENTS='$(COMPONENTS)' INSTALLER='$(INSTALLER)' KUBECTL='$(KUBECTL)' \
	WITH_POLICIES='$(if $(filter command,$(origin WITH_POLICIES)),$(WITH_POLICIES))' hack/deploy/deploy.sh

.PHONY: install
install: ## Apply the CRDs alone: KUBECONFIG=file
	$(DEPLOY) install

.PHONY: deploy
deploy: ## Apply everything: IMG=image KUBECONFIG=file, and perhaps NAMESPACE=other COMPONENTS="networkpolicy flat"
	$(DEPLOY) deploy

.PHONY: undeploy
undeploy: ## Delete everything but the CRDs, the policies and the records of grants: KUBECONFIG=file
	$(DEPLOY) undeploy

.PHONY: uninstall
uninstall: ## Delete the CRDs: KUBECONFIG=file, and WITH_POLICIES=1 if there are policies or grants, which go with them
	$(DEPLOY) uninstall

.PHONY: build-installer
build-installer: ## Write all that deploy applies to one file, dist/install.yaml: IMG=image
	$(DEPLOY) build-installer

##@ Check

# Every test runs each time: Go would take the result of an earlier run where a test builds and starts programs whose sources have changed.
.PHONY: test
test: ## Run every test there is: unit, property, API server, interoperability, all with the race detector
	assets="$$($(CONTROLPLANE))"; $(CONTROLPLANE) liqo >/dev/null; \
	KUBEBUILDER_ASSETS="$$assets" go run ./hack/gotest $(CODE_MODULES) -- -race -count=1 -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./...

.PHONY: cold
cold: ## Do what a new user does first, with every cache empty: a quarter of an hour on two cores
	go run ./hack/firstrun --cold

.PHONY: bench
bench: build ## Measure what Proffer costs: BENCH=reads,push for some of it; the figures are in bin/bench.txt too
	assets="$$($(CONTROLPLANE))"; \
	KUBEBUILDER_ASSETS="$$assets" go run ./test/bench -operator bin/proffer -only '$(BENCH)' | tee bin/bench.txt

.PHONY: soak
soak: build ## Put an hour's worth of churn on the operator, as fast as it goes: SCALE=0.01 for a try; the figures are in bin/soak.txt too
	assets="$$($(CONTROLPLANE))"; \
	KUBEBUILDER_ASSETS="$$assets" go run ./test/bench -operator bin/proffer -only soak -scale $(SCALE) | tee bin/soak.txt

FAULTS := TestNothingIsPromisedTwiceWhateverFails

# A target that matched no test must not look like success.
.PHONY: soak-faults
soak-faults: ## Kill the leader KILLS=100 times beside a hostile consumer, and account for all that is promised; the log is in bin/soak-faults.txt too
	assets="$$($(CONTROLPLANE))"; mkdir -p bin; \
	KUBEBUILDER_ASSETS="$$assets" PROFFER_FAULTS_ADVERSARY=1 PROFFER_FAULTS_KILLS=$(KILLS) \
		go test -race -count=1 -timeout 60m -v -run '^$(FAULTS)$$' ./cmd/proffer | tee bin/soak-faults.txt; \
	grep -q '^--- PASS: $(FAULTS)' bin/soak-faults.txt

OLD := TestTheOperatorWorksOnThisKubernetes

.PHONY: test-old-kubernetes
test-old-kubernetes: ## Install the manifests on a kube-apiserver of Kubernetes 1.25, and let the operator work there
	assets="$$($(CONTROLPLANE) old)"; mkdir -p bin; \
	KUBEBUILDER_ASSETS="$$assets" PROFFER_KUBERNETES=1.25 \
		go test -race -count=1 -timeout 10m -v -run '^$(OLD)$$' ./test/deploy | tee bin/test-old-kubernetes.txt; \
	grep -q '^--- PASS: $(OLD)' bin/test-old-kubernetes.txt

.PHONY: lint
lint: $(GOLANGCI) ## Lint every module that holds Go code, and check its format
	@failed=; $(GOLANGCI) fmt --diff || failed=" format (run make fmt)"; \
	for module in $(CODE_MODULES); do \
		echo "lint: $$module"; \
		(cd "$$module" && "$(CURDIR)/$(GOLANGCI)" run --allow-parallel-runners --config "$(CURDIR)/.golangci.yml" ./...) || failed="$$failed $$module"; \
	done; \
	[[ -z "$$failed" ]] || { echo "lint: problems in:$$failed" >&2; exit 1; }

.PHONY: verify
verify: ## Check generated files, go.mod files, imports and kustomizations
	@hack/verify/run.sh

##@ Change

.PHONY: generate
generate: ## Write the generated Go: deep copies and the wire contract
	$(if $(wildcard api),$(TOOL) controller-gen object paths=./api/...)
	$(if $(wildcard buf.gen.yaml),$(TOOL) buf generate)

.PHONY: manifests
manifests: ## Write the CRD and the RBAC role from the markers in the code
	$(if $(wildcard api),$(TOOL) controller-gen crd paths=./api/... output:crd:dir=config/crd/bases)
	$(if $(wildcard controllers),$(TOOL) controller-gen rbac:roleName=proffer-manager paths=./controllers/... paths=./internal/source/... paths=./operator/... output:rbac:dir=config/rbac)

.PHONY: fmt
fmt: $(GOLANGCI) ## Format the Go code of all modules
	$(GOLANGCI) fmt

.PHONY: clean
clean: ## Remove what was built here; the cache of the control plane stays
	rm -rf bin

$(GOLANGCI): hack/lint/go.mod hack/lint/go.sum
	@echo "building golangci-lint (minutes, the first time)" >&2
	go build -C hack/lint -o "$(CURDIR)/$@" github.com/golangci/golangci-lint/v2/cmd/golangci-lint
