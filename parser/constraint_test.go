package parser

import (
	"go/build/constraint"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/parser/scan"
)

func TestConstraintOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, src, want string }{
		{"a.go", "package p", ""},
		{"linux.go", "package p", ""},
		{"a_linux.go", "package p", "linux"},
		{"a_linux_arm64.go", "package p", "arm64 && linux"},
		{"a_arm64_linux.go", "package p", "linux"},
		{"a_amd64.go", "package p", "amd64"},
		{"a_unix.go", "package p", ""},
		{"a_linux_test.go", "package p", "linux"},
		{"a.linux.go", "package p", ""},
		{"a_linux.pb.go", "package p", "linux"},
		{"a_linux.go", "//go:build race && !windows\n\npackage p", "!windows && linux && race"},
		{"a.go", "//go:build linux || darwin\n\npackage p", "linux || darwin"},
		{"a.go", "//go:build b && a && b\n\npackage p", "a && b"},
		{"a.go", "// +build linux darwin\n// +build amd64\n\npackage p", "amd64 && (linux || darwin)"},
		{"a.go", "//go:build x\n// +build y\n\npackage p", "x"},
		{"a.go", "package p\n\n//go:build x\nvar y int", ""},
		{"a.go", "package p\n\nimport \"C\"", "cgo"},
		{"a.go", "not Go", ""},
	} {
		got := ""
		if c := constraintOf(tc.name, []byte(tc.src)); c != nil {
			got = c.String()
		}
		if got != tc.want {
			t.Errorf("%s with %q: got %q, want %q", tc.name, tc.src, got, tc.want)
		}
	}
}

func TestExcludes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"linux", "windows", true},
		{"linux", "android", false}, // a build for Android has the files of Linux
		{"solaris", "illumos", false},
		{"darwin", "ios", false},
		{"amd64", "arm64", true},
		{"linux", "arm64", false},
		{"linux", "!linux", true},
		{"linux && race", "!race || windows", true},
		{"unix", "windows", false}, // a tag that anyone can set
		{"", "x", false},
		{"", "x && !x", true},
		{"a&&b&&c&&d&&e&&f&&g&&h&&i&&j&&k", "!a", false}, // too many to tell
	} {
		parse := func(text string) constraint.Expr {
			if text == "" {
				return nil
			}
			c, err := constraint.Parse("//go:build " + text)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		if got := excludes(parse(tc.a), parse(tc.b)); got != tc.want {
			t.Errorf("%q and %q: got %v", tc.a, tc.b, got)
		}
	}
}

// No name of an output is a constraint itself, and no two constraints have one name.
func TestOutputNames(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	for _, text := range []string{
		"linux", "windows", "arm64", "linux && arm64", "linux && test", "!race", "race", "Race", "a || b && c", "(a || b) && c",
		"a_b", "a && b", "a.b", "ab",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa && b",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa && c",
	} {
		c, err := constraint.Parse("//go:build " + text)
		if err != nil {
			t.Fatal(err)
		}
		name := scan.OutputFor(c)
		if implied := impliedBy(name); implied != nil || !scan.IsOutputName(name) {
			t.Errorf("%s: %s implies %v", text, name, implied)
		}
		if other, ok := names[name]; ok {
			t.Errorf("%s and %s are both %s", text, other, name)
		}
		names[name] = text
	}
	if got := scan.OutputFor(nil); got != scan.OutputName {
		t.Errorf("every build has %s", got)
	}
}
