# A checkout without tags, or without git, still builds.
VERSION ?= $(shell .ci/version)
SOAK_FLAGS ?= --preset smoke
# What make check does about what this machine lacks: it says so and ends, or install, or partial.
CHECK ?=
CHECK_FLAGS ?=
FUZZTIME ?= 11s
FUZZ_JOBS ?= 1
MUTANTS_FLAGS ?=
MUTANTS ?= ./actors ./actors/ephemeral ./internal/node/scratch ./internal/node/store/...
POWERCUT_FLAGS ?= --rounds 50
BENCH_FLAGS ?=
FLEET_FLAGS ?=
POOLS_SCALE_FLAGS ?=
DEMO_FLAGS ?=
PAGE_FLAGS ?=
PAGE_SHOTS ?=
IMAGE ?= ghcr.io/katbox/katbox
# The images of a release. "make image" builds fewer, and takes both from its command line.
PROGRAMS = katbox katbox-gateway katbox-controller
ARCHS = amd64 arm64
# Where "make plugin" says that its archives will be.
PLUGIN_URL ?= https://github.com/katbox/katbox/releases/download/$(VERSION)
PLUGIN_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
REVISION ?= $(shell .ci/version --revision)
# What a registry takes as a tag.
TAG = $(subst +,-,$(VERSION))
POWERCUT_SEED ?= $(shell od -An -N2 -tu2 /dev/urandom | tr -d ' ')

# What needs no race detector is compiled as make build compiles it, and so not again for each target. Tests are not
# vetted before they run: make test and make lint see all that go test would have it look at.
PLAIN = CGO_ENABLED=0 GOFLAGS="-trimpath $$(go env GOFLAGS)"

# What is shipped says its version and commit to "go version -m" as well, wherever Go can find them out. Go asks git,
# which would refuse in a checkout that another user owns.
SHIPPED = CGO_ENABLED=0 GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='$(CURDIR)'
STAMPED = -trimpath -buildvcs=$(shell .ci/version --stamp)

.DEFAULT_GOAL := help
.PHONY: help demo build test check check-all fuzz soak bench fleet pools-scale powercut quota-check attach-check soak-arrays attach-bench image image-check plugin plugin-check release release-check workflows-check vulnerabilities admission-policy chart-files chart-docs deploy-check monitoring-check page-test page-check e2e e2e-gateway e2e-chart e2e-pools e2e-pools-rate e2e-array e2e-array-specs e2e-local e2e-local-rate e2e-claims pools-crash transcript e2e-disk mutants lint generate portable binaries bin/katbox-clock

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## See Katbox work in half a minute, without a cluster, as root or in a user namespace
	@echo 'Building Katbox; the first time takes a minute or two.'
	@CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-X main.version=$(VERSION) -X main.revision=$(REVISION)' -o bin/ ./cmd/katbox ./soak/demo
	@bin/demo $(DEMO_FLAGS)

build: ## Build bin/katbox, bin/katbox-gateway, bin/katbox-controller, bin/kubectl-katbox and bin/soak, static
	$(SHIPPED) go build $(STAMPED) -ldflags '-X main.version=$(VERSION) -X main.revision=$(REVISION)' -o bin/ ./cmd/katbox ./cmd/katbox-gateway ./cmd/katbox-controller ./cmd/kubectl-katbox ./soak

test: ## Run vet and the tests that need neither root nor mounts, without the race detector: while you write
	$(PLAIN) go vet -tags e2e ./...
	$(PLAIN) go test -vet=off ./...

check: ## Pass all tests; CHECK=install installs what they need, as root, CHECK=partial leaves out what this machine cannot
	@CHECK='$(CHECK)' .ci/check -short $(CHECK_FLAGS)

check-all: ## Pass them with each crash at each point, an hour
	@CHECK='$(CHECK)' .ci/check $(CHECK_FLAGS)

.PHONY: docs
docs: ## Write what in the documents is made from elsewhere: the pictures, all messages, and the alerts
	go run ./deploy/docs

# With KATBOX_MUTANTS_DEVICES=yes the tests also have the machine's loop devices.
mutants: ## Change the code in small ways and see whether a test notices, as root, for an hour; MUTANTS_FLAGS="-only drop -for 5m", MUTANTS=./internal/node/scratch
	cd .ci/mutants && CGO_ENABLED=0 go test -vet=off -count=1 .
	export $(PLAIN); cd .ci/mutants && go build -o ../../bin/mutants .
	bin/mutants -for 1h $(MUTANTS_FLAGS) $(MUTANTS)

