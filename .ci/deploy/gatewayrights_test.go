package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestGatewayMayDoNoMore than this, and the daemon nothing.
func TestGatewayMayDoNoMore(t *testing.T) {
	const own, system, cluster = "katbox", "kube-system", ""
	want := []string{
		own + ": configmaps/katbox-gateway-ca get update",
		own + ": pods list watch",
		own + ": secrets/katbox-gateway get update",
		cluster + ": /.well-known/openid-configuration get",
		cluster + ": /openid/v1/jwks get",
		cluster + ": apiregistration.k8s.io apiservices/v1alpha1.katbox.io get patch",
		cluster + ": events create",
		cluster + ": namespaces get list watch",
		cluster + ": pods get list watch",
		cluster + ": pools.katbox.io poolvolumes list watch",
		cluster + ": as system:auth-delegator",
		system + ": as extension-apiserver-authentication-reader",
	}
	slices.Sort(want)
	for name, objects := range gateways(t) {
		if name == "renamed" {
			continue // these are the names of the others
		}
		got := rightsOf(t, objects, one[*appsv1.Deployment](t, objects).Spec.Template.Spec.ServiceAccountName)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the gateway may\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if got := rightsOf(t, objects, one[*appsv1.DaemonSet](t, objects).Spec.Template.Spec.ServiceAccountName); len(got) > 0 {
			t.Errorf("%s: the daemon may %s", name, got)
		}
	}
}

// TestNoOutcomesNoWatch: a gateway that is not to say how pods end has no right to watch them.
func TestNoOutcomesNoWatch(t *testing.T) {
	objects := helm(t, "--set", "gateway.enabled=true,gateway.outcomes=off")
	deployment := one[*appsv1.Deployment](t, objects)
	if got := flagsOf(deployment.Spec.Template.Spec.Containers[0])["--outcomes"]; got != "off" {
		t.Errorf("--outcomes is %q", got)
	}
	got := rightsOf(t, objects, deployment.Spec.Template.Spec.ServiceAccountName)
	if !slices.Contains(got, ": pods get") || slices.Contains(got, ": pods get list watch") {
		t.Errorf("the gateway may\n%s", strings.Join(got, "\n"))
	}
}

// TestNoPodEventsNoRight: a gateway that is to write no events has no right to. One that writes some knows whose volumes
// they are about.
func TestNoPodEventsNoRight(t *testing.T) {
	const named = "csiDriver.name=other.example.com"
	for values, want := range map[string]struct {
		flag, driver string
		right        bool
	}{
		named:                              {"", "other.example.com", true},
		"gateway.podEvents=true":           {"", "", true}, // the driver has the name that the gateway takes it to have
		"gateway.podEvents=false," + named: {"false", "", false},
		"gateway.outcomes=off":             {"", "", false},
	} {
		objects := helm(t, "--set", "gateway.enabled=true,"+values)
		deployment := one[*appsv1.Deployment](t, objects)
		flags := flagsOf(deployment.Spec.Template.Spec.Containers[0])
		if flags["--pod-events"] != want.flag || flags["--driver-name"] != want.driver {
			t.Errorf("%s: the gateway is told %v", values, flags)
		}
		got := rightsOf(t, objects, deployment.Spec.Template.Spec.ServiceAccountName)
		if slices.Contains(got, ": events create") != want.right {
			t.Errorf("%s: the gateway may\n%s", values, strings.Join(got, "\n"))
		}
	}
}

// rightsOf returns what a ServiceAccount may do, a line for each resource.
func rightsOf(t *testing.T, objects []*unstructured.Unstructured, account string) (rights []string) {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	for _, role := range all[*rbacv1.Role](t, objects) {
		rules["Role "+role.Name] = role.Rules
	}
	for _, role := range all[*rbacv1.ClusterRole](t, objects) {
		rules["ClusterRole "+role.Name] = role.Rules
	}
	bound := func(namespace string, to rbacv1.RoleRef, of []rbacv1.Subject) {
		if !slices.ContainsFunc(of, func(s rbacv1.Subject) bool { return s.Name == account && s.Kind == rbacv1.ServiceAccountKind }) {
			return
		}
		shipped, ok := rules[to.Kind+" "+to.Name]
		if !ok {
			rights = append(rights, namespace+": as "+to.Name)
		}
		for _, rule := range shipped {
			for _, path := range rule.NonResourceURLs {
				rights = append(rights, fmt.Sprintf("%s: %s %s", namespace, path, strings.Join(rule.Verbs, " ")))
			}
			for _, resource := range rule.Resources {
				for _, name := range append(rule.ResourceNames, "")[:max(1, len(rule.ResourceNames))] {
					group := strings.TrimPrefix(rule.APIGroups[0]+" ", " ")
					rights = append(rights, fmt.Sprintf("%s: %s%s %s", namespace, group, strings.TrimSuffix(resource+"/"+name, "/"),
						strings.Join(rule.Verbs, " ")))
				}
			}
		}
	}
	for _, b := range all[*rbacv1.RoleBinding](t, objects) {
		bound(b.Namespace, b.RoleRef, b.Subjects)
	}
	for _, b := range all[*rbacv1.ClusterRoleBinding](t, objects) {
		bound("", b.RoleRef, b.Subjects)
	}
	slices.Sort(rights)
	return rights
}

// TestRightsOfUsers: names for who may look, files for who may exec, unless the administrator wants
// it otherwise. Deleting is never for those who may look only, and no role but the one for it keeps longer.
func TestRightsOfUsers(t *testing.T) {
	const list, files, remove = "retainedvolumes get list", "retainedvolumes/files retainedvolumes/log get", "retainedvolumes delete"
	values := func(more string) []*unstructured.Unstructured { return helm(t, "--set", "gateway.enabled=true"+more) }
	nobody := map[string]string{"view": "", "edit": "", "admin": ""}
	everything := strings.Join([]string{remove, files, list}, ", ")
	usual := map[string]string{"view": list, "edit": everything, "admin": everything}
	for name, tt := range map[string]struct {
		objects []*unstructured.Unstructured
		want    map[string]string
	}{
		"manifests": {kustomize(t, "overlays/with-gateway"), usual},
		"chart":     {values(""), usual},
		"files": {values(",gateway.rbac.filesFor=view"),
			map[string]string{"view": files + ", " + list, "edit": everything, "admin": everything}},
		"not switched": {values(",gateway.rbac.aggregate=false,gateway.rbac.filesFor=view"), nobody},
	} {
		got := maps.Clone(nobody)
		roles := all[*rbacv1.ClusterRole](t, tt.objects)
		slices.SortFunc(roles, func(a, b *rbacv1.ClusterRole) int { return strings.Compare(a.Name, b.Name) })
		for _, role := range roles {
			for to := range got {
				if role.Labels["rbac.authorization.k8s.io/aggregate-to-"+to] != "true" {
					continue
				}
				for _, rule := range role.Rules {
					if !slices.Equal(rule.APIGroups, []string{"katbox.io"}) || len(rule.ResourceNames) > 0 {
						t.Errorf("%s: %s gives %+v", name, role.Name, rule)
					}
					got[to] = strings.TrimPrefix(got[to]+", "+strings.Join(append(rule.Resources, rule.Verbs...), " "), ", ")
				}
			}
		}
		if !maps.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		if len(roles) != 5 {
			t.Errorf("%s: there are %d ClusterRoles, want those to bind and the gateway's own", name, len(roles))
		}
	}
}
