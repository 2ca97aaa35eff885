//go:build unix

package scan

import (
	"errors"
	"io/fs"
	"syscall"
)

// open opens a file for reading. Files of package os are known to the network
// poller, which costs more system calls than reading a source file does.
func open(path string) (file, error) {
	for {
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return file(fd), nil
	}
}

// file is an open file descriptor.
type file int

// read returns 0 at the end of the file.
func (f file) read(buf []byte) (int, error) {
	for {
		n, err := syscall.Read(int(f), buf)
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}

func (f file) close() { _ = syscall.Close(int(f)) } // only read
