//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// besideClass is the class of the pools that a scenario makes beside the first one. Its StorageClass has the
// same name.
const besideClass = "slow"

// beside is an array beside the first one, in memory, with a pool of its name.
type beside struct {
	*program
	p         *poolsCluster
	name, url string
	serial    int
	flags     []string
}

// serials counts the arrays: two with one serial number would be one.
var serials = 1

// startBeside starts another array, which ends with the scenario.
func (p *poolsCluster) startBeside(name string, flags ...string) *beside {
	p.t.Helper()
	serials++
	b := &beside{p: p, name: name, serial: serials}
	address := p.kubectl("get", "node", p.node, "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`)
	b.flags = append(flags, "--no-recycle-bin", "--serial="+strconv.Itoa(b.serial), "--listen")
	b.start(address + ":0")
	p.t.Cleanup(func() { b.end(syscall.SIGTERM) })
	return b
}

func (b *beside) start(listen string) {
	b.p.t.Helper()
	b.program = b.p.launch("array-"+b.name, b.p.bin("fakearray"), append(slices.Clip(b.flags), listen)...)
	select {
	case b.url = <-b.first:
	case <-b.ended:
		b.p.t.Fatalf("the array %s has ended; see its log", b.name)
	}
}

// orders has a fault, or what a stranger does, come over the array.
func (b *beside) orders(method, path string, body any) {
	b.p.t.Helper()
	b.p.fake(b.url, method, path, body)
}

// pool is the Pool of the array; more are further fields of spec.vpsa.
func (b *beside) pool(more string) string {
	return fmt.Sprintf(`
---
apiVersion: pools.katbox.io/v1alpha1
kind: Pool
metadata: {name: %s}
spec:
  className: %s
  vpsa: {endpoint: %q, credentialsSecretRef: {name: array}%s}
`, b.name, besideClass, b.url, more)
}

// content returns what the array has of a kind: volumes, snapshots or servers.
func (b *beside) content(kind string) []map[string]any {
	b.p.t.Helper()
	other := *b.p
	other.url = b.url
	return other.onArray(kind)
}

// classBeside makes a class without pools, and what claims name.
func (p *poolsCluster) classBeside() {
	p.t.Helper()
	p.apply(fmt.Sprintf(`
---
apiVersion: pools.katbox.io/v1alpha1
kind: PoolClass
metadata: {name: %[1]s}
spec: {}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %[1]s}, provisioner: %[2]s, parameters: {poolClass: %[1]s}}
`, besideClass, poolsDriver))
	p.wantState("poolclass", besideClass, "Ready")
}

// dropBeside deletes pools and then their class.
func (p *poolsCluster) dropBeside(pools ...string) {
	p.t.Helper()
	p.kubectl(append([]string{"delete", "pools", "--wait=true", "--timeout=120s"}, pools...)...)
	p.kubectl("delete", "storageclass,poolclass", besideClass, "--wait=true", "--timeout=120s")
}

// wantState waits until a resource has a state.
func (p *poolsCluster) wantState(kind, name, state string) {
	p.t.Helper()
	p.wantField(kind, name, "{.status.state}", state)
}

// wantField waits until a field of a resource has a value.
func (p *poolsCluster) wantField(kind, name, path, want string) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("%s %s: %s is %s", kind, name, path, want), func() error {
		out, err := p.tryKubectl("", "get", kind, name, "-o", "jsonpath="+path)
		if err == nil && out != want {
			err = fmt.Errorf("it is %q", out)
		}
		return err
	})
}

// wantEvent waits until an Event of an object says all of the words.
func (p *poolsCluster) wantEvent(kind, name, reason string, words ...string) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("an event %s of %s %s says %q", reason, kind, name, words), func() error {
		var events struct{ Items []struct{ Message string } }
		out, err := p.tryKubectl("", "get", "events", "-A", "-o", "json",
			"--field-selector=reason="+reason+",involvedObject.name="+name+",involvedObject.kind="+kind)
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(out), &events); err != nil {
			return err
		}
		missing := errors.New("there is none")
		for _, e := range events.Items {
			if missing = hasAll(e.Message, words); missing == nil {
				return nil
			}
		}
		return missing
	})
}

func hasAll(text string, words []string) error {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return fmt.Errorf("%q is not in %q", word, text)
		}
	}
	return nil
}

// states are those that pools have had, one after the other.
type states struct {
	mu  sync.Mutex
	had map[string][]string
}

// followStates notes the states of all pools from now on. The API server reports each that was written.
func (p *poolsCluster) followStates() *states {
	p.t.Helper()
	s := &states{had: map[string][]string{}}
	watch := exec.Command(p.kube, "kubectl", "get", "pools", "-w", "-o", `jsonpath={.metadata.name} {.status.state}{"\n"}`)
	out, err := watch.StdoutPipe()
	if err == nil {
		err = watch.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan struct{})
	p.t.Cleanup(func() {
		_ = watch.Process.Kill()
		<-ended
	})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if name, state, _ := strings.Cut(lines.Text(), " "); state != "" {
				s.add(name, state)
			}
		}
		_ = watch.Wait()
	}()
	p.eventually("the states are followed", func() error {
		if len(s.of("a")) == 0 {
			return errors.New("that of the first pool has not come")
		}
		return nil
	})
	return s
}

func (s *states) add(pool, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if had := s.had[pool]; len(had) == 0 || had[len(had)-1] != state {
		s.had[pool] = append(had, state)
	}
}

func (s *states) of(pool string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.had[pool]
}

// delay makes each request to the array take so long.
func (b *beside) delay(how string) {
	b.p.t.Helper()
	b.orders(http.MethodPost, "/fake/faults", map[string]any{"kind": "delay", "delay": how})
}

// heal ends all faults.
func (b *beside) heal() {
	b.p.t.Helper()
	b.orders(http.MethodDelete, "/fake/faults", nil)
}