fuzz: ## Fuzz each decoder and validator for FUZZTIME=11s; FUZZ=Store picks some by name
	FUZZTIME=$(FUZZTIME) FUZZ_JOBS=$(FUZZ_JOBS) .ci/fuzz

soak: build ## Play the kubelet against bin/katbox; SOAK_FLAGS="--preset churn"
	@if bin/soak $(SOAK_FLAGS) --dry-run 2>/dev/null | grep -q '^fault clock-step '; then $(MAKE) --no-print-directory bin/katbox-clock; fi
	bin/soak $(SOAK_FLAGS)

# Its package time has a wall clock that the soak steps; all else is as in bin/katbox.
bin/katbox-clock:
	@echo 'Building $@; the first time takes a minute or two.'
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-X main.version=$(VERSION) -X main.revision=$(REVISION)' \
		-overlay "$$(go run ./soak/internal/clock/overlay bin/clock)" -o $@ ./cmd/katbox

bench: ## Measure Katbox against the least that a driver can do, as root; BENCH_FLAGS="--retained 0,10000 --rounds 3"
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-X main.version=$(VERSION) -X main.revision=$(REVISION)' -o bin/ ./cmd/katbox ./soak/bench
	bin/bench $(BENCH_FLAGS)

pools-scale: ## Measure the controller of the pools with 20 fake arrays of 10,000 volumes; POOLS_SCALE_FLAGS="--arrays 5"
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)' -o bin/ ./cmd/katbox-controller ./internal/testing/array/fakearray ./soak/poolscale
	bin/poolscale $(POOLS_SCALE_FLAGS)

# The cluster should have no other work. Objects of 5,000 nodes are made in it, and removed at the end.
fleet: ## Measure the gateway with 5,000 made-up nodes; KUBECONFIG=FILE is a cluster without a gateway, FLEET_FLAGS="--nodes 500"
	@if [ -z "$(KUBECONFIG)" ]; then \
		echo 'skipped: nothing was run. Set KUBECONFIG to that of a real cluster with aggregation and without a gateway, as one who may do everything.'; \
	else \
		CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)' -o bin/ ./cmd/katbox-gateway ./soak/fleet && \
		bin/fleet $(FLEET_FLAGS); \
	fi

# VMTEST names a directory with a powercut.sh: it runs a command in a virtual
# machine on a fresh disk, waits for its first line of output and then a random
# time, cuts the power, drops what the disk had not flushed, boots again, and runs
# another command with the output of the first in the file acks. --seed repeats the
# times and what the disk kept; the guest has seeds of its own, among the acks. The
# disk is mounted with prjquota, for the local pool with project quotas.
powercut: ## Cut the power under the churn, 50 times; VMTEST=DIR has powercut.sh, POWERCUT_FLAGS="--rounds 9 --disk xfs:1G:prjquota"
	@test -x "$(VMTEST)/powercut.sh" || { echo 'Set VMTEST to a directory with a powercut.sh that boots a virtual machine and cuts its power; the Makefile says what it has to do.' >&2; exit 1; }
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)' -o bin/powercut/ ./cmd/katbox ./soak/powercut
	"$(VMTEST)/powercut.sh" --payload bin/powercut --run './powercut run --dir /mnt/0' --check './powercut check --dir /mnt/0' \
		--disk ext4:1G:prjquota --window 2:10 --timeout 400 --seed $(POWERCUT_SEED) $(POWERCUT_FLAGS)

# VMTEST names a directory with a run.sh; .ci/quota-check says what it has to do.
quota-check: ## Run the tests and the soak of limits on XFS and ext4 with project quotas, half an hour; VMTEST=DIR has run.sh, QUOTA_FLAGS="-test.run Hostile"
	@if [ -z "$(VMTEST)" ]; then \
		echo 'skipped: nothing was run. Set VMTEST to a directory with a run.sh that runs a command in a virtual machine; .ci/quota-check says what it has to do.'; \
	else \
		VMTEST="$(VMTEST)" QUOTA_FLAGS="$(QUOTA_FLAGS)" .ci/quota-check; \
	fi

