package fakevpsa_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/testing/array/dataplane"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

// plane notes what it is told, and has that as long as it is not broken.
type plane struct {
	calls  []string
	broken error
	// stuck: what is to be taken away stays.
	stuck      error
	target     string
	disks      map[string]bool
	initiators map[string]bool
	exports    map[dataplane.Export]bool
}

func newPlane() *plane {
	return &plane{disks: map[string]bool{}, initiators: map[string]bool{}, exports: map[dataplane.Export]bool{}}
}

func (p *plane) did(do func(), format string, args ...any) error {
	p.calls = append(p.calls, fmt.Sprintf(format, args...))
	if p.broken == nil && do != nil {
		do()
	}
	return p.broken
}

func (p *plane) Found(target string) (dataplane.Found, error) {
	p.target = target
	return dataplane.Found{
		Disks:      slices.Collect(maps.Keys(p.disks)),
		Initiators: slices.Collect(maps.Keys(p.initiators)),
		Exports:    slices.Collect(maps.Keys(p.exports)),
	}, p.broken
}

func (p *plane) Front(f dataplane.Front) error {
	return p.did(nil, "front %s%s", strings.Join(f.Portals, " "), f.Away)
}

func (p *plane) Admit(iqn string) error {
	return p.did(func() { p.initiators[iqn] = true }, "admit %s", iqn)
}

func (p *plane) Dismiss(iqn string) error {
	return p.did(func() { delete(p.initiators, iqn) }, "dismiss %s", iqn)
}

func (p *plane) CreateDisk(d dataplane.Disk) error {
	return p.did(func() { p.disks[d.ID] = true }, "create %s %d %v %q", d.ID, d.Size>>30, d.Block, d.Path)
}

func (p *plane) Clone(d dataplane.Disk, source string) error {
	return p.did(func() { p.disks[d.ID] = true }, "clone %s %d of %s", d.ID, d.Size>>30, source)
}

func (p *plane) Snapshot(snapshot string, of dataplane.Disk) error {
	return p.did(func() { p.disks[snapshot] = true }, "snapshot %s of %s", snapshot, of.ID)
}

func (p *plane) Expand(d dataplane.Disk) error {
	return p.did(nil, "expand %s %d", d.ID, d.Size>>30)
}

func (p *plane) Export(e dataplane.Export, readOnly bool) error {
	return p.did(func() { p.exports[e] = true }, "export %v %v", e, readOnly)
}

func (p *plane) Unexport(e dataplane.Export) error {
	if p.stuck != nil {
		return p.stuck
	}
	gone := func() {
		// As in the kernel, it is what is at this place that goes.
		maps.DeleteFunc(p.exports, func(is dataplane.Export, _ bool) bool {
			return is.IQN == e.IQN && is.LUN == e.LUN && is.Path == e.Path && is.Address == e.Address
		})
	}
	return p.did(gone, "unexport %v", e)
}

func (p *plane) Delete(id string) error {
	return p.did(func() { delete(p.disks, id) }, "delete %s", id)
}

// told fails the test unless these were the calls since the last time.
func (p *plane) told(t *testing.T, what string, want ...string) {
	t.Helper()
	if !slices.Equal(p.calls, want) {
		t.Errorf("%s: the data plane was told\n\t%s\ninstead of\n\t%s", what, strings.Join(p.calls, "\n\t"), strings.Join(want, "\n\t"))
	}
	p.calls = nil
}

