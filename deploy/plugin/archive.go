package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// epoch is the time of every file in an archive. A zip knows no earlier one.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// mode is that of a file in an archive: the programs and scripts of the plugin may be executed.
func mode(path string) os.FileMode {
	if strings.HasPrefix(filepath.Base(path), "kubectl") {
		return 0o755
	}
	return 0o644
}

// tarball returns a tar.gz of files, in their order, without their directories.
func tarball(paths []string) ([]byte, error) {
	var packed bytes.Buffer
	compressor, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressor)
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		header := tar.Header{
			Typeflag: tar.TypeReg, Name: filepath.Base(path), Size: int64(len(content)), Mode: int64(mode(path)),
			ModTime: epoch, Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(content); err != nil {
			return nil, err
		}
	}
	err = errors.Join(archive.Close(), compressor.Close())
	return packed.Bytes(), err
}

// zipped is tarball as a zip.
func zipped(paths []string) ([]byte, error) {
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		header := zip.FileHeader{Name: filepath.Base(path), Method: zip.Deflate, Modified: epoch}
		header.SetMode(mode(path))
		file, err := archive.CreateHeader(&header)
		if err != nil {
			return nil, err
		}
		if _, err := file.Write(content); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return packed.Bytes(), err
}
