package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/katbox/katbox/deploy/docs/pages"
)

// A runner is what runs the commands of a form, or why nothing does.
type runner struct {
	// form is that of the whole command.
	form string
	// by is the file with the test that runs it, and does what is in it: a text of that file. Both are empty if nothing
	// runs it.
	by, does string
	// why says what the test runs, if that is not the command itself, or why nothing does.
	why string
}

const noCluster = "it only shows something, and what it shows is read by other means: "

const noRelease = "there is no release, nor a registry, to run it against"

// runners has each command of the documents. The first form that fits counts.
var runners = []runner{
	// make
	{form: `make demo`, by: "soak/demo/demo_test.go", does: "TestPageShowsTheDemo"},
	{form: `make check( CHECK=install)?`, by: ".ci/run", does: "step make check CHECK=install"},
	{form: `make soak`, by: ".ci/run", does: "step make soak", why: "with other flags"},
	{form: `make soak FLAGS="--preset churn .*"`, why: "five minutes: .ci/run runs the soak with as many faults and fewer pods"},
	{form: `make measure WHAT=bench( FLAGS=".*")?`, by: "soak/bench/smoke_test.go", does: `"--readme", readme`, why: "in small"},
	{form: `make image VERSION=v0.1.0( PROGRAMS=.*)?`, by: "deploy/e2e/run", does: "make --no-print-directory image"},
	{form: `make image PUSH=yes .*`, by: ".ci/image-check", does: ".ci/image", why: "without a registry to push to"},

	{form: `make plugin VERSION=v0.1.0`, by: ".ci/release-check", does: "--no-print-directory release", why: "with the version of a tag"},

	// on a node
	{form: `find /proc/.* -lname 'PATH\*' .*`, by: "internal/node/mount/users_test.go", does: "TestWhoUsesAVolume"},

	// katbox, on a node
	{form: `katbox --version`, by: "cmd/katbox/options_test.go", does: "--version"},
	{form: `katbox .*`, by: "soak/demo/demo_test.go", does: "TestPageShowsTheDemo"},
	{form: `kubectl -n katbox exec (KATBOX-POD|daemonset/katbox) -- /katbox .*`,
		by: "cmd/katbox/verbs/documents_test.go", does: "TestCommandsOfTheDocuments",
		why: "without a daemon; deploy/e2e/reading_test.go does the same in a cluster"},
	{form: `for katbox in .* /katbox ls NAMESPACE/POD; done`, by: "cmd/katbox/verbs/documents_test.go", does: "TestCommandsOfTheDocuments",
		why: "what is in the loop"},

	{form: `for katbox in .* /katbox top \| grep free; done`, by: "cmd/katbox/verbs/documents_test.go", does: "TestCommandsOfTheDocuments",
		why: "what is in the loop"},
	{form: `kubectl get events -A --field-selector reason=FailedMount \| grep 'no space left'`,
		why: noCluster + "the events of the pods that wait"},

	{form: `kubectl annotate vpsa NAME pools.katbox.io/disk-on=NODE`, by: "actors/pools/diskkey_test.go",
		does: "TestPersonSaysWhichNodeHasADisk", why: "without a cluster"},

	// kubectl katbox
	{form: `kubectl get pods -l job-name=nightly|find nightly .*|` +
		`kubectl katbox (list --job nightly|ls -l --last job/nightly:|tail -n \d+ --last job/nightly:log|cp job/nightly ./nightly)`,
		by: "deploy/e2e/gatewaystory_test.go", does: "kubectl katbox cp job/nightly ./nightly", why: "the same words with another number"},
	{form: `kubectl katbox ui`, by: "deploy/e2e/gatewaypage_test.go", does: `"katbox", "ui", "--no-browser"`},
	{form: `kubectl katbox version --client`, by: "cmd/kubectl-katbox/check_test.go", does: `"version", "--client"`},
	{form: `kubectl katbox .*`, by: "cmd/kubectl-katbox/documents_test.go", does: "TestCommandsOfTheDocuments",
		why: "without a cluster; deploy/e2e/gatewayplugin_test.go and claims_test.go do the same in one"},
	{form: `go build -o bin/ ./cmd/kubectl-katbox|sudo install bin/kubectl-katbox .*|sudo tar xzf bin/plugin/.*`,
		by: "deploy/plugin/documents_test.go", does: "TestCommandsOfTheDocuments", why: "without sudo, into other directories"},
	{form: `kubectl krew install .*`, by: "deploy/plugin/documents_test.go", does: "TestCommandsOfTheDocuments",
		why: "its files; krew itself is not there"},

	// Install
	{form: `kind (create cluster|load image-archive bin/katbox.tar)`, by: "deploy/e2e/run",
		does: `-n k8s.io images import --all-platforms`, why: "kind is not there: what it runs on a node"},
	{form: `kubectl (apply|delete)( --server-side)? -k .*`, by: ".ci/deploy/documents_test.go", does: "byKustomize",
		why: "what it renders; deploy/e2e applies it"},
	{form: `kubectl apply -f deploy/examples/.*`, by: ".ci/deploy/objects_test.go", does: `examples+"/*.yaml"`,
		why: "deploy/e2e/examples_test.go applies them"},
	{form: `helm install katbox oci://.*`, why: noRelease},
	{form: `cosign verify.*|sha256sum --check .*|gh attestation verify .*|crane export .*`, why: noRelease},
	{form: `helm (install|upgrade|upgrade --install) katbox .*`, by: ".ci/deploy/documents_test.go", does: "byHelm",
		why: "what it renders; deploy/e2e/poolschart_test.go installs it"},
	{form: `helm test katbox --namespace katbox( --logs)?`, by: "deploy/e2e/chart_test.go", does: `"test", "katbox", "--logs"`,
		why: "make e2e SUITE=chart runs it; the namespace is that of the kubeconfig"},
	{form: `kubectl create namespace katbox|kubectl label namespace katbox .*`, by: ".ci/deploy/pods_test.go",
		does: "TestNamespaceAdmitsTheDaemon",
		why:  "that the label admits the daemon"},

	{form: `kubectl label namespace ml katbox.io/scratch(=keep|-)`, by: "deploy/e2e/optin_test.go",
		does: `"label", "namespace", "ml", "katbox.io/scratch=keep"`},

	// Look at it
	{form: `kubectl -n katbox rollout status daemonset/katbox`, by: "deploy/e2e/manifests_test.go",
		does: `"rollout", "status", "daemonset/katbox"`},
	{form: `kubectl get csinodes .*`, by: "deploy/e2e/manifests_test.go", does: `"csinode"`, why: "the same field of one node"},
	{form: `kubectl wait --for=condition=Ready pod/scratch|kubectl get pod scratch .*|kubectl delete pod scratch`,
		by: "deploy/e2e/examples_test.go", does: `c.wantPhase("scratch", "Running")`, why: "the same pod, by other means"},
	{form: `kubectl -n katbox (describe daemonsets,pods|logs KATBOX-POD( > log.txt)?|port-forward KATBOX-POD 8080)`,
		why: noCluster + "deploy/e2e reads log, events and port"},
	{form: `kubectl -n katbox get pods -o wide --field-selector spec.nodeName=NODE`, why: noCluster + "deploy/e2e knows its nodes"},
	{form: `kubectl -n katbox logs -l app.kubernetes.io/name=katbox .*`, by: "cmd/katbox/afterlife_test.go",
		does: "TestLogTellsAPersonWhatIsRetainedAndWhatIsGone", why: "the line of the log"},
	{form: `kubectl get pods -A .* \| grep katbox.csi.paypal.com`,
		why: noCluster + "it lists pods by their drivers, and deploy/e2e knows them"},
	{form: `kubectl get (vscsc|vpsa|vscnode|vscsc,vpsa|vscsc,vpsa,vscnode)`, by: "deploy/e2e/poolsinstall_test.go",
		does: `"get", "vscsc", "fast"`, why: "by the same short names"},
	{form: `kubectl -n katbox get csistoragecapacities`, by: "deploy/e2e/localcluster_test.go", does: `"get", "csistoragecapacities"`},
	{form: `kubectl get poolvolumes -l pools.katbox.io/namespace=shop`, by: "deploy/e2e/poolsinstall_test.go", does: "poolvolumes",
		why: "without the label"},

	// The gateway
	{form: `kubectl describe pod train-7 -n ml`, by: "internal/gateway/podevents/readme_test.go", does: "TestReadmeShowsTheEvent",
		why: "the event; deploy/e2e/gatewayplugin_test.go reads it in a cluster"},
	{form: `kubectl wait --for=condition=Available apiservice/v1alpha1.katbox.io`, by: "deploy/e2e/gateway_test.go",
		does: `"wait", "--for=condition=Available", "apiservice/v1alpha1.katbox.io"`},
	{form: `kubectl get (retainedvolumes -A|rv -n ci)`, by: "deploy/e2e/claims_test.go", does: `"get", "retainedvolumes", "-n", "ci"`,
		why: "for one namespace"},
	{form: `kubectl -n katbox patch secret katbox-gateway .*`, why: "internal/link/certs has tests with an empty Secret"},
	{form: `kubectl -n katbox rollout restart deployment/katbox-gateway`, by: "deploy/e2e/gatewayplugin_test.go",
		does: `"rollout", "restart", "deployment/katbox-gateway"`},
	{form: `kubectl delete apiservice v1alpha1.katbox.io`, by: "deploy/e2e/gatewaynamespaces_test.go",
		does: `"delete", "apiservice", "v1alpha1.katbox.io"`},
	{form: `kubectl (-n katbox |-n kube-system |)delete .* -l app.kubernetes.io/name=katbox-gateway`,
		by: "deploy/e2e/gatewaynamespaces_test.go", does: "testRemoval",
		why: "the same objects, by their manifests"},

	// Other tools
	{form: `kubectl -n argocd patch configmap argocd-cm --patch-file deploy/tools/argocd-cm.yaml`, by: ".ci/deploy/health_test.go",
		does: "TestHealthOfPools", why: "the file; Argo CD is not there"},

	// The archive
	{form: `kubectl -n katbox create secret generic katbox-archive .*`, by: "deploy/e2e/archive_test.go",
		does: `"secret", "generic", "katbox-archive"`, why: "with literals"},
	{form: `kubectl get nodes -o jsonpath='.*node-hold.*'|kubectl annotate node NAME katbox.io/node-hold- .*`,
		by: "internal/gateway/nodehold/hold_test.go", does: "TestRelease", why: "what the gateway does with --release-nodes"},

	// Upgrade, and nodes
	{form: `kubectl -n katbox delete daemonset csi-katboxplugin --cascade=foreground`, by: "deploy/e2e/upgrade_test.go",
		does: "archivedDatabase",
		why:  "the archived driver is not there; its database is"},
	{form: `mkdir -p /var/lib/katbox-pools/nvme|mkfs.xfs -m reflink=1 .*|echo .* >> /etc/fstab|mount /var/lib/katbox-pools/nvme`,
		by: "deploy/e2e/localcluster_test.go", does: `"mkfs."+fsType`, why: "on image files"},
}

