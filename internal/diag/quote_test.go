package diag

import "testing"

func TestPathsAreQuotedWhereAShellNeedsIt(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"./p/...":      "./p/...",
		"../a-b_c@v1":  "../a-b_c@v1",
		`C:\module`:    `C:\module`,
		"./größe":      "./größe",
		"":             `""`,
		"./my dir":     `"./my dir"`,
		"./it's":       `"./it's"`,
		"./(old)":      `"./(old)"`,
		"./$HOME":      `'./$HOME'`,
		"./`it's`":     `'./` + "`it'\\''s`'",
		"./a;b&c":      `"./a;b&c"`,
		"./two\nlines": "\"./two\nlines\"",
	} {
		if got := Quote(path); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
}
