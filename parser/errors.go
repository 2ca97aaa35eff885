package parser

import (
	"errors"
	"fmt"
	"go/build"
	"go/scanner"
	"path/filepath"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser/directive"
	"github.com/ratelimitgen/ratelimitgen/parser/scan"
)

// Every problem that this package finds itself is made here.

// at is a diagnostic about the directive d as a whole.
func at(d *directive.Directive, code, format string, args ...any) diag.Diagnostic {
	return diag.Diagnostic{Pos: d.Pos, EndCol: d.Pos.Col + len(directive.Prefix) + len(d.Text), Code: code, Message: fmt.Sprintf(format, args...)}
}

// option is a diagnostic about the option of that name, or about d as a whole if d has
// it not, or from elsewhere.
func option(d *directive.Directive, code, name, format string, args ...any) diag.Diagnostic {
	a := d.Option(name)
	if a == nil || d.From(a) != "" {
		return at(d, code, format, args...)
	}
	return diag.Diagnostic{Pos: a.Pos(), EndCol: a.End().Col, Code: code, Message: fmt.Sprintf(format, args...)}
}

// errOwnError is errNoErrorResult in a package that declares an error of its own.
func errOwnError(d *directive.Directive, method string) diag.Diagnostic {
	return at(d, "no-error-result", "%s cannot tell its caller of a refusal: its last result must be Go's own error, and the package declares another type of that name; rename that", method)
}

func errNoErrorResult(d *directive.Directive, method string) diag.Diagnostic {
	return at(d, "no-error-result", "%s cannot tell its caller of a refusal: its last result must be of type error, or it must be an HTTP handler, or on-limit=zero or on-limit=fallback:Method says what the caller gets instead", method)
}

func errHandlerZero(d *directive.Directive, method string) diag.Diagnostic {
	from, remedy := "", "leave it out"
	if a := d.Option("on-limit"); a != nil && d.From(a) != "" {
		from, remedy = ", which it has from "+d.From(a)+",", "write on-limit=error here"
	}
	return option(d, "handler-zero", "on-limit", "%s is an HTTP handler, so on-limit=zero%s would answer a refused request with an empty 200; %s for a response with the status of a refusal, or write on-limit=fallback:Method", method, from, remedy)
}

func errPromotedNoError(d *directive.Directive, typ, method string) diag.Diagnostic {
	return at(d, "no-error-result", "the limit on %s covers its method %s, which cannot tell its caller of a refusal: its last result must be of type error, or it must be an HTTP handler, or on-limit=zero or on-limit=fallback:Method says what the caller gets instead; //ratelimit:off on %s.%s leaves it out", typ, method, typ, method)
}

func word(w directive.Word, code, format string, args ...any) diag.Diagnostic {
	return diag.Diagnostic{Pos: w.Pos, EndCol: w.End.Col, Code: code, Message: fmt.Sprintf(format, args...)}
}

func errNoFallback(w directive.Word, typ string, methods []string) diag.Diagnostic {
	d := word(w, "unknown-fallback", "%s has no method %s to fall back to", typ, w.Text)
	d.Suggestion = diag.Suggest(w.Text, methods)
	return d
}

func errNoFallbackFunction(w directive.Word, pkg string, functions []string) diag.Diagnostic {
	d := word(w, "unknown-fallback", "package %s has no function %s to fall back to", pkg, w.Text)
	d.Suggestion = diag.Suggest(w.Text, functions)
	return d
}

func errFallbackItself(w directive.Word) diag.Diagnostic {
	return word(w, "unknown-fallback", "a call of %s cannot fall back to itself", w.Text)
}

func errFallbackCycle(w directive.Word, chain []string) diag.Diagnostic {
	return word(w, "fallback-cycle", "the limits of a fallback apply too, and this one ends where it began: %s; let one of them do something else", strings.Join(chain, ", "))
}

func errFallbackSignature(w directive.Word, method, sig string) diag.Diagnostic {
	return word(w, "fallback-signature", "%s must take and return what %s does: %s", w.Text, method, sig)
}

