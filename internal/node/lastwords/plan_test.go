package lastwords

import (
	"slices"
	"testing"
)

func TestNewer(t *testing.T) {
	want := []string{"10.log", "10.log.20261130-060000", "10.log.20261130-050000.gz", "9.log", "0.log", "0.log.20261129-050000.gz"}
	got := slices.Clone(want)
	slices.Sort(got)
	slices.SortFunc(got, func(a, b string) int { return newer(name{"main", a}, name{"main", b}) })
	if !slices.Equal(got, want) {
		t.Errorf("sorted %q, want %q", got, want)
	}
}

func TestPlan(t *testing.T) {
	type size struct {
		container, file string
		size, kept      int64
	}
	for name, test := range map[string]struct {
		limit int64
		files []size
	}{
		"enough":                      {100, []size{{"a", "0.log", 40, 40}, {"b", "0.log", 60, 60}}},
		"equal shares":                {100, []size{{"a", "0.log", 1000, 50}, {"b", "0.log", 2000, 50}}},
		"what a small one leaves":     {100, []size{{"a", "0.log", 10, 10}, {"b", "0.log", 2000, 45}, {"c", "0.log", 2000, 45}}},
		"the newest first":            {100, []size{{"a", "1.log", 80, 80}, {"a", "0.log", 80, 20}}},
		"nothing behind a cut":        {100, []size{{"a", "2.log", 80, 80}, {"a", "1.log", 80, 20}, {"a", "0.log", 10, 0}}},
		"others go on behind it":      {100, []size{{"a", "1.log", 80, 50}, {"a", "0.log", 5, 0}, {"b", "1.log", 50, 50}, {"b", "0.log", 5, 0}}},
		"a compressed one as a whole": {100, []size{{"a", "0.log", 80, 80}, {"a", "0.log.20261130-050000.gz", 30, 0}}},
		"or kept":                     {100, []size{{"a", "0.log", 60, 60}, {"a", "0.log.20261130-050000.gz", 30, 30}}},
		"no room":                     {0, []size{{"a", "0.log", 60, 0}, {"b", "0.log", 0, 0}}},
		"nothing":                     {100, nil},
	} {
		var files []part
		for _, f := range test.files {
			files = append(files, part{file: &file{name: struct{ container, file string }{f.container, f.file}}, size: f.size})
		}
		plan(files, test.limit)
		for i, f := range files {
			if got, want := f.size-f.from, test.files[i].kept; got != want {
				t.Errorf("%s: %s of %s: %d bytes are kept, want %d", name, f.file.file, f.container, got, want)
			}
		}
	}
}
