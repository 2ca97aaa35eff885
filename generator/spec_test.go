package generator

import "testing"

func TestTextIsWrittenWithoutEscapesWhereItCan(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"max=5 key=ip":         `"max=5 key=ip"`,
		`request.header("X")`:  "`request.header(\"X\")`",
		`a \ b`:                "`a \\ b`",
		"key=`a ?? \"b\"`":     "\"key=`a ?? \\\"b\\\"`\"",
		"a \"b\"\n":            `"a \"b\"\n"`,
		"tab\t\"b\"":           `"tab\t\"b\""`,
		"turned \u202e \"b\"":  `"turned \u202e \"b\""`,
		"no UTF-8 \xff \"b\"":  `"no UTF-8 \xff \"b\""`,
		"a mark \ufeff \"b\"":  `"a mark \ufeff \"b\""`,
		"größer als \"klein\"": "`größer als \"klein\"`",
	} {
		if got := text(s).GoString(); got != want {
			t.Errorf("%q is written as %s, want %s", s, got, want)
		}
	}
}