func errLockCopied(v *directive.Value, typ string) diag.Diagnostic {
	return diag.Diagnostic{Pos: v.Pos(0), EndCol: v.Pos(len(v.Text)).Col, Code: "lock-copied",
		Message: fmt.Sprintf("the expression takes a copy of a %s, which holds a lock; have a pointer to it there, or call a function of the package that looks at it", typ)}
}

func errQuotaType(v *directive.Value, typ string) diag.Diagnostic {
	return diag.Diagnostic{Pos: v.Pos(0), EndCol: v.Pos(len(v.Text)).Col, Code: "not-a-duration",
		Message: fmt.Sprintf("a time-quota is a time.Duration, not %s; convert it in a function of the package", typ)}
}

// errAmbiguousWord reports an option that is set to a word which is a parameter, too.
func errAmbiguousWord(a *directive.Assignment) diag.Diagnostic {
	return diag.Diagnostic{Pos: a.Value.Pos(0), EndCol: a.Value.Pos(len(a.Value.Text)).Col, Code: "ambiguous-name",
		Message: fmt.Sprintf("%[1]s is both a word of %[2]s and a parameter; write #%[1]s for the parameter, or call it otherwise", a.Value.Text, a.Name)}
}

// errShadows reports a name in a directive for several methods that means one thing here
// and another elsewhere.
func errShadows(v *directive.Value, name, method, kind string) diag.Diagnostic {
	return diag.Diagnostic{Pos: v.Pos(0), EndCol: v.Pos(len(v.Text)).Col, Code: "ambiguous-name",
		Message: fmt.Sprintf("%[1]s is a %[3]s of the package, and in %[2]s a parameter, which it would mean there; call the parameter otherwise, or write #%[1]s if it is meant", name, method, kind)}
}

func errOffWithoutLimit(d *directive.Directive, typ string) diag.Diagnostic {
	return at(d, "off-without-limit", "off has no effect: no limit on type %s covers this method", typ)
}

func errTwice(d *directive.Directive, name string) diag.Diagnostic {
	return at(d, "invalid-declaration", "%s is declared a second time here, and a limit can apply to one declaration only; remove the other", name)
}

func errDropped(d *directive.Directive, typ, method string) diag.Diagnostic {
	if method == "_" {
		return at(d, "invalid-declaration", "the directive has no effect: nobody can call a method _ of %s; name it or remove the directive", typ)
	}
	return at(d, "invalid-declaration", "the directive has no effect: to the compiler, %s has no method %s, and go vet says why; mend the declaration", typ, method)
}

func errWrapperWithoutLimit(d *directive.Directive, typ string) diag.Diagnostic {
	return at(d, "wrapper-without-limit", "wrapper has no effect: %s has no limit", typ)
}

func errLimitWithoutMethod(d *directive.Directive, typ string) diag.Diagnostic {
	return at(d, "limit-without-method", "the limit on type %s has no effect: no exported method is left that it could apply to; put it on the method that it is for, or remove it", typ)
}

func errExcludedFile(f, pkg string, pos diag.Pos) diag.Diagnostic {
	why := "the build constraints exclude it here"
	if pkg == "documentation" {
		why = "no build has a file of a package that is called documentation"
	}
	return diag.Diagnostic{Pos: pos, Severity: diag.Warning, Code: "excluded-file", Message: fmt.Sprintf("%s holds ratelimit directives, but %s", f, why)}
}

// errSyntax reports the first thing that the parser found wrong with a file.
func errSyntax(name string, err error) diag.Diagnostic {
	d := diag.Diagnostic{Pos: diag.Pos{File: name, Line: 1, Col: 1}, Code: "syntax", Message: err.Error()}
	var list scanner.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		d.Pos.Line, d.Pos.Col, d.Message = list[0].Pos.Line, list[0].Pos.Column, list[0].Msg
	}
	d.Message = "the file cannot be parsed: " + d.Message
	return d
}

// IrregularFile reports what is no file and stands where output should go.
func IrregularFile(path string) diag.Diagnostic {
	return diag.Diagnostic{Pos: diag.Pos{File: path, Line: 1, Col: 1}, Code: "irregular-file", Message: "this is not a file but stands where the output should go; move it away"}
}