// TestDataFollows: the data plane is told of what requests change, before their answers.
func TestDataFollows(t *testing.T) {
	p := newPlane()
	a, c := newArray(t, fakevpsa.Options{Plane: p})
	if p.target != a.Target() {
		t.Errorf("the target is %q", p.target)
	}
	p.told(t, "start", "front 10.0.1.1")
	c.do("POST", "/api/servers.json", "display_name=n&iqn=iqn.n&iscsi=10.9.9.9")
	p.told(t, "server", "admit iqn.n")
	c.do("POST", "/api/volumes.json", "name=disk&capacity=2&pool=pool-00000001&block=YES")
	c.do("POST", "/api/volumes.json", "name=files&capacity=3&pool=pool-00000001")
	p.told(t, "volumes", `create volume-00000001 2 true ""`, `create volume-00000002 3 false "/export/files"`)
	c.do("POST", "/api/servers/srv-00000001/volumes.json", "volume_name=volume-00000001")
	c.do("POST", "/api/servers/srv-00000001/volumes.json", "volume_name=volume-00000002&access_type=NFS&readonly=YES")
	p.told(t, "attach", "export {volume-00000001 iqn.n 0  } false", "export {  0 /export/files 10.9.9.9} true")
	c.do("POST", "/api/volumes/volume-00000002/attach_permissions.json", "server_name=srv-00000001&read_only=NO")
	p.told(t, "permit", "export {  0 /export/files 10.9.9.9} false")
	c.do("POST", "/api/volumes/volume-00000001/expand.json", "capacity=2")
	p.told(t, "expand", "expand volume-00000001 4")
	group := a.Volumes()[0].Group
	c.do("POST", "/api/consistency_groups/"+group+"/snapshots.json", "display_name=s")
	c.do("POST", "/api/consistency_groups/"+group+"/clone.json", "name=c&snapshot=snap-00000001")
	c.do("POST", "/api/consistency_groups/"+group+"/clone.json", "name=d")
	p.told(t, "snapshot and clones", "snapshot snap-00000001 of volume-00000001", "clone volume-00000003 4 of snap-00000001",
		"clone volume-00000004 4 of volume-00000001")
	c.do("DELETE", "/api/snapshots/snap-00000001.json", "")
	p.told(t, "delete snapshot", "delete snap-00000001")
	c.do("POST", "/api/volumes/volume-00000002/detach.json", "servers=srv-00000001")
	c.do("DELETE", "/api/volumes/volume-00000002.json", "")
	p.told(t, "detach and delete", "unexport {  0 /export/files 10.9.9.9}", `create volume-00000002 3 false ""`)
	c.do("POST", "/api/volumes.json", "name=files&capacity=1&pool=pool-00000001")
	c.do("DELETE", "/api/volumes/volume-00000002/delete_volume_from_recycle_bin.json", "")
	p.told(t, "another at its place, and the recycle bin", `create volume-00000005 1 false "/export/files"`, "delete volume-00000002")
	c.do("GET", "/api/volumes.json", "")
	c.ask(10000, "DELETE", "/api/volumes/volume-00000001.json", "")
	p.told(t, "no change")
}

// TestDataFollowsWhatIsOrdered: also what happens behind the backs of clients.
func TestDataFollowsWhatIsOrdered(t *testing.T) {
	p := newPlane()
	a, c := newArray(t, fakevpsa.Options{Plane: p})
	v, err := a.AddVolume(fakevpsa.Volume{Name: "x", Block: true})
	if err != nil {
		t.Fatal(err)
	}
	sv, err := a.AddServer(fakevpsa.Server{Name: "n", IQN: "iqn.n"})
	if err != nil {
		t.Fatal(err)
	}
	c.do("POST", "/api/servers/"+sv.ID+"/volumes.json", "volume_name="+v.ID)
	p.calls = nil
	if err := errors.Join(a.SwitchController(), a.Change(func(set *fakevpsa.Settings) { set.BothPortals = true })); err != nil {
		t.Fatal(err)
	}
	p.told(t, "switch", "front 10.0.1.2", "front 10.0.1.1 10.0.1.2")
	if err := errors.Join(a.Leave(dataplane.Down), a.Return()); err != nil {
		t.Fatal(err)
	}
	p.told(t, "away and back", "front 10.0.1.1 10.0.1.2down", "front 10.0.1.1 10.0.1.2")
	if err := a.Leave("holiday"); err == nil {
		t.Error("an array left for a holiday")
	}
	if err := a.Remove(sv.ID); err != nil {
		t.Fatal(err)
	}
	p.told(t, "server vanishes", "unexport {volume-00000001 iqn.n 0  }", "dismiss iqn.n")
	if err := a.Remove(v.ID); err != nil {
		t.Fatal(err)
	}
	p.told(t, "volume vanishes", "delete volume-00000001")
}

