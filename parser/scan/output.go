package scan

import (
	"crypto/sha256"
	"encoding/hex"
	"go/build/constraint"
	"strings"
)

// Names of output. What belongs to files with build constraints has the same ones,
// in a file of its own. The end of its name keeps a system or architecture in it from
// being a constraint itself.
const (
	// OutputName is the base name of what belongs to every build.
	OutputName   = "ratelimit_gen.go"
	outputPrefix = "ratelimit_gen_"
	outputSuffix = "_only.go"
)

// maxSlug is the greatest length of a constraint in a name.
const maxSlug = 60

// OutputFor returns the base name of what belongs to builds that satisfy c, or to
// every build if c is nil: ratelimit_gen_linux_and_not_race_only.go.
func OutputFor(c constraint.Expr) string {
	if c == nil {
		return OutputName
	}
	text := c.String()
	var b strings.Builder
	exact := true // so far, text can be told from every other
	for _, r := range strings.NewReplacer("!", "not ", "&&", "and", "||", "or").Replace(text) {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('_')
		case 'A' <= r && r <= 'Z':
			b.WriteRune(r | 0x20) // some file systems do not tell them apart
			exact = false
		default:
			exact = false
		}
	}
	slug := b.String()
	if len(slug) > maxSlug {
		slug, exact = slug[:maxSlug], false
	}
	if !exact {
		sum := sha256.Sum256([]byte(text))
		slug += "_" + hex.EncodeToString(sum[:4])
	}
	return outputPrefix + slug + outputSuffix
}

// IsOutputName reports whether name is one that OutputFor returns.
func IsOutputName(name string) bool {
	return name == OutputName || strings.HasPrefix(name, outputPrefix) && strings.HasSuffix(name, outputSuffix)
}