# VMTEST names a directory with a run.sh; .ci/attach-check says what it has to do.
attach-check: ## Run the tests with volumes of an array, real NFS and iSCSI, some minutes; VMTEST=DIR has run.sh, ATTACH_FLAGS="-test.run Unmap", ATTACH_PACKAGES="internal/node/attach/nfs"
	@if [ -z "$(VMTEST)" ]; then \
		echo 'skipped: nothing was run. Set VMTEST to a directory with a run.sh that runs a command in a virtual machine; .ci/attach-check says what it has to do.'; \
	else \
		VMTEST="$(VMTEST)" ATTACH_FLAGS="$(ATTACH_FLAGS)" ATTACH_PACKAGES="$(ATTACH_PACKAGES)" .ci/attach-check; \
	fi

# VMTEST names a directory with a run.sh; .ci/attach-check says what it has to do.
soak-arrays: ## Play the kubelet on volumes of an array while the array fails and Katbox is killed, some minutes; VMTEST=DIR has run.sh, ARRAYS_FLAGS="--seed 7 --for 20m"
	@if [ -z "$(VMTEST)" ]; then \
		echo 'skipped: nothing was run. Set VMTEST to a directory with a run.sh that runs a command in a virtual machine; .ci/attach-check says what it has to do.'; \
	else \
		VMTEST="$(VMTEST)" ARRAYS_FLAGS="$(ARRAYS_FLAGS)" .ci/soak-arrays; \
	fi

attach-bench: ## Compare the CPU of stage and publish with that of the bare system calls and commands; VMTEST=DIR as for attach-check
	@$(MAKE) --no-print-directory attach-check ATTACH_PACKAGES=cmd/katbox ATTACH_FLAGS='-test.run none -test.bench ArrayStage -test.benchtime 3x'

image: PROGRAMS = katbox
image: ARCHS = $(shell go env GOARCH)
image: binaries ## Build the daemon's image for this machine's architecture, and bin/katbox.tar; PROGRAMS="katbox katbox-gateway", ARCHS="amd64 arm64", PUSH=yes
	PROGRAMS='$(PROGRAMS)' ARCHS='$(ARCHS)' .ci/image $(IMAGE) $(TAG) $(REVISION)

image-check: binaries ## Build the images with buildah, and check what is in them
	export $(PLAIN); cd .ci/licenses && go vet ./... && go test -vet=off -count=1 ./...
	STAMPED=$(shell .ci/version --stamp) .ci/image-check $(IMAGE) $(TAG) $(REVISION)

# The images' binaries, which say the tag as their version, and the licenses of what is linked into each.
binaries: bin/licenses
	set -e; for arch in $(ARCHS); do $(SHIPPED) GOOS=linux GOARCH=$$arch go build $(STAMPED) \
		-ldflags '-s -w -X main.version=$(TAG) -X main.revision=$(REVISION)' -o bin/linux/$$arch/ $(addprefix ./cmd/,$(PROGRAMS)); \
		for program in $(PROGRAMS); do \
			bin/licenses --license LICENSE --output bin/linux/$$arch/licenses/$$program bin/linux/$$arch/$$program; done; done

bin/licenses: $(wildcard .ci/licenses/*.go) .ci/licenses/go.mod .ci/licenses/go.sum
	cd .ci/licenses && $(PLAIN) go build -ldflags '-s -w' -o ../../$@ .

plugin: bin/licenses ## Build kubectl-katbox for six platforms: archives, checksums and a krew manifest in bin/plugin
	rm -rf bin/plugin
	set -e; for platform in $(PLUGIN_PLATFORMS); do \
		$(SHIPPED) GOOS=$${platform%/*} GOARCH=$${platform#*/} go build $(STAMPED) \
			-ldflags '-s -w -X main.version=$(VERSION) -X main.revision=$(REVISION)' \
			-o bin/plugin/$${platform%/*}_$${platform#*/}/ ./cmd/kubectl-katbox; \
		bin/licenses --license LICENSE --output bin/plugin/$${platform%/*}_$${platform#*/} bin/plugin/$${platform%/*}_$${platform#*/}/kubectl-katbox*; done
	go run ./deploy/plugin --version '$(VERSION)' --url '$(PLUGIN_URL)' \
		--completion cmd/kubectl-katbox/kubectl_complete-katbox bin/plugin

