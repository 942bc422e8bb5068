// Package hostile makes what a pod may leave in its volume to harm whatever reads, measures or erases
// it. It is for tests alone.
package hostile

import "testing"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
