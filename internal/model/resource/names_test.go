package resource

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/katbox/katbox/internal/model/api"
)

func TestName(t *testing.T) {
	for _, tt := range []struct {
		pod, name, prefix string
		exact             bool
	}{
		{"nightly-29000000-x7k2p", "nightly-29000000-x7k2p.", "nightly-29000000-x7k2p", true},
		{"a.b.c", "a.b.c.", "a.b.c", true},
		{"", "unknown.", "", false},
		{"unknown", "unknown.", "", false},
		{"Not a name\n", "unknown.", "", false},
		{strings.Repeat("p", 239), strings.Repeat("p", 239) + ".", strings.Repeat("p", 239), true},
		{strings.Repeat("p", 240), strings.Repeat("p", 240) + ".", strings.Repeat("p", 240), false},
		{strings.Repeat("p", 253), strings.Repeat("p", 240) + ".", strings.Repeat("p", 240), false},
	} {
		v := api.Volume{Pod: tt.pod, Node: "n17", ID: "csi-1"}
		name := Name(v)
		// These names are in the bookmarks and scripts of users: they never change.
		if name != tt.name+"8n0nx3kybwp5" {
			t.Errorf("name of a volume of pod %q: %q", tt.pod, name)
		}
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
			t.Errorf("name %q: %v", name, wrong)
		}
		prefix, exact, node, id, err := ParseName(name)
		if err != nil || prefix != tt.prefix || exact != tt.exact || node != NodeHash("n17") || id != IDHash("csi-1") {
			t.Errorf("parse %q: %q %v %x %x, %v", name, prefix, exact, node, id, err)
		}
	}
}

// TestNameOfAClaim: the claim's name stands where that of a pod is.
func TestNameOfAClaim(t *testing.T) {
	name := Name(api.Volume{Claim: "data-web-0", Node: "n17", ID: "pvc-1"})
	if want := Name(api.Volume{Pod: "data-web-0", Node: "n17", ID: "pvc-1"}); name != want || !strings.HasPrefix(name, "data-web-0.") {
		t.Errorf("%q, want %q", name, want)
	}
}

func TestNamesDiffer(t *testing.T) {
	seen := map[string]string{}
	for node := range 100 {
		for id := range 100 {
			v := api.Volume{Pod: "p", Node: fmt.Sprint("n", node), ID: fmt.Sprint("csi-", id)}
			name := Name(v)
			if other := seen[name]; other != "" {
				t.Errorf("%+v and %s have the name %q", v, other, name)
			}
			seen[name] = fmt.Sprintf("%+v", v)
		}
	}
}

func TestParseBadNames(t *testing.T) {
	for _, name := range []string{
		"", ".", "pod", "pod.", ".8n0nx3kybwp5", "pod.8n0nx3kybwh", "pod.8n0nx3kybwp5z", "pod.DBX4AZ06V2HZ", "pod.8n0nx3kybwhi",
		"pod.8n0nx3kybwh\x00",
		"po d.8n0nx3kybwp5", "../x.8n0nx3kybwp5", strings.Repeat("p", 241) + ".8n0nx3kybwp5", "pod.8n0nx3kybwh\u00e9", "pod.é\xff",
	} {
		if _, _, _, _, err := ParseName(name); err == nil {
			t.Errorf("%q is taken for a name", name)
		}
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("nightly-29000000-x7k2p.q3fd7k2m9c4a")
	f.Add("pod.\xff")
	f.Fuzz(func(t *testing.T, name string) {
		prefix, exact, node, id, err := ParseName(name)
		if err != nil {
			return
		}
		rest := format(uint64(node), nodeDigits) + format(id, idDigits)
		if len(name) > 253 || !strings.HasSuffix(name, "."+rest) || !strings.HasPrefix(name, prefix) || exact && name != prefix+"."+rest {
			t.Errorf("parse %q: %q %v %x %x", name, prefix, exact, node, id)
		}
	})
}
