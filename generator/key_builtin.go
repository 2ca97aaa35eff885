package generator

import (
	"go/types"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// goFunctions are the functions that built-in ones are rendered as: package and
// name. The first argument of trim decides which it is.
var goFunctions = map[string][2]string{
	"lower": {"strings", "ToLower"}, "upper": {"strings", "ToUpper"}, "trim": {"strings", "Trim"},
	"trimPrefix": {"strings", "TrimPrefix"}, "trimSuffix": {"strings", "TrimSuffix"}, "replace": {"strings", "ReplaceAll"},
	"contains": {"strings", "Contains"}, "startsWith": {"strings", "HasPrefix"}, "endsWith": {"strings", "HasSuffix"},
	"split": {"strings", "Split"}, "join": {"strings", "Join"},
	"ceil": {"math", "Ceil"}, "floor": {"math", "Floor"}, "round": {"math", "Round"},
	"len": {"", "len"}, "min": {"", "min"}, "max": {"", "max"},
}

// builtin renders the call of a built-in function, or an operator on text.
func (k *keyCode) builtin(b *block, n *keyexpr.Builtin) val {
	vals := k.operands(b, n.Args)
	if n.Name == "abs" {
		return k.abs(b, n, vals[0])
	}
	args, use := make([]string, len(vals)), useAgain
	for i, v := range vals {
		use = min(use, v.use)
		if keyexpr.KindOf(n.Args[i].Type()) == keyexpr.Text {
			v = k.text(v, n.Args[i].Type())
		}
		args[i] = v.text
	}
	fn := goFunctions[n.Name]
	switch {
	case n.Name == "trim" && len(vals) == 1:
		fn[1] = "TrimSpace"
	case n.Name == "len" && keyexpr.KindOf(n.Args[0].Type()) == keyexpr.Text:
		fn = [2]string{"unicode/utf8", "RuneCountInString"}
	case n.Name == "split" || n.Name == "join" || n.Name == "replace":
		use = useOnce // too dear to do again
	}
	call := fn[1]
	if path := fn[0]; path != "" {
		call = k.pkg(path, path[strings.LastIndex(path, "/")+1:]) + call
	}
	v := val{text: call + "(" + strings.Join(args, ", ") + ")", prec: precPrimary, use: use}
	if _, ok := n.Args[0].Type().Underlying().(*types.Array); ok && n.Name == "len" {
		v.use = useOnce // a variable, where Go would have a constant and reject x % 0
		v = k.keep(b, &keyexpr.Local{Name: "length"}, v, useAlways)
	}
	return v
}