// TestEachCommandIsRun: each command in a block of a document is of a form above, so that a test runs it, or the reason
// why none does is written down; and each form has a command.
func TestEachCommandIsRun(t *testing.T) {
	found, err := pages.Commands(root)
	if err != nil {
		t.Fatal(err)
	}
	used := make([]bool, len(runners))
	for _, command := range found {
		known := false
		for i, r := range runners {
			if regexp.MustCompile(`^(?:` + r.form + `)$`).MatchString(command.Text) {
				used[i], known = true, true
				break
			}
		}
		if !known {
			t.Errorf("%s shows the command %q: let a test run it, and write that down in commands_test.go, or why none can",
				command.Page, command.Text)
		}
	}
	for i, r := range runners {
		if !used[i] {
			t.Errorf("no document has a command of the form %s", r.form)
		}
		if r.by == "" {
			if r.why == "" {
				t.Errorf("nothing runs %s, and there is no reason", r.form)
			}
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, r.by))
		if err != nil || !strings.Contains(string(content), r.does) {
			t.Errorf("%s should run %s, and does not have %q: %v", r.by, r.form, r.does, err)
		}
	}
}

// lists are the scripts that list what a target takes as SUITE or WHAT.
var lists = map[string]string{"e2e": "deploy/e2e/run", "guest": ".ci/guest", "measure": ".ci/measure"}

