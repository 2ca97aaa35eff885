package policyfile

import (
	"crypto/sha256"
	"os"
	"time"
)

// source is a file that was read, as it was then.
type source struct {
	path string
	most int64 // bytes that it may have
	seen sighting
	sum  [sha256.Size]byte
}

// sighting is what can be seen of a file without reading it; info is nil if there is
// none. Links are followed, so that a file that replaces another is another.
type sighting struct {
	info os.FileInfo
	at   time.Time
}

func look(path string) sighting {
	info, err := os.Stat(path)
	if err != nil {
		info = nil
	}
	return sighting{info, time.Now()}
}

// same reports whether the file cannot have changed between two sightings. The times of
// files tick slowly, so one that was written just before it was seen may have been
// written again.
func (s sighting) same(now sighting) bool {
	const tick = 3 * time.Second
	a, b := s.info, now.info
	switch {
	case a == nil || b == nil:
		return false
	case !os.SameFile(a, b) || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()):
		return false
	}
	age := s.at.Sub(a.ModTime())
	return age > tick
}

// sumOf stands for what reading a file came to.
func sumOf(data []byte, err error) [sha256.Size]byte {
	if err != nil {
		return sha256.Sum256([]byte("error: " + err.Error()))
	}
	return sha256.Sum256(data)
}

// changed reports whether the file is another than it was, and remembers it as it is.
func (s *source) changed() bool {
	now := look(s.path)
	if s.seen.same(now) {
		return false
	}
	sum := sumOf(readFile(s.path, s.most))
	changed := sum != s.sum
	s.seen, s.sum = now, sum
	return changed
}
