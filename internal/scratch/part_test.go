package scratch

import "testing"

func TestPartsOfAnEntry(t *testing.T) {
	whole, other := freshName(), freshName()
	part := partName(whole)
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{whole, whole, true},
		{whole, part, true},
		{part, partName(part), true},
		{part, partName(whole), true},
		{whole, other, false},
		{part, partName(other), false},
		{partName(""), partName(""), false},
	} {
		if SameEntry(test.a, test.b) != test.want {
			t.Errorf("SameEntry(%q, %q) is %t", test.a, test.b, !test.want)
		}
	}
	// However often a part has parts, the name has to stay short.
	for range 100 {
		part = partName(part)
	}
	if len(part) > 100 {
		t.Errorf("%d bytes: %q", len(part), part)
	}
}
