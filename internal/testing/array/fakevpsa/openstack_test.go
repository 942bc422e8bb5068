package fakevpsa_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

// The two OpenStack drivers, Cinder for block volumes and Manila for file systems, are clients that
// were written against real arrays. Their requests, and what they take from the answers, are played
// here: whatever their own tests expect must hold.

// openstack sends forms, as both drivers do.
type openstack struct {
	*client
	block bool
}

type object = map[string]any

func (o openstack) form(method, path string, fields ...string) object {
	o.t.Helper()
	return o.fails(0, method, path, fields...)
}

func (o openstack) fails(status float64, method, path string, fields ...string) object {
	o.t.Helper()
	if method == "GET" {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		return o.ask(status, method, path+separator+"page=1&start=0&limit=0", "")
	}
	values := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		values.Set(fields[i], fields[i+1])
	}
	return o.ask(status, method, path, values.Encode())
}

func (o openstack) list(key, path string) (objects []object) {
	o.t.Helper()
	for _, one := range o.form("GET", path)[key].([]any) {
		objects = append(objects, one.(object))
	}
	return objects
}

func (o openstack) create(name string, size int) {
	o.t.Helper()
	block := "NO"
	if o.block {
		block = "YES"
	}
	o.form("POST", "/api/volumes.json", "name", name, "capacity", fmt.Sprint(size), "pool", "pool-00000001", "block", block,
		"thin", "YES", "crypt", "NO", "compress", "YES", "dedupe", "YES", "attachpolicies", "NO")
}

// find sends the first word of a name and compares all of it.
func (o openstack) find(name string) object {
	o.t.Helper()
	word, _, _ := strings.Cut(name, " ")
	for _, v := range o.list("volumes", "/api/volumes.json?display_name="+url.QueryEscape(word)) {
		if v["display_name"] == name {
			return v
		}
	}
	return nil
}

func (o openstack) must(name string) object {
	o.t.Helper()
	v := o.find(name)
	if v == nil {
		o.t.Fatalf("there is no volume %q", name)
	}
	return v
}

func attachedTo(v object) []string {
	names, _ := v["server_ext_names"].(string)
	if names == "" {
		return nil
	}
	return strings.Split(names, ",")
}

func (o openstack) delete(name string) {
	o.t.Helper()
	v := o.find(name)
	if v == nil {
		return
	}
	id := v["name"].(string)
	for _, server := range attachedTo(v) {
		o.form("POST", "/api/volumes/"+id+"/detach.json", "server_name[]", server, "force", "YES")
	}
	o.form("DELETE", "/api/volumes/"+id+".json", "force", "YES")
}

func (o openstack) extend(name string, to int) {
	o.t.Helper()
	v := o.must(name)
	more := to - int(v["virtual_capacity"].(float64))
	o.form("POST", "/api/volumes/"+v["name"].(string)+"/expand.json", "capacity", fmt.Sprint(more))
}

// server finds or makes the record of an initiator or an address.
func (o openstack) server(of string) string {
	o.t.Helper()
	key, field := "iscsi_ip", "iscsi"
	if o.block {
		key, field = "iqn", "iqn"
	}
	for _, s := range o.list("servers", "/api/servers.json") {
		if s[key] == of {
			return s["name"].(string)
		}
	}
	return o.form("POST", "/api/servers.json", field, of, "display_name", of)["server_name"].(string)
}

func (o openstack) controller() object {
	o.t.Helper()
	for _, c := range o.list("vcontrollers", "/api/vcontrollers.json") {
		if c["state"] == "active" {
			return c
		}
	}
	return nil
}

// attach returns the volume's entry for the server.
func (o openstack) attach(name, of string) object {
	o.t.Helper()
	v, server := o.must(name), o.server(of)
	id := v["name"].(string)
	if !slices.Contains(attachedTo(v), server) {
		fields := []string{"volume_name[]", id, "force", "YES"}
		if !o.block {
			fields = append(fields, "access_type", "NFS", "readonly", "NO")
		}
		o.form("POST", "/api/servers/"+server+"/volumes.json", fields...)
	}
	for _, s := range o.list("servers", "/api/volumes/"+id+"/servers.json") {
		if s["iqn"] == of || s["iscsi_ip"] == of {
			return s
		}
	}
	o.t.Fatalf("%s is not attached to %s", name, of)
	return nil
}

func (o openstack) snapshotID(group, name string) string {
	o.t.Helper()
	for _, s := range o.list("snapshots", "/api/consistency_groups/"+group+"/snapshots.json") {
		if s["display_name"] == name {
			return s["name"].(string)
		}
	}
	return ""
}

