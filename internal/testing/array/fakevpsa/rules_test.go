package fakevpsa_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

// TestEncodings: a request means the same as JSON and as a form, in both spellings of lists.
func TestEncodings(t *testing.T) {
	for _, row := range []struct{ name, volume, server, attach, detach string }{
		{
			"JSON", `{"name":"v","capacity":"5G","pool":"pool-00000001","block":"YES"}`, `{"display_name":"n","iqn":"i"}`,
			`{"volume_name":"volume-00000001","readonly":"YES"}`, `{"servers":"srv-00000001","force":"YES"}`,
		},
		{
			"JSON, numbers and lists", `{"name":"v","capacity":5,"pool":"pool-00000001","block":"YES","x":null}`,
			`{"display_name":"n","iqn":"i","force":true}`,
			`{"volume_name[]":["volume-00000001"],"readonly":"YES"}`, `{"server_name[]":["srv-00000001"]}`,
		},
		{
			"form", "name=v&capacity=5&pool=pool-00000001&block=YES", "display_name=n&iqn=i",
			"volume_name=volume-00000001&readonly=YES", "servers=srv-00000001",
		},
		{
			"form, lists", "name=v&capacity=5G&pool=pool-00000001&block=YES", "display_name=n&iqn=i",
			"volume_name%5B%5D=volume-00000001&readonly=YES", "server_name[]=srv-00000001&force=YES",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, c := newArray(t, fakevpsa.Options{})
			c.do("POST", "/api/volumes.json", row.volume)
			c.do("POST", "/api/servers.json", row.server)
			c.do("POST", "/api/servers/srv-00000001/volumes.json", row.attach)
			if v := a.Volumes(); len(v) != 1 || v[0].Name != "v" || v[0].Size != 5 || !v[0].Block {
				t.Errorf("volumes %+v", v)
			}
			if at := a.Attachments(); len(at) != 1 || !at[0].ReadOnly {
				t.Errorf("attachments %+v", at)
			}
			c.do("POST", "/api/volumes/volume-00000001/detach.json", row.detach)
			if at := a.Attachments(); len(at) != 0 {
				t.Errorf("attachments %+v", at)
			}
		})
	}
}

// TestRefused: nothing is made of a request that an array refuses.
func TestRefused(t *testing.T) {
	for _, row := range []struct{ path, body string }{
		{"/api/volumes.json", `{"name":"v","capacity":"1.5","pool":"pool-00000001"}`},
		{"/api/volumes.json", `{"name":"v","capacity":"0","pool":"pool-00000001"}`},
		{"/api/volumes.json", `{"name":"v","capacity":-1,"pool":"pool-00000001"}`},
		{"/api/volumes.json", `{"name":"v","pool":"pool-00000001"}`},
		{"/api/volumes.json", `{"name":"v","capacity":"1","pool":"pool-00000009"}`},
		{"/api/volumes.json", `{"name":"v","capacity":"101","pool":"pool-00000002"}`},
		{"/api/volumes.json", `{"name":"it's","capacity":"1","pool":"pool-00000001"}`},
		{"/api/volumes.json", `{"name":"","capacity":"1","pool":"pool-00000001"}`},
		{"/api/volumes.json", `{"name":"` + strings.Repeat("v", 129) + `","capacity":"1","pool":"pool-00000001"}`},
		{"/api/volumes.json", `{"name":"taken","capacity":"1","pool":"pool-00000001"}`},
		{"/api/volumes.json", `{"name":"v","export_name":"taken","capacity":"1","pool":"pool-00000001"}`},
		{"/api/volumes.json", `{"name":"v","nfsanongid":"0","capacity":"1","pool":"pool-00000001"}`},
		{"/api/volumes.json", `{"name":{},"capacity":"1"}`},
		{"/api/volumes.json", `{"name":"v","capacity":"1","pool":"pool-00000001"} {}`},
		{"/api/volumes.json", `{"name":`},
		{"/api/volumes/volume-00000001/expand.json", `{"capacity":"-1"}`},
		{"/api/volumes/volume-00000001/expand.json", `{}`},
		{"/api/servers.json", `{"display_name":"n","iqn":"i2"}`},
		{"/api/servers.json", `{"display_name":"m"}`},
		{"/api/servers.json", `{"display_name":"m","iqn":"i2","vpsachapsecret":"short"}`},
		{"/api/servers/srv-00000001/volumes.json", `{"volume_name":"volume-00000001","access_type":"NFS"}`},
		{"/api/settings/set_recycle_bin.json", `{"recyclebin":"perhaps"}`},
		{"/api/pools/pool-00000001/update_protection.json", `{"alertmode":"soon"}`},
	} {
		t.Run(row.path+" "+row.body, func(t *testing.T) {
			a, c := newArray(t, fakevpsa.Options{Pools: []fakevpsa.Pool{{Capacity: 1000}, {Capacity: 1000, Limit: 100}}})
			c.do("POST", "/api/volumes.json", `{"name":"taken","capacity":"1","pool":"pool-00000001"}`)
			c.do("POST", "/api/servers.json", `{"display_name":"n","iqn":"i"}`)
			before := len(a.Changes(""))
			c.ask(10000, "POST", row.path, row.body)
			if changes := a.Changes("")[before:]; len(changes) != 0 {
				t.Errorf("changed: %+v", changes)
			}
		})
	}
}