// TestMakeTargetsAreThere: each "make" in a document names targets of the Makefile, variables that it has, and suites that
// there are.
func TestMakeTargetsAreThere(t *testing.T) {
	makefile := read(t, "Makefile")
	named := regexp.MustCompile("(?m)`make ([^`]+)`|^(?:\\$ |    )make (.+)$")
	count := 0
	for _, page := range documents(t) {
		if page == messagesFile || page == troubleshootingFile {
			continue // messages begin with that word too
		}
		for _, match := range named.FindAllStringSubmatch(read(t, page), -1) {
			text, _, _ := strings.Cut(match[1]+match[2], "#")
			words := strings.Fields(regexp.MustCompile(`="[^"]*"`).ReplaceAllString(text, "=x"))
			for _, word := range words {
				count++
				variable, value, isVariable := strings.Cut(word, "=")
				switch {
				case isVariable && !strings.Contains(makefile, variable):
					t.Errorf("%s: make %s: the Makefile has no variable %s", page, text, variable)
				case !isVariable && !hasLine(makefile, word+":"):
					t.Errorf("%s: make %s: the Makefile has no target %s", page, text, word)
				case (variable == "SUITE" || variable == "WHAT") && !hasLine(read(t, lists[words[0]]), value+" "):
					t.Errorf("%s: make %s: %s does not list %s", page, text, lists[words[0]], value)
				}
			}
		}
	}
	if count < 60 {
		t.Errorf("only %d targets and variables were found", count)
	}
}

// hasLine reports whether a line of text begins with prefix.
func hasLine(text, prefix string) bool { return strings.Contains("\n"+text, "\n"+prefix) }
