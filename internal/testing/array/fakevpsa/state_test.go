package fakevpsa_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

// TestFile: an array goes on from its file, with what was submitted to it.
func TestFile(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	o := fakevpsa.Options{Path: filepath.Join(t.TempDir(), "state.json"), Now: func() time.Time { return now }}
	o.Serial = 7
	a, c := newArray(t, o)
	for _, body := range []string{"name=a&capacity=5&block=YES", "name=b&capacity=6", "name=gone&capacity=7"} {
		c.do("POST", "/api/volumes.json", body+"&pool=pool-00000001&compress=YES")
	}
	c.do("POST", "/api/servers.json", "display_name=n&iqn=i&vpsachapsecret=123456789012")
	c.do("POST", "/api/servers/srv-00000001/volumes.json", "volume_name=volume-00000001")
	c.do("POST", "/api/consistency_groups/"+a.Volumes()[0].Group+"/snapshots.json", "display_name=s")
	c.do("DELETE", "/api/volumes/volume-00000003.json", "")
	fail(t, a, fakevpsa.Fault{Kind: fakevpsa.Submit, Delay: time.Hour})
	if _, err := c.send("POST", "/api/volumes.json", "name=later&capacity=1&pool=pool-00000001"); err != nil {
		t.Fatal(err)
	}

	again, c := newArray(t, o)
	for name, pair := range map[string][2]any{
		"volumes": {a.Volumes(), again.Volumes()}, "servers": {a.Servers(), again.Servers()}, "snapshots": {a.Snapshots(), again.Snapshots()},
		"pools": {a.Pools(), again.Pools()}, "recycle bin": {a.RecycleBin(), again.RecycleBin()}, "settings": {a.Settings(), again.Settings()},
		"submitted": {1, again.Submitted()},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: %+v, then %+v", name, pair[0], pair[1])
		}
	}
	now = now.Add(8 * 24 * time.Hour)
	if _, ok := again.Volume("later"); !ok {
		t.Error("what was submitted is not done")
	}
	if bin := again.RecycleBin(); len(bin) != 0 {
		t.Errorf("after a week in the recycle bin: %+v", bin)
	}
	// The number of the deleted volume is not used again.
	if id := c.do("POST", "/api/volumes.json", "name=c&capacity=1&pool=pool-00000001")["vol_name"]; id != "volume-00000005" {
		t.Errorf("new volume %v", id)
	}
	if files, err := os.ReadDir(filepath.Dir(o.Path)); err != nil || len(files) != 1 {
		t.Errorf("files %v, %v", files, err)
	}
}

func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(path, []byte(`{"volumes":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fakevpsa.New(fakevpsa.Options{Path: path}); err == nil {
		t.Error("a damaged file was taken")
	}
}

// TestAdministration: each order by HTTP does what the method does.
func TestAdministration(t *testing.T) {
	a, c := newArray(t, fakevpsa.Options{})
	order := func(method, path, body string, into any) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, c.url+path, bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %s, %v, %v", method, path, answer.Status, err, into)
		}
	}
	var nothing struct{}
	order("POST", "/fake/seed", `{"prefix":"v","count":3,"size":2,"block":true}`, &nothing)
	var volume fakevpsa.Volume
	order("POST", "/fake/volumes", `{"name":"theirs","size":4}`, &volume)
	order("PATCH", "/fake/volumes/"+volume.ID, `{"comment":"x","allocated":100}`, &nothing)
	if v, ok := a.Volume("theirs"); !ok || v.Size != 4 || v.Comment != "x" || v.Allocated != 100 || len(a.Volumes()) != 4 {
		t.Errorf("volumes %+v", a.Volumes())
	}
	order("POST", "/fake/status", `{"id":"`+volume.ID+`","status":"Failed"}`, &nothing)
	var server fakevpsa.Server
	order("POST", "/fake/servers", `{"name":"n","iqn":"i"}`, &server)
	var snapshot fakevpsa.Snapshot
	order("POST", "/fake/snapshots", `{"volume":"`+volume.ID+`","name":"s"}`, &snapshot)
	var pool fakevpsa.Pool
	order("POST", "/fake/pools", `{"capacity":10}`, &pool)
	order("PATCH", "/fake/pools/"+pool.ID, `{"mode":"alert"}`, &nothing)
	order("PATCH", "/fake/settings", `{"version":"20.12-sp2","serial":9}`, &nothing)
	order("POST", "/fake/switch", "", &nothing)
	var set fakevpsa.Settings
	order("GET", "/fake/settings", "", &set)
	if set.Version != "20.12-sp2" || set.Active != 1 || set.Token != "token" || a.Pools()[1].Mode != "alert" {
		t.Errorf("settings %+v, pools %+v", set, a.Pools())
	}
	var added struct{ ID int }
	order("POST", "/fake/faults", `{"kind":"submit","method":"POST","delay":"1h30m"}`, &added)
	var faults []fakevpsa.Fault
	order("GET", "/fake/faults", "", &faults)
	if len(faults) != 1 || faults[0].ID != added.ID || faults[0].Delay != 90*time.Minute {
		t.Errorf("faults %+v", faults)
	}
	if _, err := c.send("POST", "/api/volumes/"+volume.ID+"/update_comment.json", "new_comment=y"); err != nil {
		t.Fatal(err)
	}
	order("POST", "/fake/settle", "", &nothing)
	order("DELETE", "/fake/faults", "", &nothing)
	var changes []fakevpsa.Change
	order("GET", "/fake/changes?call=POST+/api/volumes/*/update_comment.json", "", &changes)
	if len(changes) != 1 || changes[0].Object != volume.ID || changes[0].Params["new_comment"][0] != "y" {
		t.Errorf("changes %+v", changes)
	}
	var counts map[string]int
	order("GET", "/fake/counts", "", &counts)
	if len(counts) != 1 || counts["POST /api/volumes/*/update_comment.json"] != 1 {
		t.Errorf("counts %v", counts)
	}
	order("DELETE", "/fake/counts", "", &nothing)
	for _, id := range []string{"snapshots/" + snapshot.ID, "volumes/" + volume.ID, "servers/" + server.ID} {
		order("DELETE", "/fake/"+id, "", &nothing)
	}
	var state struct{ Volumes, Servers, Snapshots []any }
	order("GET", "/fake/state", "", &state)
	if len(state.Volumes) != 3 || len(state.Servers)+len(state.Snapshots)+len(a.Counts())+len(a.Faults()) != 0 {
		t.Errorf("state %+v", state)
	}
	for _, wrong := range [][2]string{
		{"/fake/faults", `{"kind":"flood"}`}, {"/fake/faults", `{"knd":"hang"}`}, {"/fake/volumes", `{"name":"v00001"}`},
		{"/fake/status", `{"id":"volume-00000099"}`}, {"/fake/ca", ``},
	} {
		answer, err := c.http.Post(c.url+wrong[0], "", bytes.NewReader([]byte(wrong[1])))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%v: %s", wrong, answer.Status)
		}
	}
}