func TestOpenStack(t *testing.T) {
	for _, driver := range []struct {
		name  string
		block bool
	}{{"cinder", true}, {"manila", false}} {
		for _, scenario := range []struct {
			name string
			play func(*testing.T, *fakevpsa.Array, openstack)
		}{
			{"create and delete", createAndDelete},
			{"create and delete several", createSeveral},
			{"attach and detach", attachAndDetach},
			{"detach what is not attached", detachWrong},
			{"delete without detaching", deleteAttached},
			{"no active controller", noActiveController},
			{"wrong key", wrongKey},
			{"HTTP error", httpError},
			{"expand", expand},
			{"snapshots", snapshots},
			{"clones", clones},
			{"manage an existing volume", manageVolume},
			{"manage an existing snapshot", manageSnapshot},
			{"capacity", capacity},
		} {
			t.Run(driver.name+"/"+scenario.name, func(t *testing.T) {
				a, c := newArray(t, fakevpsa.Options{})
				scenario.play(t, a, openstack{c, driver.block})
			})
		}
	}
}

func createAndDelete(t *testing.T, a *fakevpsa.Array, o openstack) {
	o.create("OS_test_volume_01", 1)
	v := o.must("OS_test_volume_01")
	if v["virtual_capacity"] != 1.0 || v["status"] != "Available" || v["pool_name"] != "pool-00000001" {
		t.Errorf("%v", v)
	}
	if path, _ := v["nfs_export_path"].(string); o.block == strings.HasSuffix(path, ":/export/OS_test_volume_01") {
		t.Errorf("export %q", path)
	}
	o.delete("OS_test_volume_01")
	o.delete("OS_test_volume_01")
	if len(a.Volumes()) != 0 {
		t.Error("the volume is still there")
	}
}

func createSeveral(t *testing.T, a *fakevpsa.Array, o openstack) {
	for n := 1; n <= 3; n++ {
		o.create(fmt.Sprintf("v%d", n), n)
	}
	only, other := "showonlyblock", "showonlyfile"
	if !o.block {
		only, other = other, only
	}
	if all := o.list("volumes", "/api/volumes.json?"+only+"=YES"); len(all) != 3 {
		t.Errorf("%d volumes of the kind", len(all))
	}
	if none := o.list("volumes", "/api/volumes.json?"+other+"=YES"); len(none) != 0 {
		t.Errorf("%d volumes of the other kind", len(none))
	}
	for _, n := range []int{2, 3, 1, 4} {
		o.delete(fmt.Sprintf("v%d", n))
	}
	if len(a.Volumes()) != 0 {
		t.Error("volumes are still there")
	}
}

func attachAndDetach(t *testing.T, a *fakevpsa.Array, o openstack) {
	o.create("v", 1)
	c := o.controller()
	entry := o.attach("v", "test_1")
	if o.block {
		if entry["target"] != c["target"] || entry["lun"] != 0.0 {
			t.Errorf("attached as %v, controller %v", entry, c)
		}
	} else if entry["iscsi_ip"] != "test_1" {
		t.Errorf("attached as %v", entry)
	}
	for _, key := range []string{"iscsi_ip", "vpsa_chap_user", "vpsa_chap_secret"} {
		if c[key] == "" || c[key] == nil {
			t.Errorf("the controller has no %s", key)
		}
	}
	v := o.must("v")
	if v["status"] != "In-use" {
		t.Errorf("status %v", v["status"])
	}
	// Again: the record and the attachment stay the only ones.
	o.attach("v", "test_1")
	id, server := v["name"].(string), o.server("test_1")
	o.form("POST", "/api/servers/"+server+"/volumes.json", "volume_name[]", id, "access_type", "NFS", "force", "YES")
	if len(a.Servers()) != 1 || len(a.Attachments()) != 1 {
		t.Errorf("servers %v, attachments %v", a.Servers(), a.Attachments())
	}
	o.form("POST", "/api/volumes/"+id+"/detach.json", "server_name[]", server, "force", "YES")
	o.delete("v")
}

func detachWrong(t *testing.T, _ *fakevpsa.Array, o openstack) {
	o.create("v", 1)
	id := o.must("v")["name"].(string)
	one, other := o.server("test_1"), o.server("test_2")
	o.attach("v", "test_1")
	o.fails(10086, "POST", "/api/volumes/"+id+"/detach.json", "server_name[]", other, "force", "YES")
	o.fails(10086, "POST", "/api/volumes/"+id+"/detach.json", "server_name[]", "srv-00000099", "force", "YES")
	o.fails(10081, "POST", "/api/volumes/volume-00000099/detach.json", "server_name[]", one, "force", "YES")
	o.fails(10081, "POST", "/api/servers/"+one+"/volumes.json", "volume_name[]", "volume-00000099", "access_type", "NFS", "force", "YES")
	o.fails(10081, "GET", "/api/volumes/volume-00000099/servers.json")
	o.form("POST", "/api/volumes/"+id+"/detach.json", "server_name[]", one, "force", "YES")
	o.fails(10086, "POST", "/api/volumes/"+id+"/detach.json", "server_name[]", one, "force", "YES")
}

