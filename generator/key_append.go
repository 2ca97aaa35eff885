package generator

import (
	"fmt"
	"go/types"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// appended renders the key with n behind it.
func (k *keyCode) appended(b *block, n keyexpr.Node, notEmpty bool) string {
	switch {
	case isDim(n):
		return k.appendDim(b, n.(*keyexpr.Dim))
	case keyexpr.Credential(n):
		return k.appendValue(k.notEmpty(b, n, k.value(b, n), notEmpty), n)
	case k.raw && !notEmpty:
		return k.appendPieces(b, n)
	}
	if x := lowered(n); x != nil {
		v := k.text(k.notEmpty(b, x, k.value(b, x), notEmpty), x.Type())
		if k.raw {
			return k.runtime("AppendLowerPiece") + "(" + k.buf + ", " + v.text + ")"
		}
		return k.runtime("AppendLower") + "(" + k.buf + ", " + v.text + ")"
	}
	if c, ok := n.(*keyexpr.Convert); ok && keyexpr.KindOf(c.Type()) == keyexpr.Text && keyexpr.KindOf(c.X.Type()) != keyexpr.None {
		n = c.X // the text is what the runtime writes
	}
	if keyexpr.KindOf(n.Type()) != keyexpr.Text {
		notEmpty = false // what is text by conversion is not empty
	}
	return k.appendValue(k.notEmpty(b, n, k.value(b, n), notEmpty), n)
}

// lowered returns x if n is lower(x), else nil.
func lowered(n keyexpr.Node) keyexpr.Node {
	if f, ok := n.(*keyexpr.Builtin); ok && f.Name == "lower" {
		return f.Args[0]
	}
	return nil
}

// appendValue renders the key with v, the value of n, behind it.
func (k *keyCode) appendValue(v val, n keyexpr.Node) string {
	switch {
	case keyexpr.Credential(n):
		return k.runtime("AppendHash") + "(" + k.buf + ", " + k.text(v, n.Type()).text + ")"
	case k.raw:
		return k.appendPiece(v, n.Type())
	}
	fn, arg := k.encoder(v, n.Type())
	return k.runtime(fn) + "(" + k.buf + ", " + arg + ")"
}

// encoder returns the runtime's function for an element, and its argument.
func (k *keyCode) encoder(v val, t types.Type) (fn, arg string) {
	switch keyexpr.KindOf(t) {
	case keyexpr.Signed:
		return "AppendInt", k.as(v, t, types.Int64, "int64").text
	case keyexpr.Unsigned:
		return "AppendUint", k.as(v, t, types.Uint64, "uint64").text
	case keyexpr.Boolean:
		return "AppendBool", k.as(v, t, types.Bool, "bool").text
	}
	return "AppendText", k.text(v, t).text
}

// appendDim renders the key with what the request tells behind it. The runtime
// checks for absence itself where nothing else is chosen then.
func (k *keyCode) appendDim(b *block, n *keyexpr.Dim) string {
	if !b.leave {
		k.value(b, n)
	}
	args := k.buf + ", " + k.request()
	switch {
	case n.Kind == keyexpr.User:
		return k.runtime("AppendUser") + "(" + args + ")"
	case n.Bits4 == 32 && n.Bits6 == 64:
		return k.runtime("Append"+k.tagged+"IP") + "(" + args + ")"
	}
	return k.runtime("Append"+k.tagged+"Prefix") + fmt.Sprintf("(%s, %d, %d)", args, n.Bits4, n.Bits6)
}

// appendPieces appends text piece by piece, so that joining makes no string. All
// of it is evaluated before the first is appended.
func (k *keyCode) appendPieces(b *block, n keyexpr.Node) string {
	pieces := []keyexpr.Node{n}
	if j, ok := n.(*keyexpr.Join); ok {
		pieces = append([]keyexpr.Node(nil), j.Parts...)
	}
	lower := make([]bool, len(pieces))
	for i, p := range pieces {
		if x := lowered(p); x != nil {
			pieces[i], lower[i] = x, true
		}
		if c, ok := p.(*keyexpr.Convert); ok && keyexpr.KindOf(c.Type()) == keyexpr.Text {
			pieces[i] = c.X
		}
	}
	piece := func(v val, i int) string {
		if lower[i] {
			return k.runtime("AppendLowerPiece") + "(" + k.buf + ", " + k.text(v, pieces[i].Type()).text + ")"
		}
		return k.appendPiece(v, pieces[i].Type())
	}
	vals := k.operands(b, pieces)
	last := len(pieces) - 1
	for i, v := range vals[:last] {
		b.add(jen.Id(k.buf).Op("=").Id(piece(v, i)))
	}
	return piece(vals[last], last)
}

// appendPiece renders the buffer with v, of type t, behind it.
func (k *keyCode) appendPiece(v val, t types.Type) string {
	number := func(fn, arg string) string {
		return k.pkg("strconv", "strconv") + fn + "(" + k.buf + ", " + arg + ")"
	}
	switch keyexpr.KindOf(t) {
	case keyexpr.Signed:
		return number("AppendInt", k.as(v, t, types.Int64, "int64").text+", 10")
	case keyexpr.Unsigned:
		return number("AppendUint", k.as(v, t, types.Uint64, "uint64").text+", 10")
	case keyexpr.Boolean:
		return number("AppendBool", k.as(v, t, types.Bool, "bool").text)
	}
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		v = k.text(v, t)
	}
	if v.prec < precPrimary {
		return "append(" + k.buf + ", (" + v.text + ")...)"
	}
	return "append(" + k.buf + ", " + v.text + "...)"
}
