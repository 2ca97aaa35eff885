package diag

import "strings"

// Quote returns a path as somebody would write it in the command line of a shell: in
// quotes only if it needs them.
func Quote(path string) string {
	plain := func(r rune) bool {
		return r >= 0x80 || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune(`%+,-./:=@\_`, r)
	}
	switch {
	case path != "" && strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0:
		return path
	case strings.ContainsAny(path, "$`\"!"):
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return `"` + path + `"`
}
