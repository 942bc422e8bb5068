package deploy

import (
	"maps"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

// write is a change that someone asks the API server for.
type write struct {
	// by is the user; "" for the daemon. node is the node that the token is bound to.
	by, node string
	// resource may have a subresource behind a slash.
	resource    string
	now, before map[string]any
}

func poolNode(name string, spec map[string]any) map[string]any {
	return map[string]any{"kind": "PoolNode", "metadata": map[string]any{"name": name}, "spec": spec}
}

func poolAttachment(node string, status map[string]any) map[string]any {
	a := map[string]any{"kind": "PoolAttachment", "metadata": map[string]any{"name": "v." + node},
		"spec": map[string]any{"volumeName": "v", "nodeName": node}}
	if status != nil {
		a["status"] = status
	}
	return a
}

// TestANodeWritesWhatIsItsOwn: the API server's own code evaluates the policy.
func TestANodeWritesWhatIsItsOwn(t *testing.T) {
	const daemon = "system:serviceaccount:katbox:katbox"
	address := map[string]any{"addresses": []any{"10.9.0.7"}, "iqn": "iqn.2026-11.io.katbox:0:node-1"}
	pending := map[string]any{"state": "ISCSILoginPending", "serverID": "srv-1", "target": "iqn.x:y", "portal": "10.9.0.1:3260",
		"lun": int64(3)}
	with := func(status map[string]any, more ...any) map[string]any {
		s := maps.Clone(status)
		for i := 0; i < len(more); i += 2 {
			s[more[i].(string)] = more[i+1]
			if more[i+1] == nil {
				delete(s, more[i].(string))
			}
		}
		return s
	}
	active := with(pending, "state", "Ready", "iscsiStatus", "Active")
	report := func(node string, now, before map[string]any) write {
		return write{node: "node-1", resource: "poolattachments/status", now: poolAttachment(node, now), before: poolAttachment(node, before)}
	}
	long := strings.Repeat("n", 200)
	tests := map[string]struct {
		write
		refused string
	}{
		"makes its own": {write{node: "node-1", resource: "poolnodes", now: poolNode("node-1", address)}, ""},
		"without an IQN": {write{node: "node-1", resource: "poolnodes", now: poolNode("node-1",
			map[string]any{"addresses": []any{"10.0.0.1"}})}, ""},
		"changes its own": {write{node: "node-1", resource: "poolnodes", now: poolNode("node-1", address),
			before: poolNode("node-1", address)}, ""},
		"with a very long name": {write{node: long, resource: "poolnodes", now: poolNode(long, address)}, ""},
		"makes another one's": {write{node: "node-1", resource: "poolnodes", now: poolNode("node-2", address)},
			"the daemon of node node-1 writes nothing of the node node-2"},
		"changes another one's": {write{node: "node-1", resource: "poolnodes", now: poolNode("node-2", address),
			before: poolNode("node-2", address)}, "writes nothing of the node node-2"},
		"takes another one's IQN": {write{node: "node-2", resource: "poolnodes", now: poolNode("node-2", address)},
			"the IQN of a node ends"},
		"one that ends alike":     {write{node: "1", resource: "poolnodes", now: poolNode("1", address)}, "the IQN of a node ends"},
		"with a token of no node": {write{resource: "poolnodes", now: poolNode("", address)}, "says no node"},
		"a person makes one":      {write{by: "admin", resource: "poolnodes", now: poolNode("node-2", address)}, ""},
		"the controller": {write{by: daemon + "-controller", resource: "poolattachments/status", now: poolAttachment("node-1",
			active), before: poolAttachment("node-1", nil)}, ""},
		"reports its session":     {report("node-1", active, pending), ""},
		"reports that it is lost": {report("node-1", with(active, "state", "ISCSILoginPending", "iscsiStatus", "Disconnected"), active), ""},
		"reports nothing new":     {report("node-1", active, active), ""},
		"of one that is detached": {report("node-1", with(pending, "state", "Detaching", "iscsiStatus", "Disconnected"), with(pending,
			"state", "Detaching")), ""},
		"of another node": {report("node-2", active, pending), "writes nothing of the node node-2"},
		"another LUN":     {report("node-1", with(active, "lun", int64(4)), pending), "the controller writes the rest"},
		"no LUN":          {report("node-1", with(active, "lun", nil), pending), "the controller writes the rest"},
		"a first portal": {report("node-1", with(active, "portal", "10.6.6.6:3260"), with(pending, "portal", nil)),
			"the controller writes the rest"},
		"the address that is let in": {report("node-1", with(active, "address", "10.6.6.6"), pending), "the controller writes the rest"},
		"where it is mounted from":   {report("node-1", with(active, "export", "10.6.6.6:/x"), pending), "the controller writes the rest"},
		"another server":             {report("node-1", with(active, "serverID", "srv-2"), pending), "the controller writes the rest"},
		"a message":                  {report("node-1", with(active, "message", "x"), pending), "the controller writes the rest"},
		"which disk it has found":    {report("node-1", with(active, "wwid", "naa.1", "diskBytes", int64(1<<30)), active), ""},
		"asks again about a disk": {report("node-1", with(active, "wwid", "naa.1"), with(active, "wwid", "naa.1", "refusedWWID", "naa.1",
			"message", "x")), "the controller writes the rest"},
		"asks about a disk anew": {report("node-1", with(active, "wwid", "naa.1", "message", "x"), with(active, "wwid", "naa.1", "refusedWWID",
			"naa.1", "message", "x")), ""},
		"accepts a disk":  {report("node-1", with(active, "wwid", "naa.1", "acceptedWWID", "naa.1"), active), "the controller writes the rest"},
		"refuses a disk":  {report("node-1", with(active, "wwid", "naa.1", "refusedWWID", "naa.1"), active), "a daemon refuses no disk"},
		"what is refused": {report("node-1", with(active, "wwid", "naa.2", "refusedWWID", "naa.1"), with(active, "refusedWWID", "naa.1")), ""},
		"that it is detached": {report("node-1", with(pending, "state", "Detaching"), pending),
			"only between Ready and ISCSILoginPending"},
		"that it is ready, detached": {report("node-1", active, with(pending, "state", "Detaching")),
			"only between Ready and ISCSILoginPending"},
		"of one without a status": {report("node-1", map[string]any{"iscsiStatus": "Active"}, nil), ""},
		"a state for one without": {report("node-1", map[string]any{"state": "Ready"}, nil), "only between Ready and ISCSILoginPending"},
		"its label": {write{node: "node-1", resource: "poolattachments", now: poolAttachment("node-1", active),
			before: poolAttachment("node-1", active)},
			"nothing of an attachment but its status"},
		"a new attachment": {write{node: "node-1", resource: "poolattachments", now: poolAttachment("node-1", nil)},
			"nothing of an attachment but its status"},
	}
	for name, objects := range controllers(t) {
		policies := all[*admissionv1.ValidatingAdmissionPolicy](t, objects)
		bindings := all[*admissionv1.ValidatingAdmissionPolicyBinding](t, objects)
		if len(policies) != 1 || len(bindings) != 1 || bindings[0].Spec.PolicyName != policies[0].Name ||
			*policies[0].Spec.FailurePolicy != admissionv1.Fail {
			t.Fatalf("%s: there are %d policies, %d bindings", name, len(policies), len(bindings))
		}
		set := one[*appsv1.DaemonSet](t, objects)
		account := "system:serviceaccount:" + set.Namespace + ":" + set.Spec.Template.Spec.ServiceAccountName
		validate := validator(t, policies[0].Spec)
		for what, tt := range tests {
			by := strings.Replace(tt.by, daemon, account, 1)
			if by == "" {
				by = account
			}
			got := tt.ask(validate, by)
			if tt.refused == "" && got != "" || tt.refused != "" && !strings.Contains(got, tt.refused) {
				t.Errorf("%s: %s: refused with %q, want %q", name, what, got, tt.refused)
			}
		}
	}
	without := helm(t, "--set", "pools.enabled=true,pools.node.admissionPolicy=false")
	if n := len(all[*admissionv1.ValidatingAdmissionPolicy](t, without)); n != 0 {
		t.Errorf("%d policies although they are switched off", n)
	}
}

// ask asks for the change, and returns why it is refused; "" when it is not.
func (w write) ask(validate func(now, before *unstructured.Unstructured, gvk schema.GroupVersionKind,
	resource schema.GroupVersionResource,
	subresource string, operation admission.Operation, who user.Info) string, by string,
) string {
	resource, subresource, _ := strings.Cut(w.resource, "/")
	who := &user.DefaultInfo{Name: by}
	if w.node != "" {
		who.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {w.node}}
	}
	group := schema.GroupVersion{Group: "pools.katbox.io", Version: "v1alpha1"}
	operation, before := admission.Create, (*unstructured.Unstructured)(nil)
	if w.before != nil {
		operation, before = admission.Update, &unstructured.Unstructured{Object: w.before}
	}
	return validate(&unstructured.Unstructured{Object: w.now}, before, group.WithKind(w.now["kind"].(string)),
		group.WithResource(resource), subresource, operation, who)
}
