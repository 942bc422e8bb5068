package unpack

import (
	"io/fs"
	"testing"
)

var systems = map[string]system{"host": host}

func links(fs.FileInfo) uint64    { return 0 }
func allocated(fs.FileInfo) int64 { return 0 }
func fifo(testing.TB, string)     {}