plugin-check: plugin ## Build the plugin's archives, and check what is in them and in the krew manifest
	KATBOX_PLUGIN=$(CURDIR)/bin/plugin go test -count=1 ./deploy/plugin

release: binaries plugin bin/helm bin/cyclonedx-gomod ## Make the files of a release in bin/release: archives, chart, SBOMs, checksums
	.ci/release $(TAG)

release-check: bin/helm bin/cyclonedx-gomod bin/actionlint bin/licenses ## Make a release twice and check all of it that needs no registry, some minutes
	.ci/release-check

workflows-check: bin/actionlint ## Check the workflows of GitHub
	bin/actionlint -no-color
	.ci/pinned

vulnerabilities: bin/govulncheck ## Look for known vulnerabilities in what is linked into each program; asks vuln.go.dev
	bin/govulncheck ./cmd/...

bin/cyclonedx-gomod: .ci/sbom/go.mod .ci/sbom/go.sum
	cd .ci/sbom && $(PLAIN) go build -ldflags '-s -w' -o ../../$@ github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

bin/actionlint: .ci/actionlint/go.mod .ci/actionlint/go.sum
	cd .ci/actionlint && $(PLAIN) go build -ldflags '-s -w' -o ../../$@ github.com/rhysd/actionlint/cmd/actionlint

bin/govulncheck: .ci/govulncheck/go.mod .ci/govulncheck/go.sum
	cd .ci/govulncheck && $(PLAIN) go build -ldflags '-s -w' -o ../../$@ golang.org/x/vuln/cmd/govulncheck

admission-policy: ## Write the ValidatingAdmissionPolicy in deploy, from the daemon's own table of attributes
	go run ./deploy/admission

chart-files: ## Copy the alert rules and the dashboard into the Helm chart, which reads nothing outside
	cp deploy/monitoring/rules.yaml deploy/monitoring/dashboard.json deploy/helm/katbox/files/

chart-docs: bin/helm-docs ## Write the README of the Helm chart, with a table of all values from the comments of values.yaml
	bin/helm-docs --log-level warning --chart-search-root deploy/helm --sort-values-order file

deploy-check: bin/helm bin/kustomize bin/controller-gen bin/helm-docs bin/promtool ## Render manifests and chart, and have each object validated by the API server's code
	export $(PLAIN); cd .ci/deploy && go vet ./... && go test -vet=off -count=1 -timeout=30m ./...

bin/helm bin/kustomize &: .ci/deploy/go.mod .ci/deploy/go.sum
	cd .ci/deploy && $(PLAIN) go build -ldflags '-s -w' -o ../../bin/ helm.sh/helm/v3/cmd/helm sigs.k8s.io/kustomize/kustomize/v5

bin/helm-docs: .ci/helmdocs/go.mod .ci/helmdocs/go.sum
	cd .ci/helmdocs && $(PLAIN) go build -ldflags '-s -w' -o ../../$@ github.com/norwoodj/helm-docs/cmd/helm-docs

# With PAGE_KUBECONFIG=FILE, TestRealCluster visits a volume of a real cluster; it says what else it has to
# be told.
page-check: ## Test the page of "kubectl katbox ui" in Chromium, five minutes; PAGE_SHOTS=DIR gets pictures of it, PAGE_FLAGS="-run TestSpeed"
	@for program in chromium npm; do command -v $$program >/dev/null || { \
		echo "$$program is missing: install Debian's packages chromium and npm." >&2; exit 1; }; done
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION) -X main.revision=$(REVISION)' -o bin/ ./cmd/kubectl-katbox
	cd .ci/page && npm ci --ignore-scripts --no-audit --no-fund --silent && go vet ./... && \
		PAGE_SHOTS='$(if $(PAGE_SHOTS),$(abspath $(PAGE_SHOTS)))' go test -count=1 -timeout 30m -v $(PAGE_FLAGS) .