// TestDataOfTwoRecords: LUNs of one initiator are different, whichever record of it they are attached to; and
// one of two attachments of an address is enough to write.
func TestDataOfTwoRecords(t *testing.T) {
	p := newPlane()
	_, c := newArray(t, fakevpsa.Options{Plane: p})
	for _, name := range []string{"a", "b"} {
		c.do("POST", "/api/servers.json", "iqn=iqn.n&iscsi=10.9.9.9&display_name="+name)
		c.do("POST", "/api/volumes.json", "capacity=1&pool=pool-00000001&block=YES&name="+name)
	}
	c.do("POST", "/api/volumes.json", "name=files&capacity=1&pool=pool-00000001")
	p.calls = nil
	c.do("POST", "/api/servers/srv-00000001/volumes.json", "volume_name=volume-00000001")
	c.do("POST", "/api/servers/srv-00000002/volumes.json", "volume_name=volume-00000002")
	p.told(t, "LUNs", "export {volume-00000001 iqn.n 0  } false", "export {volume-00000002 iqn.n 1  } false")
	c.do("POST", "/api/servers/srv-00000001/volumes.json", "volume_name=volume-00000003&access_type=NFS&readonly=NO")
	c.do("POST", "/api/servers/srv-00000002/volumes.json", "volume_name=volume-00000003&access_type=NFS&readonly=YES")
	p.told(t, "one export", "export {  0 /export/files 10.9.9.9} false")
	c.do("POST", "/api/volumes/volume-00000003/detach.json", "servers=srv-00000001")
	p.told(t, "the writer is gone", "export {  0 /export/files 10.9.9.9} true")
	c.do("POST", "/api/volumes/volume-00000001/detach.json", "servers=srv-00000001")
	c.do("DELETE", "/api/servers/srv-00000001.json", "")
	p.told(t, "the other record keeps the initiator", "unexport {volume-00000001 iqn.n 0  }")
}

// TestDataAfterARestart: a new program compares what there is with its state. What the last one has not
// done is done, and what it has not undone is undone.
func TestDataAfterARestart(t *testing.T) {
	p := newPlane()
	o := fakevpsa.Options{Path: filepath.Join(t.TempDir(), "state.json"), Plane: p}
	_, c := newArray(t, o)
	c.do("POST", "/api/servers.json", "display_name=n&iqn=iqn.n")
	c.do("POST", "/api/volumes.json", "name=a&capacity=1&pool=pool-00000001&block=YES")
	c.do("POST", "/api/servers/srv-00000001/volumes.json", "volume_name=volume-00000001")
	p.broken = errors.New("no more")
	c.ask(10000, "POST", "/api/volumes.json", "name=b&capacity=1&pool=pool-00000001&block=YES")
	p.broken = nil
	p.exports[dataplane.Export{Path: "/export/old", Address: "10.9.9.9"}] = true
	p.initiators["iqn.old"], p.disks["volume-00000009"] = true, true
	p.calls = nil
	_, c = newArray(t, o)
	p.told(t, "restart", `create volume-00000001 1 true ""`, "export {volume-00000001 iqn.n 0  } false",
		"unexport {  0 /export/old 10.9.9.9}", "dismiss iqn.old", `create volume-00000002 1 true ""`, "delete volume-00000009", "front 10.0.1.1")
	c.do("DELETE", "/api/volumes/volume-00000002.json", "")
	p.told(t, "a block volume into the recycle bin")
}

