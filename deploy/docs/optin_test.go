package main

import (
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/optin"
)

// TestOptInPageHasTheTable: each reason, each preset and each annotation of the policy is on its page.
func TestOptInPageHasTheTable(t *testing.T) {
	page := read(t, "deploy/docs/optin.md")
	label := "`" + optin.Label + "="
	want := []string{api.Topology, optin.VolumesAnnotation, label + optin.Keep + "`", label + optin.Drop + "`"}
	for _, key := range optin.Attributes {
		want = append(want, "`"+optin.AttributePrefix+key+"`")
	}
	for _, namespace := range optin.System[:3] {
		want = append(want, "`"+namespace+"`")
	}
	for _, rule := range optin.Pods {
		want = append(want, "| "+rule.Because+" |")
	}
	for _, rule := range slices.Concat(optin.Volumes, optin.Names) {
		want = append(want, "| "+rule.Because+" |")
	}
	for _, p := range optin.Presets {
		want = append(want, "`"+p.Label+"`")
		for _, name := range p.Keep {
			want = append(want, "`"+name+"`")
		}
		for _, left := range p.Leave {
			want = append(want, "`"+left.Volumes+"`")
		}
		if p.Mount != "" {
			want = append(want, "`"+p.Mount+"`")
		}
	}
	for _, text := range want {
		if !strings.Contains(page, text) {
			t.Errorf("deploy/docs/optin.md does not have %s", text)
		}
	}
}

// TestKyvernoSampleLeavesTheSameNames: the sample for Kyverno leaves the pods of the same namespaces alone, and volumes by the
// same names.
func TestKyvernoSampleLeavesTheSameNames(t *testing.T) {
	type condition struct {
		Key, Operator string
		Value         any
	}
	var sample struct {
		Spec struct {
			Rules []struct {
				Match struct {
					Any []struct {
						Resources struct {
							NamespaceSelector struct{ MatchLabels map[string]string }
						}
					}
				}
				Exclude struct {
					Any []struct{ Resources struct{ Namespaces []string } }
				}
				Mutate struct {
					ForEach []struct {
						List                string
						Preconditions       struct{ All []condition }
						PatchStrategicMerge struct {
							Spec struct {
								Volumes []struct {
									CSI struct {
										Driver           string
										VolumeAttributes map[string]string
									}
								}
							}
						}
					} `json:"foreach"`
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/examples/kyverno/opt-in.yaml")), &sample); err != nil {
		t.Fatal(err)
	}
	rule := sample.Spec.Rules[0]
	if got := rule.Match.Any[0].Resources.NamespaceSelector.MatchLabels[optin.Label]; got != optin.Keep {
		t.Errorf("the label of namespaces is %q", got)
	}
	if got := rule.Exclude.Any[0].Resources.Namespaces; !reflect.DeepEqual(got, optin.System) {
		t.Errorf("the namespaces are %v, want %v", got, optin.System)
	}
	if len(rule.Mutate.ForEach) != 2 {
		t.Fatalf("there are %d kinds of volumes", len(rule.Mutate.ForEach))
	}
	for _, each := range rule.Mutate.ForEach {
		csi := each.PatchStrategicMerge.Spec.Volumes[0].CSI
		if csi.Driver != api.DriverName || csi.VolumeAttributes["converted"] != "true" {
			t.Errorf("%s becomes %+v", each.List, csi)
		}
		for _, name := range []string{
			"work", "scratch", "istio-data", "istiod-ca", "my-istio-data", "workload-socket", "credential-socket", "credential-sockets", "linkerd-x",
			"consul-connect-inject", "kuma-x", "tekton-internal-run", "my-tekton-x", "var-run-argo", "var-run-argo-x", "tmp-dir-argo", "my-secrets",
			"certs", "db-password", "tokens", "ssh-keys", "gpg", "docker-config", "dockerconfig", "kubeconfig", "netrc", "docker", "out",
		} {
			pod := &optin.Pod{Spec: optin.Spec{Volumes: []optin.Volume{{Name: name, IsEmptyDir: true}}}}
			left := slices.ContainsFunc(each.Preconditions.All[0].Value.([]any), func(pattern any) bool {
				matches, err := path.Match(pattern.(string), name)
				return matches && err == nil
			})
			if because := optin.Params(nil).Decide(pod, nil).Volumes[0].Because; left != (because != "") {
				t.Errorf("%s leaves %q alone: %t; the policy: %q", each.List, name, left, because)
			}
		}
	}
}
