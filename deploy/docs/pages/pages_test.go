package pages

import (
	"slices"
	"testing"
)

const page = "# Title\n\nText:\n\n    make one    # a remark\n    kubectl get pods \\\n      -o wide |\n      grep x\n\n" +
	"- an item\n    with more text\n\n```\n$ katbox ls\nNAMESPACE  POD\n$ katbox top\n```\n\n```yaml\nkind: Pod\n```\n\n" +
	"    for pod in $(kubectl get pods); do\n      kubectl exec $pod\n    done\n\n```console\n$ ls\n```\n\n```text\n--flag\n```\n"

func TestIn(t *testing.T) {
	want := []string{
		"make one", "kubectl get pods -o wide | grep x", "katbox ls", "katbox top",
		"for pod in $(kubectl get pods); do kubectl exec $pod; done", "ls",
	}
	if got := In(page); !slices.Equal(got, want) {
		t.Errorf("the commands are %q, want %q", got, want)
	}
}

func TestCommands(t *testing.T) {
	found, err := Commands("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Command{
		{"README.md", "make demo"}, {"deploy/docs/users.md", "kubectl katbox ui"}, {"soak/bench/README.md", "make measure WHAT=bench"},
	} {
		if !slices.Contains(found, want) {
			t.Errorf("%+v is missing", want)
		}
	}
}
