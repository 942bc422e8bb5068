package local

import (
	"fmt"
	"strings"
	"testing"
)

// TestKeyIsNotPrinted in a log or an error, on its own or within a Pool.
func TestKeyIsNotPrinted(t *testing.T) {
	key := NewKey()
	p := Pool{UUID: "uuid", Key: key}
	for _, text := range []string{
		key.Hash(), fmt.Sprint(key), fmt.Sprintf("%s %q %v %+v %#v %x", key, key, key, key, key, key), fmt.Sprintf("%v %+v %#v", p, p, p),
	} {
		if strings.Contains(text, string(key)) {
			t.Errorf("printed: %s", text)
		}
	}
	if !key.Valid() || NewKey() == key || key.Hash() != Key(string(key)).Hash() || Key("").Hash() != "" || NewKey().Hash() == key.Hash() {
		t.Error("keys or their hashes do not tell pools apart")
	}
	for _, bad := range []Key{"", "short", Key(strings.Repeat("A", 65)), Key(strings.Repeat("a", 26)), Key(strings.Repeat("A", 26) + "\n")} {
		if bad.Valid() {
			t.Errorf("%q is taken for a key", string(bad))
		}
	}
}