func deleteAttached(t *testing.T, a *fakevpsa.Array, o openstack) {
	o.create("v", 1)
	for _, of := range []string{"test_1", "test_2", "test_3"} {
		o.attach("v", of)
	}
	v := o.must("v")
	if n := len(attachedTo(v)); n != 3 {
		t.Fatalf("attached to %d servers", n)
	}
	o.fails(10000, "DELETE", "/api/volumes/"+v["name"].(string)+".json", "force", "YES")
	o.delete("v")
	if len(a.Volumes()) != 0 || len(a.Servers()) != 3 {
		t.Errorf("volumes %v, servers %v", a.Volumes(), a.Servers())
	}
}

func noActiveController(t *testing.T, a *fakevpsa.Array, o openstack) {
	if o.controller() == nil {
		t.Fatal("no controller is active")
	}
	if err := a.Change(func(s *fakevpsa.Settings) { s.Active = -1 }); err != nil {
		t.Fatal(err)
	}
	if c := o.controller(); c != nil {
		t.Errorf("active is %v", c)
	}
}

func wrongKey(_ *testing.T, _ *fakevpsa.Array, o openstack) {
	o.token = "FAKEACCESSKEY"
	o.fails(5, "GET", "/api/vcontrollers.json")
	o.fails(5, "POST", "/api/volumes.json", "name", "v", "capacity", "1", "pool", "pool-00000001")
}

