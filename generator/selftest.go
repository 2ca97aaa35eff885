package generator

import (
	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser"
)

// Try renders the output for as many of the candidates as possible and type-checks
// it. What stands in the way of a candidate is added to its refusals; for one whose
// code does not compile that is a diagnostic with CodeInvalid. The problems returned
// are those of the package as a whole: all of it does not compile, although each part
// does. Stages are reported to stage, if that is not nil.
func Try(c *parser.Candidates, stage func(stage, pkg string)) ([]File, diag.List) {
	rest := *c.Package
	rest.Wrappers = nil
	refuse := func(s *parser.Candidate, problems ...diag.Diagnostic) {
		s.Refusals.Add(problems...)
		s.Wrapper = nil
	}
	for _, s := range c.All {
		if s.Wrapper == nil {
			continue
		}
		if problems := checkWrapper(c.Package, s.Wrapper); len(problems) > 0 {
			refuse(s, problems...)
			continue
		}
		rest.Wrappers = append(rest.Wrappers, s.Wrapper)
	}
	f, err := tryPackage(&rest, stage)
	if err == nil {
		return f, nil
	}
	all := rest
	rest.Wrappers = nil
	for _, s := range c.All {
		if s.Wrapper == nil {
			continue
		}
		alone := all
		alone.Wrappers = []*parser.Wrapper{s.Wrapper}
		if _, err := tryPackage(&alone, nil); err != nil {
			refuse(s, invalid(&alone, err))
			continue
		}
		rest.Wrappers = append(rest.Wrappers, s.Wrapper)
	}
	f, err = tryPackage(&rest, stage)
	if err != nil {
		return nil, diag.List{invalid(&rest, err)}
	}
	return f, nil
}

// tryPackage is checkedPackage, or nothing if p has no wrappers.
func tryPackage(p *parser.Package, stage func(stage, pkg string)) ([]File, error) {
	if len(p.Wrappers) == 0 {
		return nil, nil
	}
	return checkedPackage(p, stage)
}
