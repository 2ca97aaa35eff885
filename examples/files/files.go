// Package files limits file operations of github.com/spf13/afero, an API that
// knows nothing of limits: a local interface embeds it and declares the methods
// to limit once more, with directives.
package files

//go:generate go tool ratelimitgen

import (
	"os"

	"github.com/spf13/afero"
)

// Fs is afero.Fs with limits on what a careless caller can do most harm with.
// Every other method is passed on as it is.
type Fs interface {
	afero.Fs

	// Create makes three files at once, then one every ten seconds.
	//
	//ratelimit:max=6 window=1m algorithm=token-bucket burst=3
	Create(name string) (afero.File, error)

	// Rename counts for each file by itself.
	//
	//ratelimit:max=2 window=1h key=`trim(oldname)`
	Rename(oldname, newname string) error

	// OpenFile has two limits that must both admit: one for each file, and one for
	// all of them together, where an open for writing takes five units.
	//
	//ratelimit:max=10 window=1m key=name
	//ratelimit:max=20 window=1m algorithm=fixed-window cost=`flag == readOnly ? 1 : 5`
	OpenFile(name string, flag int, perm os.FileMode) (afero.File, error)
}

// readOnly is os.O_RDONLY, for the directives: they see the names of this package.
const readOnly = os.O_RDONLY