// TestPlaceIsFreedFirst: a volume whose LUN is that of one that could not be taken away gets there, once that is possible, and
// stays there. So does a file system at the path of another one.
func TestPlaceIsFreedFirst(t *testing.T) {
	p := newPlane()
	_, c := newArray(t, fakevpsa.Options{Plane: p, NoRecycleBin: true})
	c.do("POST", "/api/servers.json", "display_name=n&iqn=iqn.n&iscsi=10.9.9.9")
	for _, name := range []string{"a", "b"} {
		c.do("POST", "/api/volumes.json", "capacity=1&pool=pool-00000001&block=YES&name="+name)
	}
	c.do("POST", "/api/volumes.json", "name=files&capacity=1&pool=pool-00000001")
	attach := func(volume string) string { return "volume_name=" + volume + "&access_type=NFS" }
	c.do("POST", "/api/servers/srv-00000001/volumes.json", attach("volume-00000001"))
	c.do("POST", "/api/servers/srv-00000001/volumes.json", attach("volume-00000003"))
	p.stuck = errors.New("busy")
	c.ask(10000, "POST", "/api/volumes/volume-00000001/detach.json", "servers=srv-00000001")
	c.ask(10000, "POST", "/api/volumes/volume-00000003/detach.json", "servers=srv-00000001")
	c.ask(10000, "DELETE", "/api/volumes/volume-00000003.json", "")
	c.ask(10000, "POST", "/api/volumes.json", "name=files&capacity=1&pool=pool-00000001")
	c.ask(10000, "POST", "/api/servers/srv-00000001/volumes.json", attach("volume-00000002"))
	c.ask(10000, "POST", "/api/servers/srv-00000001/volumes.json", attach("volume-00000004"))
	p.stuck, p.calls = nil, nil
	c.do("GET", "/api/volumes.json", "") // a client looks whether it is attached after all
	slices.Sort(p.calls)
	p.told(t, "no longer busy", "export {  0 /export/files 10.9.9.9} false", "export {volume-00000002 iqn.n 0  } false",
		"unexport {  0 /export/files 10.9.9.9}", "unexport {volume-00000001 iqn.n 0  }")
	want := map[dataplane.Export]bool{{Volume: "volume-00000002", IQN: "iqn.n"}: true, {Path: "/export/files", Address: "10.9.9.9"}: true}
	if !maps.Equal(p.exports, want) {
		t.Errorf("the data plane has the exports %v", p.exports)
	}
}

// TestDataIsTriedAgain: what has failed is done with the next request, and an array with a broken data
// plane does not start.
func TestDataIsTriedAgain(t *testing.T) {
	p := newPlane()
	var behind []error
	_, c := newArray(t, fakevpsa.Options{Plane: p, Behind: func(err error) { behind = append(behind, err) }})
	p.calls = nil
	p.broken = errors.New("the disk is full")
	answer := c.ask(10000, "POST", "/api/volumes.json", "name=a&capacity=1&pool=pool-00000001&block=YES")
	if text := fmt.Sprint(answer["status-msg"]); !strings.Contains(text, "the disk is full") {
		t.Errorf("the answer is %v", answer)
	}
	c.do("GET", "/api/volumes.json", "") // what is broken still does not prevent a look
	if len(behind) != 1 || !errors.Is(behind[0], p.broken) {
		t.Errorf("it said that the data plane is behind: %v", behind)
	}
	p.broken, p.calls = nil, nil
	c.do("GET", "/api/volumes.json", "")
	p.told(t, "the next request", `create volume-00000001 1 true ""`)
	c.do("POST", "/api/volumes.json", "name=b&capacity=1&pool=pool-00000001&block=YES")
	p.told(t, "the next change", `create volume-00000002 1 true ""`)
	p.broken = errors.New("no kernel")
	c.ask(10000, "POST", "/api/volumes.json", "name=c&capacity=1&pool=pool-00000001&block=YES")
	if len(behind) != 2 {
		t.Errorf("it said that the data plane is behind: %v", behind)
	}
	if _, err := fakevpsa.New(fakevpsa.Options{Plane: p}); err == nil {
		t.Error("an array has started whose data plane is broken")
	}
}

// TestAway: an array that is away does not answer, its administration does; back, it answers.
func TestAway(t *testing.T) {
	a, c := newArray(t, fakevpsa.Options{})
	if err := a.Leave(dataplane.Down); err != nil {
		t.Fatal(err)
	}
	if _, err := c.send("GET", "/api/volumes.json", ""); err == nil {
		t.Error("an array that is down has answered")
	}
	if _, err := c.send("POST", "/fake/back", ""); err != nil {
		t.Fatal(err)
	}
	c.do("GET", "/api/volumes.json", "")
	if _, err := c.send("POST", "/fake/away", `{"how":"network"}`); err != nil {
		t.Fatal(err)
	}
	if away := a.Settings().Away; away != dataplane.Network {
		t.Errorf("away is %q", away)
	}
}
