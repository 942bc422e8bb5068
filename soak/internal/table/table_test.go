package table

import (
	"slices"
	"testing"
)

func TestText(t *testing.T) {
	for _, test := range []struct {
		name string
		head []string
		rows [][]string
		left []int
		want string
	}{
		{
			"numbers to the right", []string{"call", "CPU µs", "errors"},
			[][]string{{"publish", "7", "Aborted 1"}, {"un", "12345678", ""}}, []int{0, 2},
			"call       CPU µs  errors\n" +
				"───────  ────────  ─────────\n" +
				"publish         7  Aborted 1\n" +
				"un       12345678\n",
		},
		{"without a head", []string{"", ""}, [][]string{{"pods", "5"}, {"volumes", "10"}}, []int{0}, "pods      5\nvolumes  10\n"},
		{"without rows", []string{"call"}, nil, nil, "call\n────\n"},
		{"nothing", nil, nil, nil, ""},
	} {
		if got := Text(test.head, test.rows, test.left...); got != test.want {
			t.Errorf("%s:\n%swant\n%s", test.name, got, test.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for text, want := range map[string][]string{
		"":                        {""},
		"OK 1":                    {"OK 1"},
		"Aborted 12, Canceled 3":  {"Aborted 12,", "Canceled 3"},
		"a FailedPrecondition b":  {"a", "FailedPrecondition", "b"},
		"twelve chars, exactly 1": {"twelve chars,", "exactly 1"},
	} {
		if got := Wrap(text, 13); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