# REALKUBELET names a directory with a real cluster of one node, in scripts;
# deploy/e2e/run says what it has to have. RK_BIN says where its programs are.
e2e: ## Run Katbox under a real kubelet; REALKUBELET=DIR has up.sh and down.sh, E2E_FLAGS="-run /churn" picks scenarios
	@if [ -z "$(REALKUBELET)" ]; then \
		echo 'skipped: nothing was run. Set REALKUBELET to a directory with scripts for a real cluster of one node; deploy/e2e/run says what they do.'; \
	else \
		REALKUBELET="$(REALKUBELET)" KATBOX_E2E_DISK="$(KATBOX_E2E_DISK)" KATBOX_E2E_GATEWAY="$(KATBOX_E2E_GATEWAY)" KATBOX_E2E_POOLS="$(KATBOX_E2E_POOLS)" KATBOX_E2E_LOCAL="$(KATBOX_E2E_LOCAL)" KATBOX_E2E_CHART="$(KATBOX_E2E_CHART)" KATBOX_E2E_WRITE="$(KATBOX_E2E_WRITE)" deploy/e2e/run $(IMAGE) $(TAG) $(REVISION) $(E2E_FLAGS); \
	fi

e2e-gateway: ## Run the gateway in a real cluster of three nodes, 20 minutes; REALKUBELET=DIR as for e2e
	@$(MAKE) --no-print-directory e2e KATBOX_E2E_GATEWAY=1 E2E_FLAGS="-run TestGateway $(E2E_FLAGS)"

e2e-chart: bin/helm ## Upgrade the chart from v0.1.0 in a real cluster, with sets of nodes and helm test, 10 minutes; REALKUBELET=DIR as for e2e
	@$(MAKE) --no-print-directory e2e KATBOX_E2E_CHART=1 E2E_FLAGS="-run TestChart $(E2E_FLAGS)"

pools-crash: ## End the controller of the pools at every point of its operations, and let each request of theirs fail, 12 minutes
	@KATBOX_POOLS_FAULTS=all go test -race -count=1 -timeout 30m -run TestFaultAtEach ./actors/pools
	@go test -tags crashpoints -count=1 -timeout 30m -run TestCrashAtEveryPoint ./cmd/katbox-controller

e2e-pools: bin/helm ## Install the controller of the pools with the real sidecars and a kubelet, 25 minutes; REALKUBELET=DIR as for e2e
	@$(MAKE) --no-print-directory e2e KATBOX_E2E_POOLS=1 E2E_FLAGS="-run TestPools $(E2E_FLAGS)"

# RK_CONTROLLER_MANAGER_EXTRA goes to the scripts: without "--kube-api-qps=500 --kube-api-burst=1000" the controller
# manager is slower than all else.
e2e-pools-rate: ## Measure how fast claims are bound and deleted with the real sidecars, 10 minutes; REALKUBELET=DIR as for e2e
	@$(MAKE) --no-print-directory e2e KATBOX_E2E_POOLS=1 E2E_FLAGS="-run TestRateOfClaims $(E2E_FLAGS)"

e2e-local: ## Run volumes on the nodes' own disks in a real cluster of three nodes, 30 minutes; REALKUBELET=DIR as for e2e
	@$(MAKE) --no-print-directory e2e KATBOX_E2E_LOCAL=1 E2E_FLAGS="-run TestLocal $(E2E_FLAGS)"

# RK_CONTROLLER_MANAGER_EXTRA is as for e2e-pools-rate, and here has these flags unless it is set. Each claim takes some
# 65 ms of a CPU in all programs together: on a machine with other work the rate is that work's. KATBOX_E2E_CLAIMS=1000
# makes fewer than 10,000.
e2e-local-rate: export RK_CONTROLLER_MANAGER_EXTRA ?= --kube-api-qps=500 --kube-api-burst=1000
e2e-local-rate: ## Measure how fast claims on a node's own disk are bound and deleted, 40 minutes; REALKUBELET=DIR as for e2e
	@$(MAKE) --no-print-directory e2e KATBOX_E2E_LOCAL=1 E2E_FLAGS="-run TestRateOfLocalClaims $(E2E_FLAGS)"

# VMTEST names a directory with a run.sh that runs a command in a virtual machine; deploy/e2e/array/run says what
# it has to do.
e2e-claims: ## Let people list, read and restore what deleted claims left on the nodes' disks, 5 minutes; REALKUBELET=DIR as for e2e
	@$(MAKE) --no-print-directory e2e KATBOX_E2E_LOCAL=1 KATBOX_E2E_GATEWAY=1 E2E_FLAGS="-run TestClaims $(E2E_FLAGS)"

