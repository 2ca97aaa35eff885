package analyzer

import (
	"fmt"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/generator"
	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

// Every problem that this package finds itself is made here.

// constructed names what the constructor returns.
func constructed(constructor string) string {
	if constructor == "" {
		return "the generated constructor"
	}
	return constructor
}

func errCall(method, source, constructor string) diag.Diagnostic {
	return diag.Diagnostic{Code: "bypass", Message: fmt.Sprintf("%s is called on the %s itself, past its limit; call it on what %s returns", method, source, constructed(constructor))}
}

func errValue(method, source, constructor string) diag.Diagnostic {
	return diag.Diagnostic{Code: "bypass", Message: fmt.Sprintf("%s is taken from the %s itself, and calls of it get past its limit; take it from what %s returns", method, source, constructed(constructor))}
}

func errFunctionCall(function, constructor string) diag.Diagnostic {
	return diag.Diagnostic{Code: "bypass", Message: fmt.Sprintf("%s is called without its limit; call what %s returns", function, constructed(constructor))}
}

func errFunctionValue(function, constructor string) diag.Diagnostic {
	return diag.Diagnostic{Code: "bypass", Message: fmt.Sprintf("%s is used without its limit; use what %s returns", function, constructed(constructor))}
}

func warnSelfCall(method string) diag.Diagnostic {
	return diag.Diagnostic{Severity: diag.Warning, Code: "self-call", Message: fmt.Sprintf("%s is called from inside, where its limit does not apply; move what both need into one without a limit", method)}
}

func errRawValue(source, iface string, methods []string, constructor string) diag.Diagnostic {
	return diag.Diagnostic{Code: "raw-interface", Message: fmt.Sprintf("a raw %s becomes the interface %s, and %s can be called on that past the limit; use what %s returns", source, iface, strings.Join(methods, " and "), constructed(constructor))}
}

func errRawUse(source, iface string, methods []string, constructor string) diag.Diagnostic {
	return diag.Diagnostic{Code: "raw-interface", Message: fmt.Sprintf("a raw %s is used as the interface %s, and %s can be called on that past the limit; use what %s returns", source, iface, strings.Join(methods, " and "), constructed(constructor))}
}

func errRawInterface(source, iface, constructor string) diag.Diagnostic {
	return diag.Diagnostic{Code: "raw-interface", Message: fmt.Sprintf("%s becomes %s without its limits; only %s makes one that has them", source, iface, constructed(constructor))}
}

func warnUnusedMark() diag.Diagnostic {
	return diag.Diagnostic{Severity: diag.Warning, Code: "unused-nolint", Message: "nothing here needs the excuse; remove it"}
}

func errNoReason() diag.Diagnostic {
	return diag.Diagnostic{Code: "nolint-reason", Message: "an excuse needs a reason: //nolint:" + Name + " // why a limit does not apply here"}
}

func errMissing(pos diag.Pos) diag.Diagnostic {
	return diag.Diagnostic{Pos: pos, Code: "missing-output", Message: generator.OutputName + " is missing, so the limits of this package are not enforced; run ratelimitgen"}
}

func errStale(pos diag.Pos) diag.Diagnostic {
	return diag.Diagnostic{Pos: pos, Code: "stale-output", Message: "the file does not say what the directives do, from here on; run ratelimitgen"}
}

func errOrphaned(pos diag.Pos) diag.Diagnostic {
	return diag.Diagnostic{Pos: pos, Code: "orphaned-output", Message: "no directive asks for this file any more; run ratelimitgen, which removes it"}
}

func errRead(file string, err error) diag.Diagnostic {
	return diag.Diagnostic{Pos: diag.Pos{File: file, Line: 1, Col: 1}, Code: "unreadable", Message: fmt.Sprintf("the directives of the file are not known: %v", err)}
}
