package workload

import (
	"reflect"
	"testing"
)

// FuzzRead reads anything. It must not panic, and what it accepts must be fit
// for a run.
func FuzzRead(f *testing.F) {
	for _, name := range Presets() {
		text, err := presets.ReadFile(presetDir + name + presetSuffix)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		"", "{}", "a: &a [*a]", "pods: &p 7\nparallel: *p", "calls: &c {bad: 1}\ncontents: *c", "faults: &f\n- kind: pod-removed\n",
		"timeout: 1000h\nlength: {distribution: lognormal, mean: 1000h}", "pods: 0x10\ndisk: {size: -1Ti}", "\xff", "!!map {pods: !!int 3}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		w, err := parse("fuzz.yaml", text)
		if err != nil {
			return
		}
		if err := w.Check(); err != nil {
			t.Fatalf("accepted, but: %v", err)
		}
		if again, err := parse("again.yaml", []byte(w.YAML())); err != nil || !reflect.DeepEqual(again, w) {
			t.Fatalf("%+v became %+v: %v", w, again, err)
		}
		if w.Pods > 1000 {
			return
		}
		p := NewPlan(w, 1)
		for _, index := range []int{0, w.Pods - 1} {
			pod := p.Pod(index)
			if pod.Arrival < 0 || pod.Length < 0 || len(pod.Volumes) > w.Volumes.Max+1 {
				t.Fatalf("odd pod: %+v", pod)
			}
		}
	})
}