// TestLUNs: the lowest number that a server does not use, each server for itself.
func TestLUNs(t *testing.T) {
	a, c := newArray(t, fakevpsa.Options{})
	for n := range 4 {
		c.do("POST", "/api/volumes.json", fmt.Sprintf("name=v%d&capacity=1&pool=pool-00000001&block=YES", n))
	}
	for n := range 2 {
		c.do("POST", "/api/servers.json", fmt.Sprintf("display_name=n%d&iqn=i%d", n, n))
	}
	attach := func(server, volumes string) {
		t.Helper()
		c.do("POST", "/api/servers/"+server+"/volumes.json", "volume_name[]="+volumes+"&force=YES")
	}
	lun := func(server, volume string) int {
		for _, at := range a.Attachments() {
			if at.Server == server && at.Volume == volume {
				return at.LUN
			}
		}
		return -1
	}
	attach("srv-00000001", "volume-00000001,volume-00000002")
	attach("srv-00000001,srv-00000002", "volume-00000003")
	if got := []int{
		lun("srv-00000001", "volume-00000001"), lun("srv-00000001", "volume-00000002"),
		lun("srv-00000001", "volume-00000003"), lun("srv-00000002", "volume-00000003"),
	}; !slices.Equal(got, []int{0, 1, 2, 0}) {
		t.Errorf("LUNs %v", got)
	}
	c.do("POST", "/api/volumes/volume-00000002/detach.json", "servers=srv-00000001")
	attach("srv-00000001", "volume-00000004")
	if got := lun("srv-00000001", "volume-00000004"); got != 1 {
		t.Errorf("the free LUN is 1, not %d", got)
	}
	// All or none: one of the servers is not attached.
	c.ask(10086, "POST", "/api/volumes/volume-00000004/detach.json", "servers=srv-00000001,srv-00000002")
	if lun("srv-00000001", "volume-00000004") < 0 {
		t.Error("one server was detached")
	}
	entries := c.do("GET", "/api/volumes/volume-00000003/servers.json", "")["servers"].([]any)
	if first := entries[0].(map[string]any); first["lun"] != 2.0 || first["target"] != a.Target() {
		t.Errorf("entry %v", first)
	}
}

