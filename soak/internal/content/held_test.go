package content

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHeld: each regular file is open once, however deep it lies and whatever it is called, and links are not followed.
func TestHeld(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	level := strings.Repeat("l", 255) + "/"
	deep := strings.Repeat(level, unix.PathMax/len(level)+1)
	for _, err := range []error{
		root.MkdirAll(deep, 0o755), root.WriteFile(deep+"file", nil, 0o644), root.WriteFile("top", nil, 0o644), root.Symlink("top", "link"),
		root.Mkdir("\xff", 0o755), root.WriteFile("\xff/\xfe", nil, 0o644),
		unix.Mkfifo(dir+"/fifo", 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var held Held
	for _, d := range []string{dir, dir + "/missing"} {
		if err := held.Open(d); err != nil {
			t.Fatal(err)
		}
	}
	if len(held.files) != 3 {
		t.Errorf("%d files are open", len(held.files))
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
}