func httpError(t *testing.T, a *fakevpsa.Array, o openstack) {
	if _, err := a.Fail(fakevpsa.Fault{Kind: fakevpsa.HTTP, Status: 400}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.send("POST", "/api/volumes.json", "name=v&capacity=1&pool=pool-00000001"); err == nil {
		t.Error("an HTTP error was taken for an answer")
	}
	if len(a.Volumes()) != 0 {
		t.Error("a volume was made")
	}
}

func expand(t *testing.T, _ *fakevpsa.Array, o openstack) {
	o.create("v", 10)
	o.fails(10081, "POST", "/api/volumes/volume-00000099/expand.json", "capacity", "5")
	o.extend("v", 15)
	if size := o.must("v")["virtual_capacity"]; size != 15.0 {
		t.Errorf("size %v", size)
	}
}

func snapshots(t *testing.T, a *fakevpsa.Array, o openstack) {
	o.create("v", 1)
	group := o.must("v")["cg_name"].(string)
	o.fails(10081, "POST", "/api/consistency_groups/cg-00000999/snapshots.json", "display_name", "snap_01")
	made := o.form("POST", "/api/consistency_groups/"+group+"/snapshots.json", "display_name", "snap_01")
	id := o.snapshotID(group, "snap_01")
	if id == "" || made["snapshot_name"] != id {
		t.Errorf("made %v, found %q", made, id)
	}
	o.fails(10000, "POST", "/api/consistency_groups/"+group+"/snapshots.json", "display_name", "snap_01")
	if o.snapshotID(group, "wrong_snap") != "" {
		t.Error("found a snapshot that is not there")
	}
	if all := o.list("snapshots", "/api/snapshots.json"); len(all) != 1 || all[0]["volume_ext_name"] != o.must("v")["name"] {
		t.Errorf("all snapshots: %v", all)
	}
	o.fails(10000, "DELETE", "/api/volumes/"+o.must("v")["name"].(string)+".json", "force", "YES")
	o.form("DELETE", "/api/snapshots/"+id+".json")
	o.fails(10081, "DELETE", "/api/snapshots/"+id+".json")
	o.delete("v")
	if len(a.Snapshots()) != 0 {
		t.Error("snapshots are left")
	}
}

func clones(t *testing.T, a *fakevpsa.Array, o openstack) {
	o.create("v1", 3)
	group := o.must("v1")["cg_name"].(string)
	o.form("POST", "/api/consistency_groups/"+group+"/snapshots.json", "display_name", "snap_01")
	id := o.snapshotID(group, "snap_01")

	o.fails(10081, "POST", "/api/consistency_groups/cg-00000999/clone.json", "name", "v2")
	o.fails(10081, "POST", "/api/consistency_groups/"+group+"/clone.json", "name", "v2", "snapshot", "snap-00000099")
	o.extend("v1", 5)
	o.form("POST", "/api/consistency_groups/"+group+"/clone.json", "name", "v2", "snapshot", id)
	o.form("POST", "/api/consistency_groups/"+group+"/clone.json", "name", "v3")
	if v2, v3 := o.must("v2"), o.must("v3"); v2["virtual_capacity"] != 3.0 || v3["virtual_capacity"] != 5.0 || v2["cg_name"] == group {
		t.Errorf("of the snapshot: %v; of the volume: %v", v2, v3)
	}
	// The clone is larger than its source in the end.
	o.extend("v2", 7)
	o.form("DELETE", "/api/snapshots/"+id+".json")
	for _, name := range []string{"v1", "v3", "v2"} {
		o.delete(name)
	}
	if len(a.Volumes()) != 0 {
		t.Error("volumes are left")
	}
}

func manageVolume(t *testing.T, a *fakevpsa.Array, o openstack) {
	added, err := a.AddVolume(fakevpsa.Volume{Name: "theirs", Size: 2, Block: o.block, Export: "/export/manage_id"})
	if err != nil {
		t.Fatal(err)
	}
	only := "showonlyblock"
	if !o.block {
		only = "showonlyfile"
	}
	all := o.list("volumes", "/api/volumes.json?"+only+"=YES")
	if len(all) != 1 || all[0]["status"] != "Available" || all[0]["provisioned_capacity"] != 2.0 {
		t.Fatalf("volumes %v", all)
	}
	if !o.block && !strings.HasSuffix(all[0]["nfs_export_path"].(string), "/manage_id") {
		t.Errorf("export %v", all[0]["nfs_export_path"])
	}
	o.create("taken", 1)
	o.fails(10000, "POST", "/api/volumes/"+added.ID+"/rename.json", "new_name", "taken")
	o.form("POST", "/api/volumes/"+added.ID+"/rename.json", "new_name", "OS_share-ours")
	o.create("theirs", 1) // The name is free again.
	if o.must("theirs")["name"] == added.ID || o.must("OS_share-ours")["name"] != added.ID {
		t.Error("not renamed")
	}
	if !o.block {
		o.form("PUT", "/api/volumes/"+added.ID+"/export_name.json", "exportname", "ours")
		o.attach("OS_share-ours", "10.1.1.1")
		o.fails(10000, "PUT", "/api/volumes/"+added.ID+"/export_name.json", "exportname", "later")
		if path := o.must("OS_share-ours")["nfs_export_path"].(string); !strings.HasSuffix(path, ":/export/ours") {
			t.Errorf("export %q", path)
		}
	}
	o.form("POST", "/api/volumes/"+added.ID+"/update_comment.json", "new_comment", "of a cloud")
	if v, _ := a.Volume("OS_share-ours"); v.Comment != "of a cloud" {
		t.Errorf("comment %q", v.Comment)
	}
	o.delete("OS_share-ours")
}

func manageSnapshot(t *testing.T, a *fakevpsa.Array, o openstack) {
	o.create("v", 1)
	v := o.must("v")
	added, err := a.AddSnapshot(v["name"].(string), "theirs")
	if err != nil {
		t.Fatal(err)
	}
	o.form("POST", "/api/snapshots/"+added.ID+"/rename.json", "newname", "OS_share-snapshot-ours")
	group := v["cg_name"].(string)
	if o.snapshotID(group, "OS_share-snapshot-ours") != added.ID || o.snapshotID(group, "theirs") != "" {
		t.Error("not renamed")
	}
}

func capacity(t *testing.T, _ *fakevpsa.Array, o openstack) {
	o.create("v", 30)
	pool := o.form("GET", "/api/pools/pool-00000001.json")["pool"].(object)
	// Cinder reads whole numbers.
	if pool["capacity"] != 100_000.0 || pool["available_capacity"] != 99_999.0 || pool["provisioned_capacity"] != 30.0 {
		t.Errorf("pool %v", pool)
	}
}

// TestManilaChangesReadOnly: by detaching and attaching again.
func TestManilaChangesReadOnly(t *testing.T) {
	a, c := newArray(t, fakevpsa.Options{})
	o := openstack{c, false}
	o.create("v", 1)
	o.attach("v", "10.1.1.1")
	id, server := o.must("v")["name"].(string), o.server("10.1.1.1")
	o.form("POST", "/api/volumes/"+id+"/detach.json", "server_name[]", server, "force", "YES")
	o.form("POST", "/api/servers/"+server+"/volumes.json", "volume_name[]", id, "access_type", "NFS", "readonly", "YES", "force", "YES")
	if at := a.Attachments(); len(at) != 1 || !at[0].ReadOnly {
		t.Errorf("attachments %+v", at)
	}
}
