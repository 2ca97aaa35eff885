//go:build !unix

package scan

import (
	"io"
	"io/fs"
	"os"
)

// open opens a file for reading.
func open(path string) (file, error) {
	f, err := os.Open(path)
	return file{f}, err
}

type file struct{ *os.File }

// read returns 0 at the end of the file.
func (f file) read(buf []byte) (int, error) {
	n, err := f.Read(buf)
	if err == io.EOF {
		err = nil
	}
	// The caller says which file it is.
	if pathErr, ok := err.(*fs.PathError); ok {
		err = pathErr.Err
	}
	return n, err
}

func (f file) close() { _ = f.Close() } // only read
