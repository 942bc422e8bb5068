package workload

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestReadFillsInDefaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	text := `
pods: 7
length: {distribution: constant, mean: 1m30s}
calls: # nothing yet
volumes: {max: 5}
disk: {kind: ext4, size: 512Mi}
faults:
  - {kind: daemon-kill, for: 2s}
  - {kind: clock-step, step: -1h, times: 3}
  - kind: pod-removed
    times: # not said
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	want.Pods = 7
	want.Length = Length{Distribution: Constant, Mean: Duration(90 * time.Second)}
	want.Volumes.Max = 5
	want.Disk = Disk{Kind: "ext4", Size: 512 << 20}
	want.Faults = []Fault{
		{Kind: DaemonKill, Times: 1, For: Duration(2 * time.Second)},
		{Kind: ClockStep, Times: 3, Step: Duration(-time.Hour)},
		{Kind: PodRemoved, Times: 1},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDefaultsPassCheck(t *testing.T) {
	w, err := parse("all.yaml", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(w, defaults()) {
		t.Errorf("a file that says nothing makes %+v", w)
	}
}

func TestReadWithoutFile(t *testing.T) {
	_, err := Read("/nowhere/mine.yaml")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "/nowhere/mine.yaml") {
		t.Errorf("got %v, want that the file is not there", err)
	}
}

func TestRoundTrip(t *testing.T) {
	odd := everything()
	odd.Drain, odd.Parallel = true, 4000
	odd.Contents.Bytes = 1000
	odd.Disk = Disk{Kind: "tmpfs", Size: 3 << 30, Inodes: 12345}
	odd.Calls.Doubled = 1.0 / 3
	odd.Timeout = Duration(time.Hour + time.Nanosecond)
	all := map[string]Workload{"defaults": defaults(), "odd": odd}
	for _, name := range Presets() {
		w, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = w
	}
	for name, w := range all {
		got, err := parse(name, []byte(w.YAML()))
		if err != nil {
			t.Errorf("%s: written as\n%s\ncannot be read: %v", name, w.YAML(), err)
		} else if !reflect.DeepEqual(got, w) {
			t.Errorf("%s: %+v became %+v, by way of\n%s", name, w, got, w.YAML())
		}
	}
}

func TestPresets(t *testing.T) {
	if want := []string{"burst", "churn", "day", "drain", "limits", "pressure", "smoke"}; !reflect.DeepEqual(Presets(), want) {
		t.Errorf("there are %v, want %v", Presets(), want)
	}
	for _, name := range Presets() {
		w, err := Preset(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := Describe(name); d == "" || strings.ContainsAny(d, "#\n") || len(d) > 100 {
			t.Errorf("%s is described as %q", name, d)
		}
		if p := NewPlan(w, 1); len(p.Pod(w.Pods-1).Volumes) == 0 {
			t.Errorf("%s: the last pod has no volumes", name)
		}
	}
	if w, err := Preset("drain"); err != nil || !w.Drain {
		t.Errorf("drain does not drain: %v", err)
	}
	if w, err := Preset("churn"); err != nil {
		t.Error(err)
	} else {
		for _, kind := range kinds {
			if !strings.Contains(w.YAML(), "kind: "+string(kind)+"\n") {
				t.Errorf("churn is to have every kind of fault, and has no %s", kind)
			}
		}
	}
	// Anywhere means without a disk of its own.
	if w, err := Preset("smoke"); err != nil || w.Disk.Kind != directory {
		t.Errorf("smoke does not run anywhere: %v", err)
	}
}

func TestNoSuchPreset(t *testing.T) {
	for _, name := range []string{"", "mine", "../presets/churn", "churn.yaml"} {
		_, err := Preset(name)
		if err == nil || !strings.HasSuffix(err.Error(), "there are burst, churn, day, drain, limits, pressure, smoke") {
			t.Errorf("%q: got %v, want a list of those that there are", name, err)
		}
		if d := Describe(name); d != "" {
			t.Errorf("%q is described as %q", name, d)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		bytes Bytes
		text  string
	}{
		{0, "0"}, {1, "1"}, {1000, "1000"}, {1 << 10, "1Ki"}, {1025, "1025"}, {512 << 20, "512Mi"},
		{2 << 30, "2Gi"}, {1536 << 20, "1536Mi"}, {3 << 40, "3Ti"}, {1 << 62, "4194304Ti"},
	} {
		if got := c.bytes.String(); got != c.text {
			t.Errorf("%d bytes are written %s, want %s", c.bytes, got, c.text)
		}
		w, err := parse("x", []byte("disk: {size: "+c.text+"}"))
		if err != nil || w.Disk.Size != c.bytes {
			t.Errorf("%s is read as %d, %v; want %d", c.text, w.Disk.Size, err, c.bytes)
		}
	}
}
