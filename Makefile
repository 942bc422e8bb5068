# Everything that is built, tested and measured. A target that names a SUITE or WHAT lists what there is without it.
# FLAGS go to what a target runs: make soak FLAGS="--preset churn", make check FLAGS="-run Crash ./cmd/katbox".
FLAGS =

# A checkout without tags, or without git, still builds.
VERSION ?= $(shell .ci/version)
REVISION ?= $(shell .ci/version --revision)
# What a registry takes as a tag.
TAG = $(subst +,-,$(VERSION))
# What make check does about what this machine lacks: it says so and ends, or install, or partial.
CHECK ?=
FUZZTIME ?= 11s
FUZZ_JOBS ?= 1
PAGE_SHOTS ?=
IMAGE ?= ghcr.io/katbox/katbox
# The images of a release. "make image" builds fewer, and takes both from its command line.
PROGRAMS = katbox katbox-gateway katbox-controller
ARCHS = amd64 arm64
# Where "make plugin" says that its archives will be.
PLUGIN_URL ?= https://github.com/katbox/katbox/releases/download/$(VERSION)
PLUGIN_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

# What needs no race detector is compiled as make build compiles it, and so not again for each target. Tests are not
# vetted before they run: make test and make lint see all that go test would have it look at.
PLAIN = CGO_ENABLED=0 GOFLAGS="-trimpath $$(go env GOFLAGS)"

# What is shipped says its version and commit to "go version -m" as well, wherever Go can find them out. Go asks git,
# which would refuse in a checkout that another user owns.
SHIPPED = CGO_ENABLED=0 GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='$(CURDIR)'
STAMPED = -trimpath -buildvcs=$(shell .ci/version --stamp)
NAMED = -X main.version=$(VERSION) -X main.revision=$(REVISION)

.DEFAULT_GOAL := help
.PHONY: help demo build test check check-all lint soak fuzz mutants e2e guest measure page-check deploy-check store-check monitoring-check \
	workflows-check vulnerabilities image image-check plugin release release-check docs generate portable binaries archives bin/katbox-clock

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## See Katbox work in half a minute, without a cluster, as root or in a user namespace
	@echo 'Building Katbox; the first time takes a minute or two.'
	@CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(NAMED)' -o bin/ ./cmd/katbox ./soak/demo
	@bin/demo $(FLAGS)

build: ## Build all programs and the soak, static, in bin
	$(SHIPPED) go build $(STAMPED) -ldflags '$(NAMED)' -o bin/ ./cmd/katbox ./cmd/katbox-gateway ./cmd/katbox-controller ./cmd/kubectl-katbox ./soak

test: ## Run vet and the tests that need neither root nor mounts, while you write
	$(PLAIN) go vet -tags e2e ./...
	$(PLAIN) go test -vet=off ./...

check: ## Pass all tests, as root; CHECK=install installs what they need, CHECK=partial leaves out what this machine lacks
	@CHECK='$(CHECK)' .ci/check -short $(FLAGS)

check-all: ## Pass them with each crash at each point, of the daemon and of the controller, and with 10,000 pods to convert, an hour
	@CHECK='$(CHECK)' KATBOX_POOLS_FAULTS=all .ci/check $(FLAGS)
	$(if $(FLAGS),,go test -tags crashpoints -count=1 -timeout 30m -run TestCrashAtEveryPoint ./cmd/katbox-controller)
	$(if $(FLAGS),,cd .ci/deploy && $(PLAIN) KATBOX_OPT_IN_PODS=10000 go test -vet=off -count=1 -run TestOptInOfAnyPod .)

lint: bin/golangci-lint portable ## Check the style and who imports whom (.golangci.yml), and that the plugin compiles on each system
	set -e; export $(PLAIN); for module in . internal/testing/sanity .ci .ci/deploy .ci/page .ci/versitygw; do \
		echo "golangci-lint run: $$module"; (cd $$module && $(CURDIR)/bin/golangci-lint run --config $(CURDIR)/.golangci.yml ./...); done

# The tests of internal/plugin/cluster have a real node behind them, which is for Linux.
portable:
	set -e; export CGO_ENABLED=0; for os in darwin windows; do export GOOS=$$os; go build -o /dev/null ./cmd/kubectl-katbox; \
		go vet $$(go list -deps ./cmd/kubectl-katbox | grep '^github.com/katbox/katbox/internal/' | grep -v '/internal/plugin/cluster$$'); done

