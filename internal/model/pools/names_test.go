package pools

import (
	"regexp"
	"strings"
	"testing"
)

func TestNamesOfVolumes(t *testing.T) {
	long := strings.Repeat("a", 64)
	for requested, kept := range map[string]bool{
		"pvc-9f1c": true, "a.b-c": true, strings.Repeat("a", 63): true,
		long: false, "": false, "Pvc": false, "a_b": false, "-a": false, "a.": false, "日本": false,
		"v-" + strings.Repeat("0", 40): false, "s-" + strings.Repeat("0", 40): false,
	} {
		got := VolumeName(requested)
		if (got == requested) != kept {
			t.Errorf("the volume %q is called %q", requested, got)
		}
		if !kept && (len(got) != 42 || !strings.HasPrefix(got, "v-") || !subdomain.MatchString(got)) {
			t.Errorf("the volume %q is called %q", requested, got)
		}
	}
	if VolumeName(long) == VolumeName(long+"a") || VolumeName(VolumeName(long)) == VolumeName(long) {
		t.Error("two requests get one name")
	}
	if got := SnapshotName(long); !strings.HasPrefix(got, "s-") {
		t.Errorf("a snapshot is called %s", got)
	}
}

func TestNamesOfAttachmentsAndServers(t *testing.T) {
	if got := AttachmentName("pvc-1", "node-1"); got != "pvc-1.node-1" {
		t.Error(got)
	}
	if got := AttachmentName("pvc-1", strings.Repeat("n", 253)); len(got) != 42 {
		t.Error(got)
	}
	if AttachmentName("pvc-1.a", "b") == AttachmentName("pvc-1", "a.b") {
		t.Error("two attachments get one name")
	}
	one, other := ServerName("node-1", "cluster-a"), ServerName("node-1", "cluster-b")
	if one == other || !strings.HasPrefix(one, "node-1-") || len(one) != len("node-1-")+8 {
		t.Errorf("servers %s and %s", one, other)
	}
	if got := ServerName(strings.Repeat("n", 250), "c"); len(got) > 128 {
		t.Errorf("a server is called %s", got)
	}
}

func TestCommentTellsWhoseAVolumeIs(t *testing.T) {
	c := NewComment("uid", Claim{Namespace: "shop", Name: "data"})
	if got, want := c.String(), `{"cluster":"uid","pvc":"shop/data"}`; got != want {
		t.Errorf("the comment is %s, want %s", got, want)
	}
	if got := ParseComment(c.String()); got != c || got.For() != (Claim{Namespace: "shop", Name: "data"}) {
		t.Errorf("read as %+v", got)
	}
	for _, claim := range []string{"A B/c", "a", "a/", "/b", "a/b/c", strings.Repeat("a", 64) + "/b", "../x"} {
		if got := (Comment{Claim: claim}).For(); got != (Claim{}) {
			t.Errorf("the claim %q is read as %+v", claim, got)
		}
	}
	for _, text := range []string{"", "x", "[]", "null", `{"cluster":1}`, `"a"`} {
		if got := ParseComment(text); got.Cluster != "" || got.For() != (Claim{}) {
			t.Errorf("%s is read as %+v", text, got)
		}
	}
}

// TestIQNs: they are what the definition of PoolNodes lets pass, and each node's is its own.
func TestIQNs(t *testing.T) {
	valid := regexp.MustCompile(`^(iqn\.[0-9]{4}-[0-9]{2}\.[a-z0-9.:-]+)?$`)
	seen := map[string]string{}
	long := strings.Repeat("n", 252)
	for _, cluster := range []string{"uid-a", "uid-b"} {
		for _, node := range []string{"node-1", "node-1.example.com", strings.Repeat("n", 184), strings.Repeat("n", 185), long + "a",
			long + "b"} {
			got := IQN(node, cluster)
			if len(got) > 223 || !valid.MatchString(got) || got != IQN(node, cluster) {
				t.Errorf("the IQN of node %s is %q, of %d bytes", node, got, len(got))
			}
			if other, twice := seen[got]; twice {
				t.Errorf("nodes %s and %s in cluster %s have one IQN", node, other, cluster)
			}
			seen[got] = node + " in cluster " + cluster
		}
	}
	if got := IQN("node-1", "uid-a"); !strings.HasPrefix(got, "iqn.2026-11.io.katbox:") || !strings.HasSuffix(got, ":node-1") {
		t.Errorf("the IQN %s does not say whose it is", got)
	}
}

func TestEachKindHasAUnit(t *testing.T) {
	for protocol, want := range map[Protocol]int64{"": 1 << 30, NFS: 1 << 30, ISCSI: 1 << 30, Local: 1 << 20} {
		if got := protocol.Kind().Unit(); got != want {
			t.Errorf("volumes over %q are multiples of %d bytes, want %d", protocol, got, want)
		}
	}
}