// TestCapacity: what volumes promise and use, with those in the recycle bin.
func TestCapacity(t *testing.T) {
	a, c := newArray(t, fakevpsa.Options{Pools: []fakevpsa.Pool{{Capacity: 100}}})
	see := func(provisioned, free int64) {
		t.Helper()
		if p := a.Pools()[0]; p.Provisioned() != provisioned || p.Free() != free {
			t.Errorf("provisioned %d GiB, free %d MiB; want %d, %d", p.Provisioned(), p.Free(), provisioned, free)
		}
	}
	c.do("POST", "/api/volumes.json", "name=v&capacity=150&pool=pool-00000001")
	see(150, 100<<10-14)
	if err := a.ChangeVolume("volume-00000001", func(v *fakevpsa.Volume) { v.Allocated = 10 << 10 }); err != nil {
		t.Fatal(err)
	}
	c.do("POST", "/api/volumes/volume-00000001/expand.json", "capacity=50")
	see(200, 90<<10)
	c.do("DELETE", "/api/volumes/volume-00000001.json", "")
	see(200, 90<<10)
	if all := c.do("GET", "/api/pools/pool-00000001/volumes_in_recycle_bin.json", "")["volumes"].([]any); len(all) != 1 {
		t.Errorf("in the recycle bin: %v", all)
	}
	c.do("POST", "/api/volumes.json", "name=v&capacity=1&pool=pool-00000001")
	c.do("DELETE", "/api/volumes/volume-00000001/delete_volume_from_recycle_bin.json", "")
	see(1, 100<<10-14)
	c.do("POST", "/api/settings/set_recycle_bin.json", "recyclebin=NO")
	c.do("DELETE", "/api/volumes/volume-00000002.json", "")
	see(0, 100<<10)
	for _, mode := range []string{"protected", "emergency"} {
		if err := a.ChangePool("pool-00000001", func(p *fakevpsa.Pool) { p.Mode = mode }); err != nil {
			t.Fatal(err)
		}
		c.ask(10000, "POST", "/api/volumes.json", "name=v&capacity=1&pool=pool-00000001")
	}
}

// TestBusy: a volume that migrates stays as it is.
func TestBusy(t *testing.T) {
	a, c := newArray(t, fakevpsa.Options{})
	c.do("POST", "/api/volumes.json", "name=v&capacity=1&pool=pool-00000001")
	if err := a.SetStatus("volume-00000001", "Migrating", 5); err != nil {
		t.Fatal(err)
	}
	group := a.Volumes()[0].Group
	for _, request := range [][3]string{
		{"POST", "/api/volumes/volume-00000001/expand.json", "capacity=1"},
		{"DELETE", "/api/volumes/volume-00000001.json", "force=YES"},
		{"POST", "/api/consistency_groups/" + group + "/snapshots.json", "display_name=s"},
		{"POST", "/api/consistency_groups/" + group + "/clone.json", "name=c"},
	} {
		c.ask(10000, request[0], request[1], request[2])
	}
	status := func() any {
		return c.do("GET", "/api/volumes/volume-00000001.json", "")["volume"].(map[string]any)["status"]
	}
	if got := status(); got != "Migrating" {
		t.Errorf("status %v at the fifth request", got)
	}
	if got := status(); got != "Available" {
		t.Errorf("status %v at the sixth request", got)
	}
}