func errTestFile(d *directive.Directive) diag.Diagnostic {
	return at(d, "test-file", "directives in test files have no effect; move the declaration to a file that is not a test")
}

func errNotNamed(d *directive.Directive, typ, why string) diag.Diagnostic {
	return at(d, "cannot-wrap", "%s cannot be wrapped: %s", typ, why)
}

func errPromotedLimit(d *directive.Directive, typ, method, from string, iface bool) diag.Diagnostic {
	without := "with //nolint:ratelimit // and why it has none" // which vet asks for if it calls from's
	if iface {
		without = "without one"
	}
	return at(d, "promoted-limit", "%s promotes %s from %s, where it has a limit that would not apply to callers of the wrapped %s; declare %s on %s, with a limit of its own or %s", typ, method, from, typ, method, typ, without)
}

func errNameTaken(d *directive.Directive, name, opt, example string) diag.Diagnostic {
	return nameOption(d, opt, "the name %s is taken in this package; choose another with //ratelimit:wrapper %s=%s on it", name, opt, example)
}

// nameOption is about a name that is generated: at the option of the wrapper that gives
// it, if there is one.
func nameOption(d *directive.Directive, opt, format string, args ...any) diag.Diagnostic {
	if d.Verb != directive.VerbWrapper {
		return at(d, "name-taken", format, args...) // the name of a limit is another thing
	}
	return option(d, "name-taken", opt, format, args...)
}

func errMethodTaken(pos diag.Pos, w *Wrapper, method string) diag.Diagnostic {
	return diag.Diagnostic{Pos: pos, Code: "name-taken", Message: fmt.Sprintf("%s gets the method %s from what is generated for %s; rename this one, or choose another name for the wrapper with //ratelimit:wrapper name=… on %[3]s", w.Name, method, w.Source.Name())}
}

func errShadowed(d *directive.Directive, name string) diag.Diagnostic {
	return at(d, "shadowed-predeclared", "the package declares its own %s, which generated code needs as Go predeclares it; rename it", name)
}

// ForeignOutput reports a file that stands where output should go and is none.
func ForeignOutput(path string) diag.Diagnostic {
	return diag.Diagnostic{Pos: diag.Pos{File: path, Line: 1, Col: 1}, Code: "foreign-output", Message: fmt.Sprintf("the file stands where output should go and was not generated by ratelimitgen (its first line is not %q); move it away or rename it", scan.Header)}
}

func errSameWrapper(d *directive.Directive, name, opt, other string) diag.Diagnostic {
	return nameOption(d, opt, "the name %s is also that of what is generated for %s; choose another with //ratelimit:wrapper name=… constructor=… on it", name, other)
}

// errSameID is about a limit of the identity that another has, one of method.
func errSameID(d *directive.Directive, id string, other *directive.Directive, method string) diag.Diagnostic {
	file := filepath.Base(other.Pos.File)
	if dir := filepath.Dir(other.Pos.File); dir != filepath.Dir(d.Pos.File) {
		file = filepath.Base(dir) + "/" + file
	}
	return option(d, "duplicate-identity", "name", "the limit %q has the same name as one of %s (%s:%d), so the two would share counters; give each a name of its own", id, method, file, other.Pos.Line)
}

func errBadSignature(d *directive.Directive, method, cause string) diag.Diagnostic {
	if name, ok := strings.CutPrefix(cause, "undefined: "); ok && strings.Contains(name, ".") {
		cause += " (if it is generated, name its package in the same run, or generate that first)"
	}
	if cause != "" {
		cause = ": " + cause
	}
	return at(d, "broken-signature", "the signature of %s does not type-check%s", method, cause)
}

func errBadType(d *directive.Directive, typ, cause string) diag.Diagnostic {
	if cause != "" {
		cause = ": " + cause
	}
	return at(d, "broken-signature", "the declaration of type %s does not type-check%s", typ, cause)
}