soak: FLAGS = --preset smoke
soak: build ## Play the kubelet against bin/katbox; FLAGS="--preset churn"
	@if bin/soak $(FLAGS) --dry-run 2>/dev/null | grep -q '^fault clock-step '; then $(MAKE) --no-print-directory bin/katbox-clock; fi
	bin/soak $(FLAGS)

# Its package time has a wall clock that the soak steps; all else is as in bin/katbox.
bin/katbox-clock:
	@echo 'Building $@; the first time takes a minute or two.'
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(NAMED)' \
		-overlay "$$(go run ./soak/internal/clock/overlay bin/_clock)" -o $@ ./cmd/katbox

fuzz: ## Fuzz each decoder and validator for FUZZTIME=11s, FUZZ_JOBS=1 at a time; FUZZ=Store picks some by name
	FUZZTIME=$(FUZZTIME) FUZZ_JOBS=$(FUZZ_JOBS) .ci/fuzz

mutants: PACKAGES = ./actors ./actors/ephemeral ./internal/node/scratch ./internal/node/store/...
mutants: ## Change the code in small ways and see whether a test notices, as root, an hour; PACKAGES=./internal/node/scratch FLAGS="-for 5m"
	cd .ci && CGO_ENABLED=0 go test -vet=off -count=1 ./mutants # without -trimpath: the tests look for Go's own packages
	cd .ci && $(PLAIN) go build -o ../bin/mutants ./mutants
	bin/mutants -for 1h $(FLAGS) $(PACKAGES)

e2e: ## Test in a real cluster: SUITE=node, gateway, pools, local and more; REALKUBELET=DIR, VMTEST=DIR
	@deploy/e2e/run '$(SUITE)' $(IMAGE) $(TAG) $(REVISION) $(FLAGS)

guest: ## Test in a virtual machine: SUITE=quota, attach, arrays, powercut; VMTEST=DIR
	@.ci/guest '$(SUITE)' $(FLAGS)

measure: ## Measure: WHAT=bench, attach-bench, fleet, pools-scale
	@.ci/measure '$(WHAT)' $(FLAGS)