e2e-array: ## Run an array's volumes under a real kubelet in a virtual machine; VMTEST=DIR has run.sh, REALKUBELET=DIR as for e2e
	@if [ -z "$(VMTEST)" ] || [ -z "$(REALKUBELET)" ]; then \
		echo 'skipped: nothing was run. Set VMTEST and REALKUBELET to directories with scripts for a virtual machine and for a cluster of one node; deploy/e2e/array/run says what they do.'; \
	else \
		$(MAKE) binaries && VMTEST="$(VMTEST)" REALKUBELET="$(REALKUBELET)" KATBOX_E2E_SPECS="$(KATBOX_E2E_SPECS)" deploy/e2e/array/run $(IMAGE) $(TAG) $(REVISION) $(E2E_FLAGS); \
	fi

e2e-array-specs: ## Run the specs for storage of Kubernetes itself in such a virtual machine; VMTEST=DIR, REALKUBELET=DIR as for e2e-array
	@$(MAKE) --no-print-directory e2e-array KATBOX_E2E_SPECS=1 E2E_FLAGS="-test.run TestArraySpecs $(E2E_FLAGS)"

transcript: ## Make the transcript and the pictures of kubectl katbox in deploy/docs/users.md, in a real cluster; REALKUBELET=DIR as for e2e
	@$(MAKE) --no-print-directory e2e KATBOX_E2E_GATEWAY=1 KATBOX_E2E_WRITE=yes E2E_FLAGS="-run TestGateway/^p"

e2e-disk: ## Fill the one disk of a real kubelet's node, with its own thresholds; REALKUBELET=DIR, takes 12 GB
	@$(MAKE) --no-print-directory e2e KATBOX_E2E_DISK=12000M E2E_FLAGS="-run TestOneDisk"

page-test: ## Test the scripts of the page with Node 20 or newer; nothing is installed
	node --test internal/plugin/web/page/test/*.test.js

monitoring-check: bin/promtool ## Check the dashboard and the alert rules in deploy/monitoring, and run the rules' tests
	bin/promtool check config --syntax-only deploy/monitoring/scrape.yaml
	bin/promtool check rules --lint=all --lint-fatal deploy/monitoring/rules.yaml
	bin/promtool test rules deploy/monitoring/rules_test.yaml
	PROMTOOL=$(CURDIR)/bin/promtool $(PLAIN) go test -vet=off -count=1 ./deploy/monitoring

# promtool checks rules and nothing else here, so it is built without what finds
# targets in two dozen clouds.
bin/promtool: .ci/promtool/go.mod .ci/promtool/go.sum
	cd .ci/promtool && $(PLAIN) go build -tags remove_all_sd -o ../../$@ github.com/prometheus/prometheus/cmd/promtool

# The tests of internal/plugin/cluster have a real node behind them, which is for Linux.
portable: ## Compile kubectl-katbox for macOS and Windows, and vet what it is made of there
	set -e; export CGO_ENABLED=0; for os in darwin windows; do export GOOS=$$os; go build -o /dev/null ./cmd/kubectl-katbox; \
		go vet $$(go list -deps ./cmd/kubectl-katbox | grep '^github.com/katbox/katbox/internal/' | grep -v '/internal/plugin/cluster$$'); done

lint: bin/golangci-lint portable ## Check the style and who imports whom (.golangci.yml), and that the plugin compiles on each system
	set -e; export $(PLAIN); for module in . internal/testing/sanity .ci/deploy .ci/licenses .ci/page .ci/mutants; do \
		echo "golangci-lint run: $$module"; (cd $$module && $(CURDIR)/bin/golangci-lint run --config $(CURDIR)/.golangci.yml ./...); done

generate: bin/controller-gen ## Write what is made from the types of the custom resources
	bin/controller-gen object crd:crdVersions=v1 paths=./internal/model/v1alpha1 output:crd:dir=deploy/crds
	cp deploy/crds/pools.katbox.io_*.yaml deploy/helm/katbox/files/crds/

bin/controller-gen: .ci/controllergen/go.mod .ci/controllergen/go.sum
	cd .ci/controllergen && $(PLAIN) go build -o ../../$@ sigs.k8s.io/controller-tools/cmd/controller-gen

bin/golangci-lint: .ci/tools/go.mod .ci/tools/go.sum
	cd .ci/tools && $(PLAIN) go build -o ../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

bin/gotestsum: .ci/gotestsum/go.mod .ci/gotestsum/go.sum
	cd .ci/gotestsum && $(PLAIN) go build -ldflags '-s -w' -o ../../$@ gotest.tools/gotestsum
