package deploy

import (
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestOpenShiftAdmitsTheDaemon: where the cluster has SecurityContextConstraints, no pod is
// admitted whose ServiceAccount may not use one that allows it.
func TestOpenShiftAdmitsTheDaemon(t *testing.T) {
	const value = "openshift.securityContextConstraint."
	openshift := []string{"--api-versions", "security.openshift.io/v1"}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"elsewhere":              {nil, ""},
		"detected":               {openshift, "privileged"},
		"detected with sidecars": {append([]string{"--set", "sidecars.enabled=true,fullnameOverride=scratch"}, openshift...), "privileged"},
		"one of its own":         {append([]string{"--set", value + "name=katbox"}, openshift...), "katbox"},
		"switched off":           {append([]string{"--set", value + "enabled=false"}, openshift...), ""},
		"switched on":            {[]string{"--set", value + "enabled=true"}, "privileged"},
	} {
		t.Run(name, func(t *testing.T) {
			var roles []*rbacv1.Role
			var bindings []*rbacv1.RoleBinding
			var account string
			for _, o := range helm(t, test.args...) {
				object, err := accept(o)
				if err != nil {
					t.Fatal(err)
				}
				switch o := object.(type) {
				case *rbacv1.Role:
					roles = append(roles, o)
				case *rbacv1.RoleBinding:
					bindings = append(bindings, o)
				}
				if o.GetKind() == "ServiceAccount" {
					account = o.GetName()
				}
			}
			if test.want == "" {
				if len(roles)+len(bindings) > 0 {
					t.Errorf("there are %d roles and %d bindings", len(roles), len(bindings))
				}
				return
			}
			if len(roles) != 1 || len(bindings) != 1 {
				t.Fatalf("there are %d roles and %d bindings, want one of each", len(roles), len(bindings))
			}
			role, binding := roles[0], bindings[0]
			rules := []rbacv1.PolicyRule{{Verbs: []string{"use"}, APIGroups: []string{"security.openshift.io"},
				Resources: []string{"securitycontextconstraints"}, ResourceNames: []string{test.want}}}
			if !reflect.DeepEqual(role.Rules, rules) || role.Namespace != namespace {
				t.Errorf("the role in %s allows %+v", role.Namespace, role.Rules)
			}
			to := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}
			of := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: namespace}}
			if binding.RoleRef != to || !reflect.DeepEqual(binding.Subjects, of) || binding.Namespace != namespace {
				t.Errorf("the binding in %s gives %+v to %+v", binding.Namespace, binding.RoleRef, binding.Subjects)
			}
		})
	}
}

// TestOpenShiftAdmitsTheGatewayOnTheNodesNetwork: without it the SecurityContextConstraints that every pod may use do.
func TestOpenShiftAdmitsTheGatewayOnTheNodesNetwork(t *testing.T) {
	for network, want := range map[string][]string{"true": {"hostnetwork-v2"}, "false": nil} {
		objects := helm(t, "--api-versions", "security.openshift.io/v1", "--set", "gateway.enabled=true,gateway.hostNetwork="+network)
		account := one[*appsv1.Deployment](t, objects).Spec.Template.Spec.ServiceAccountName
		rules := map[string][]rbacv1.PolicyRule{}
		for _, role := range all[*rbacv1.Role](t, objects) {
			rules[role.Name] = role.Rules
		}
		var used []string
		for _, binding := range all[*rbacv1.RoleBinding](t, objects) {
			for _, rule := range rules[binding.RoleRef.Name] {
				if binding.Subjects[0].Name == account && rule.Resources[0] == "securitycontextconstraints" {
					used = append(used, rule.ResourceNames...)
				}
			}
		}
		if !slices.Equal(used, want) {
			t.Errorf("host network %s: the gateway may use %q, want %q", network, used, want)
		}
	}
}
