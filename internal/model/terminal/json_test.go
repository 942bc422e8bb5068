package terminal

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestJSONKeepsItsMeaning(t *testing.T) {
	for name := range hostile {
		text, err := json.MarshalIndent(map[string]string{name: name}, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		safe := JSON(text)
		if !isSafe(strings.ReplaceAll(string(safe), "\n", "")) {
			t.Errorf("%q is %q", name, safe)
		}
		var want, got map[string]string
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(safe, &got); err != nil {
			t.Errorf("%q is %q: %v", name, safe, err)
		}
		for key, value := range want {
			if got[key] != value {
				t.Errorf("%q is %q", name, safe)
			}
		}
	}
}