# The page's scripts are tested by themselves, too. With PAGE_KUBECONFIG=FILE, TestRealCluster visits a volume of a real
# cluster; it says what else it has to be told.
page-check: ## Test the pages of "kubectl katbox ui" and of the soak in Chromium, five minutes; FLAGS="-run TestSpeed", PAGE_SHOTS=DIR gets pictures
	@for program in chromium npm; do command -v $$program >/dev/null || { \
		echo "$$program is missing: install Debian's packages chromium and npm." >&2; exit 1; }; done
	node --test internal/plugin/web/page/test/*.test.js
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w $(NAMED)' -o bin/ ./cmd/kubectl-katbox
	cd .ci/page && npm ci --ignore-scripts --no-audit --no-fund --silent && go vet ./... && \
		PAGE_SHOTS='$(if $(PAGE_SHOTS),$(abspath $(PAGE_SHOTS)))' go test -count=1 -timeout 3h -v $(FLAGS) .
	KATBOX_PAGE_CHECK=1 go test -vet=off -count=1 -run '^TestPageInABrowser$$' ./soak/internal/report

deploy-check: bin/helm bin/kustomize bin/controller-gen bin/helm-docs bin/promtool ## Render manifests and chart, and validate each object by the API server's code
	export $(PLAIN); cd .ci/deploy && go vet ./... && go test -vet=off -count=1 -timeout=30m ./...

store-check: ## Test the bucket of the archive with a real server that speaks S3
	export $(PLAIN); cd .ci/versitygw && go vet ./... && go test -vet=off -count=1 ./...

monitoring-check: bin/promtool ## Check the dashboard and the alert rules in deploy/monitoring, and run the rules' tests
	bin/promtool check config --syntax-only deploy/monitoring/scrape.yaml
	bin/promtool check rules --lint=all --lint-fatal deploy/monitoring/rules.yaml
	bin/promtool test rules deploy/monitoring/rules_test.yaml
	PROMTOOL=$(CURDIR)/bin/promtool $(PLAIN) go test -vet=off -count=1 ./deploy/monitoring

workflows-check: bin/actionlint ## Check the workflows of GitHub
	bin/actionlint -no-color
	.ci/pinned

vulnerabilities: bin/govulncheck ## Look for known vulnerabilities in what is linked into each program; asks vuln.go.dev
	bin/govulncheck ./cmd/...

image: PROGRAMS = katbox
image: ARCHS = $(shell go env GOARCH)
image: binaries ## Build the daemon's image and bin/katbox.tar; PROGRAMS="katbox katbox-gateway", ARCHS="amd64 arm64", PUSH=yes
	PROGRAMS='$(PROGRAMS)' ARCHS='$(ARCHS)' .ci/image $(IMAGE) $(TAG) $(REVISION)

image-check: binaries ## Build the images with buildah, and check what is in them
	export $(PLAIN); cd .ci && go vet ./licenses && go test -vet=off -count=1 ./licenses
	STAMPED=$(shell .ci/version --stamp) .ci/image-check $(IMAGE) $(TAG) $(REVISION)

# The images' binaries, which say the tag as their version, and the licenses of what is linked into each.
binaries: bin/licenses
	set -e; for arch in $(ARCHS); do $(SHIPPED) GOOS=linux GOARCH=$$arch go build $(STAMPED) \
		-ldflags '-s -w -X main.version=$(TAG) -X main.revision=$(REVISION)' -o bin/linux/$$arch/ $(addprefix ./cmd/,$(PROGRAMS)); \
		for program in $(PROGRAMS); do \
			bin/licenses --license LICENSE --output bin/linux/$$arch/licenses/$$program bin/linux/$$arch/$$program; done; done

bin/licenses: $(wildcard .ci/licenses/*.go) .ci/go.mod .ci/go.sum
	cd .ci && $(PLAIN) go build -ldflags '-s -w' -o ../$@ ./licenses

plugin: archives ## Build kubectl-katbox for six platforms, and check it: archives, checksums and a krew manifest in bin/plugin
	KATBOX_PLUGIN=$(CURDIR)/bin/plugin go test -count=1 ./deploy/plugin

archives: bin/licenses
	rm -rf bin/plugin
	set -e; for platform in $(PLUGIN_PLATFORMS); do \
		$(SHIPPED) GOOS=$${platform%/*} GOARCH=$${platform#*/} go build $(STAMPED) \
			-ldflags '-s -w $(NAMED)' \
			-o bin/plugin/$${platform%/*}_$${platform#*/}/ ./cmd/kubectl-katbox; \
		bin/licenses --license LICENSE --output bin/plugin/$${platform%/*}_$${platform#*/} bin/plugin/$${platform%/*}_$${platform#*/}/kubectl-katbox*; done
	go run ./deploy/plugin --version '$(VERSION)' --url '$(PLUGIN_URL)' \
		--completion cmd/kubectl-katbox/kubectl_complete-katbox bin/plugin

release: binaries archives bin/helm bin/cyclonedx-gomod ## Make the files of a release in bin/release: archives, chart, SBOMs, checksums
	.ci/release $(TAG)

release-check: bin/helm bin/cyclonedx-gomod bin/actionlint bin/licenses ## Make a release twice and check all of it that needs no registry, some minutes
	.ci/release-check

docs: bin/helm-docs ## Write what in the documents is made from elsewhere: pictures, messages, alerts, the values of the chart
	go run ./deploy/docs
	bin/helm-docs --log-level warning --chart-search-root deploy/helm --sort-values-order file

# The chart reads nothing outside of its directory, so it has copies.
generate: bin/controller-gen ## Write what is made from code: the CRDs, the ValidatingAdmissionPolicy, the chart's copies
	bin/controller-gen object crd:crdVersions=v1 paths=./internal/model/v1alpha1 output:crd:dir=deploy/crds
	cp deploy/crds/pools.katbox.io_*.yaml deploy/helm/katbox/files/crds/
	cp deploy/monitoring/rules.yaml deploy/monitoring/dashboard.json deploy/helm/katbox/files/
	go run ./deploy/admission

bin/helm bin/kustomize &: .ci/deploy/go.mod .ci/deploy/go.sum
	cd .ci/deploy && $(PLAIN) go build -ldflags '-s -w' -o ../../bin/ helm.sh/helm/v3/cmd/helm sigs.k8s.io/kustomize/kustomize/v5

# The tools of .ci/go.mod. promtool checks rules and nothing else here, so it is built without what finds targets in two
# dozen clouds.
TOOLS = actionlint controller-gen cyclonedx-gomod golangci-lint gotestsum govulncheck helm-docs promtool
bin/promtool: TAGS = -tags remove_all_sd
$(TOOLS:%=bin/%): .ci/go.mod .ci/go.sum
	cd .ci && $(PLAIN) go build $(TAGS) -ldflags '-s -w' -o ../$@ $$(go list -find tool | grep '/$(@F)$$')
