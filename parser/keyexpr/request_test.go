package keyexpr

import (
	"go/types"
	"net/textproto"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestHeadersAreSpelledAsTextprotoDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.StringMatching("[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,12}").Draw(rt, "name")
		if got, want := canonicalHeader(name), textproto.CanonicalMIMEHeaderKey(name); got != want {
			rt.Fatalf("canonicalHeader(%q) = %q, want %q", name, got, want)
		}
	})
}

func TestDimensionsThatAreParametersTooAreAmbiguousAsElements(t *testing.T) {
	t.Parallel()
	for _, dim := range dimNames() {
		pkg := types.NewPackage("example.com/p", "p")
		param := types.NewVar(0, pkg, dim, types.Typ[types.String])
		sig := types.NewSignatureType(nil, nil, nil, types.NewTuple(param), nil, false)
		s := &Scope{Pkg: pkg, Sig: sig, Request: true}
		for _, src := range []string{"X", "[X, 'a']", "'a', X"} {
			src = strings.ReplaceAll(src, "X", dim)
			k, problems := ParseKey(src, s)
			if k != nil || len(problems) != 1 || problems[0].Code != ambiguousName.code ||
				!strings.Contains(problems[0].Message, "#"+dim+" ") || !strings.Contains(problems[0].Message, "request."+dim+" ") {
				t.Errorf("%s: %+v, want one that offers #%s and request.%s", src, problems, dim, dim)
			}
		}
		for _, src := range []string{"#X", "request.X", "lower(X)", "[#X, request.X]"} {
			src = strings.ReplaceAll(src, "X", dim)
			if k, problems := ParseKey(src, s); k == nil {
				t.Errorf("%s: %+v", src, problems)
			}
		}
		account := types.NewStruct([]*types.Var{types.NewField(0, pkg, "ID", types.Typ[types.String], false)}, nil)
		s.Sig = types.NewSignatureType(nil, nil, nil, types.NewTuple(types.NewVar(0, pkg, dim, account)), nil, false)
		if k, problems := ParseKey(dim+".ID", s); k == nil || k.NeedsRequest() {
			t.Errorf("a field of the parameter %s: %+v, %+v", dim, k, problems)
		}
		s.Sig = types.NewSignatureType(nil, nil, nil, nil, nil, false)
		if k, problems := ParseKey(dim, s); k == nil {
			t.Errorf("%s without such a parameter: %+v", dim, problems)
		}
	}
	if got, want := strings.Join(dimNames(), " "), "ip user role method path route"; got != want {
		t.Errorf("the dimensions are %s, want %s", got, want)
	}
}