func errBlankMethod(pos diag.Pos, typ string) diag.Diagnostic {
	return diag.Diagnostic{Pos: pos, Code: "invalid-declaration", Message: fmt.Sprintf("Go allows no method _ in an interface, and no wrapper of %s can have one; give it a name or remove it", typ)}
}

func errIncomplete(d *directive.Directive, typ, cause string) diag.Diagnostic {
	return at(d, "broken-signature", "not all methods of %s are known: %s", typ, cause)
}

func errUnresolvedInterface(pos diag.Pos, name, why string) diag.Diagnostic {
	return diag.Diagnostic{Pos: pos, Code: "unknown-interface", Message: fmt.Sprintf("implements=%s: %s", name, why)}
}

func errLoad(pos diag.Pos, msg string) diag.Diagnostic {
	return diag.Diagnostic{Pos: pos, Code: "load", Message: strings.Join(strings.Fields(msg), " ")}
}

// CodeOutsideModule is the code of a pattern that leads out of the main modules.
const CodeOutsideModule = "outside-module"

// errOtherModule is about a pattern that leads into the module in dir. The go.work file is
// work, or "".
func errOtherModule(pattern, module, dir, work string) diag.Diagnostic {
	d := diag.Diagnostic{Code: CodeOutsideModule}
	if work != "" {
		d.Message = fmt.Sprintf("%s is in module %s, which %s does not list; run: go work use %s", pattern, module, work, diag.Quote(dir))
	} else {
		d.Message = fmt.Sprintf("%s is in module %s, which is not the main module here; run ratelimitgen in that one (cd %s, or -C %[3]s), or list both in a go.work", pattern, module, diag.Quote(dir))
	}
	return d
}

// errNotInModule is about a pattern that leads out of the main modules, which are in
// dirs, and into no other.
func errNotInModule(pattern string, dirs []string, work string) diag.Diagnostic {
	d := diag.Diagnostic{Code: CodeOutsideModule}
	var names []string
	for _, dir := range dirs[:min(len(dirs), 3)] {
		if build.IsLocalImport(dir) || filepath.IsAbs(dir) {
			names = append(names, diag.Quote(dir+"/..."))
		} else {
			names = append(names, diag.Quote("./"+dir+"/..."))
		}
	}
	switch like := strings.Join(names, " "); {
	case work == "":
		d.Message = fmt.Sprintf("%s is not in a module; name packages of the main module, like %s", pattern, like)
	case like == "":
		d.Message = fmt.Sprintf("%s is not in a module, and %s lists none; run: go work use dir", pattern, work)
	default:
		d.Message = fmt.Sprintf("%s is not in a module that %s lists; name packages of those, like %s", pattern, work, like)
	}
	return d
}

// errOtherPackage is about a package that was named by its import path. Its module is ""
// if it is of the standard library.
func errOtherPackage(path, module string) diag.Diagnostic {
	d := diag.Diagnostic{Code: CodeOutsideModule}
	if module == "" {
		d.Message = fmt.Sprintf("package %s is in the standard library; ratelimitgen only writes to main modules", path)
	} else {
		d.Message = fmt.Sprintf("package %s is in module %s, which is not a main module; ratelimitgen only writes to those", path, module)
	}
	return d
}

func errNoModule() diag.Diagnostic {
	return diag.Diagnostic{Code: CodeOutsideModule, Message: "there is no go.mod in this directory or above it; change to the directory of a module (cd, or -C dir), or make this one a module with go mod init"}
}

// excluded is why there is nothing to do in a directory that was asked for.
func excluded(dir string) string {
	return fmt.Sprintf("build constraints exclude all Go files in %s; the build is that of GOOS, GOARCH, CGO_ENABLED and -tags", dir)
}

func errNoRuntime(module string, cause error) diag.Diagnostic {
	said := strings.Join(strings.Fields(cause.Error()), " ")
	return diag.Diagnostic{Code: "no-runtime", Message: fmt.Sprintf("the generated code needs package %s, which the module does not have; run: go get github.com/ratelimitgen/ratelimitgen (go says: %s)", module, said)}
}
