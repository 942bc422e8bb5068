package main

import (
	"os"
	"testing"
)

// TestPoliciesAreThoseOfTheTables: what is in the repository is what the tables say.
func TestPoliciesAreThoseOfTheTables(t *testing.T) {
	for path, want := range outputs() {
		content, err := os.ReadFile("../../" + path)
		if err != nil || string(content) != want {
			t.Errorf("%s is not what it would be (%v): run make generate", path, err)
		}
	}
}
