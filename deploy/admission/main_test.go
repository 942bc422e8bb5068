package main

import (
	"os"
	"testing"
)

// TestPolicyIsThatOfTheTable: what is in the repository is what the daemon's table says.
func TestPolicyIsThatOfTheTable(t *testing.T) {
	for _, path := range outputs {
		content, err := os.ReadFile("../../" + path)
		if err != nil || string(content) != text() {
			t.Errorf("%s is not what it would be (%v): run make generate", path, err)
		}
	}
}
