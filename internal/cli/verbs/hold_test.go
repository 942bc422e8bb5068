package verbs

import (
	"reflect"
	"testing"
)

// TestTermsInFull: a limit that nothing enforces does not look as if it were.
func TestTermsInFull(t *testing.T) {
	lifespan := []string{"Lifespan:", "3d, 1h if the pod succeeded, retain OnFailure"}
	for _, tt := range []struct {
		notEnforced bool
		want        [][]string
	}{
		{false, [][]string{lifespan, {"Size limit:", SizeInFull(10 << 20)}, {"Inode limit:", "7"}}},
		{true, [][]string{lifespan, {"Size limit:", SizeInFull(10<<20) + ", not enforced"}, {"Inode limit:", "7, not enforced"}}},
	} {
		if got := TermsInFull("3d", "1h", "OnFailure", 10<<20, 7, tt.notEnforced); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
