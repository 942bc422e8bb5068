package volume

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// FuzzParseNames looks for a pod and a volume that are accepted and whose data directory is not
// exactly two elements below the working directory.
func FuzzParseNames(f *testing.F) {
	f.Add("0c8e8a4e-0f5c-4a3b-9c0e-4a1d3a7c7f10", "csi-"+strings.Repeat("0f", 32))
	f.Fuzz(func(t *testing.T, pod, id string) {
		podUID, podErr := ParsePodUID("pod", pod)
		volumeID, idErr := ParseID("id", id)
		checkParsed(t, "pod", pod, string(podUID), podErr)
		checkParsed(t, "id", id, string(volumeID), idErr)
		if podErr != nil || idErr != nil {
			return
		}
		const workdir = "/csi-data-dir"
		dir := filepath.Join(workdir, pod, id)
		if rel, err := filepath.Rel(workdir, dir); err != nil || rel != pod+"/"+id || filepath.Dir(filepath.Dir(dir)) != workdir {
			t.Errorf("pod %q and volume %q have the data directory %q", pod, id, dir)
		}
	})
}

// checkParsed says in its own words what one plain path element is, and what a refusal has to tell.
func checkParsed(t *testing.T, field, s, parsed string, err error) {
	t.Helper()
	plain := s != "" && len(s) <= 255 && filepath.Base(s) == s && !strings.HasPrefix(s, ".") && !strings.Contains(s, "\x00") && s != "/"
	if plain != (err == nil) {
		t.Errorf("%s %q: %v", field, s, err)
	}
	if err == nil {
		if parsed != s {
			t.Errorf("%s %q became %q", field, s, parsed)
		}
		return
	}
	var invalid *InvalidError
	if !errors.Is(err, ErrInvalid) || !errors.As(err, &invalid) || invalid.Field != field || invalid.Reason == "" {
		t.Errorf("%s %q: %#v does not name its field", field, s, err)
	}
	if strings.ContainsFunc(err.Error(), unicode.IsControl) {
		t.Errorf("%s %q: control characters in %q", field, s, err)
	}
}
