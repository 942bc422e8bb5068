package kernel

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestVitalProductDataOfNoDisk(t *testing.T) {
	file, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if page, err := VitalProductData(int(file.Fd()), 0x80); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("%q, %v", page, err)
	}
}
