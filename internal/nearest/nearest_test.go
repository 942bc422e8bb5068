package nearest

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	known := []string{"lifespan", "sizeLimit", "protocol"}
	for word, want := range map[string]string{
		"Lifespan": "lifespan", "lifespam": "lifespan", "size": "sizeLimit", "protocols": "protocol",
		"": "", "other": "", "x": "", strings.Repeat("lifespan", 100): "",
	} {
		if got := Of(word, known); got != want {
			t.Errorf("nearest to %.20q: %q, want %q", word, got, want)
		}
	}
}
