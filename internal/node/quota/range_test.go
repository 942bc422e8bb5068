package quota

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseRange(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Range
		err  string
	}{
		{text: "1258291200+16777216", want: DefaultRange},
		{text: "1+1", want: Range{1, 1}},
		{text: "4294967294+1", want: Range{4294967294, 1}},
		{text: "4294967295+1", err: "the last project would be 4294967295"},
		{text: "4294967294+2", err: "the last project would be 4294967295"},
		{text: "0+5", err: "project 0"},
		{text: "5+0", err: "no project"},
		{text: "5+16777217", err: "more than"},
		{text: "", err: "not FIRST+SIZE"},
		{text: "5", err: "not FIRST+SIZE"},
		{text: "+5", err: "not FIRST+SIZE"},
		{text: "-1+5", err: "not FIRST+SIZE"},
		{text: "5+-1", err: "not FIRST+SIZE"},
		{text: "1+2+3", err: "not FIRST+SIZE"},
		{text: "99999999999+1", err: "not FIRST+SIZE"},
	} {
		got, err := ParseRange(tt.text)
		asWanted := err == nil && got == tt.want && got.String() == tt.text
		if tt.err != "" {
			asWanted = err != nil && strings.Contains(err.Error(), tt.err)
		}
		if !asWanted {
			t.Errorf("%q: %v, %v, want %v, %q", tt.text, got, err, tt.want, tt.err)
		}
	}
}

func TestReserved(t *testing.T) {
	etc := t.TempDir()
	if ids, err := Reserved(etc); err != nil || len(ids) > 0 {
		t.Errorf("without files: %v, %v", ids, err)
	}
	for name, content := range map[string]string{
		"projects": "# ID:path\n1258291201:/data/a\n\n 42 :/b:c\nx:/d\n99999999999:/e\n7\n",
		"projid":   "logs:1258291202\nbad:\nworse\nspaced: 43\n",
	} {
		if err := os.WriteFile(filepath.Join(etc, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ids, err := Reserved(etc)
	if want := []uint32{1258291201, 42, 1258291202, 43}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("%v, %v, want %v", ids, err, want)
	}
}

func TestParseMode(t *testing.T) {
	for _, text := range []string{"auto", "off", "required"} {
		if m, err := ParseMode(text); err != nil || string(m) != text {
			t.Errorf("%q: %q, %v", text, m, err)
		}
	}
	for _, text := range []string{"", "on", "Auto", "none"} {
		if _, err := ParseMode(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