// TestServers: a record keeps its IQN and address while volumes are attached.
func TestServers(t *testing.T) {
	a, c := newArray(t, fakevpsa.Options{Settings: fakevpsa.Settings{OneIQN: true}})
	c.do("POST", "/api/servers.json", "display_name=n&iqn=i&iscsi=10.0.0.1")
	c.ask(10000, "POST", "/api/servers.json", "display_name=m&iqn=i")
	c.do("POST", "/api/volumes.json", "name=v&capacity=1&pool=pool-00000001")
	// Without an access type it is for NFS and SMB: then the address must be a range.
	c.ask(10000, "POST", "/api/servers/srv-00000001/volumes.json", "volume_name=volume-00000001")
	c.do("POST", "/api/servers/srv-00000001/volumes.json", "volume_name=volume-00000001&access_type=NFS")
	c.ask(10000, "POST", "/api/servers/srv-00000001/config.json", "iscsi=10.0.0.2")
	c.ask(10000, "DELETE", "/api/servers/srv-00000001.json", "force=YES")
	c.do("POST", "/api/servers/srv-00000001/config.json", "iscsi=10.0.0.2&force=YES")
	c.do("POST", "/api/servers/srv-00000001/rename.json", "new_name=m")
	c.do("POST", "/api/volumes/volume-00000001/attach_permissions.json", "server_name=srv-00000001&read_only=YES")
	if s := a.Servers()[0]; s.Address != "10.0.0.2" || s.IQN != "i" || s.Name != "m" || !a.Attachments()[0].ReadOnly {
		t.Errorf("server %+v, attachments %+v", s, a.Attachments())
	}
	if all := c.do("GET", "/api/servers/srv-00000001/volumes.json", "")["volumes"].([]any); len(all) != 1 {
		t.Errorf("volumes of the server: %v", all)
	}
	c.do("POST", "/api/volumes/volume-00000001/detach.json", "servers=srv-00000001")
	if all := c.do("GET", "/api/volumes/free.json", "")["volumes"].([]any); len(all) != 1 {
		t.Errorf("free volumes: %v", all)
	}
	c.do("DELETE", "/api/servers/srv-00000001.json", "")
	c.ask(10086, "DELETE", "/api/servers/srv-00000001.json", "")
}

// TestSpellings: the same array, with numbers as strings and errors at other places.
func TestSpellings(t *testing.T) {
	a, c := newArray(t, fakevpsa.Options{})
	c.do("POST", "/api/volumes.json", "name=v&capacity=7&pool=pool-00000001")
	if err := a.Change(func(s *fakevpsa.Settings) { s.Strings = true; s.Terse = true }); err != nil {
		t.Fatal(err)
	}
	response, err := c.send("GET", "/api/volumes/volume-00000001.json", "")
	if err != nil || response["status"] != "0" || response["volume"].(map[string]any)["virtual_capacity"] != "7" {
		t.Errorf("%v, %v", response, err)
	}
	if response, err = c.send("POST", "/api/volumes.json", "name=w&capacity=7&pool=pool-00000001"); err != nil || len(response) != 1 {
		t.Errorf("terse: %v, %v", response, err)
	}
	for _, place := range []string{"message", "status-msg", "status_msg", "errors"} {
		if err := a.Change(func(s *fakevpsa.Settings) { s.Strings = false; s.Message = place }); err != nil {
			t.Fatal(err)
		}
		text := c.ask(10081, "GET", "/api/volumes/volume-00000099.json", "")[place]
		if list, ok := text.([]any); ok {
			text = list[0].(map[string]any)["message"]
		}
		if text != "Virtual volume volume-00000099 should be found" {
			t.Errorf("%s: %v", place, text)
		}
	}
}

// TestManyVolumes: a list in pages has each volume once, and a volume needs less than 1 KiB.
func TestManyVolumes(t *testing.T) {
	const count = 10_000
	a, c := newArray(t, fakevpsa.Options{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if err := a.Seed("pvc-0b8e7a1c-6f0e-4a52-9d3b-", count, 1, true); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := int64(after.HeapAlloc-before.HeapAlloc) / count; each > 1024 {
		t.Errorf("a volume needs %d bytes", each)
	}
	seen := map[any]bool{}
	for start := 0; start < 2*count; start += 3000 {
		page := c.do("GET", fmt.Sprintf("/api/volumes.json?start=%d&limit=3000", start), "")
		volumes := page["volumes"].([]any)
		if page["count"] != float64(count) {
			t.Fatalf("count %v", page["count"])
		}
		for _, v := range volumes {
			seen[v.(map[string]any)["name"]] = true
		}
		if want := min(3000, max(count-start, 0)); len(volumes) != want {
			t.Errorf("the page at %d has %d volumes, want %d", start, len(volumes), want)
		}
	}
	if len(seen) != count {
		t.Errorf("%d volumes in the list", len(seen))
	}
	runtime.KeepAlive(a)
}
