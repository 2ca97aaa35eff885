package policyfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// What the YAML parser, which takes quadratic time for what is deeply nested, is given.
const (
	maxFile  = 1 << 20
	maxLine  = 1 << 14
	maxDepth = 500
)

// node is a part of a YAML document.
type node struct {
	place
	kind  nodeKind
	text  string // of a scalar
	pairs []pair // of a mapping
	index map[string]int
	items []*node
	lacks bool // a part of it was refused
}

type pair struct{ key, value *node }

type nodeKind uint8

const (
	scalar nodeKind = iota
	null
	mapping
	sequence
	refused // a problem was reported
)

// what says what a node is, for messages.
func (n *node) what() string {
	switch n.kind {
	case null:
		return "nothing"
	case mapping:
		return "a mapping"
	case sequence:
		return "a list"
	}
	return show(n.text)
}

// document turns the only document of a YAML file into nodes.
type document struct {
	name     string
	lines    [][]byte
	problems []Problem
}

func (d *document) report(at place, format string, args ...any) {
	d.problems = append(d.problems, at.problem(format, args...))
}

// read returns the root of the document, or nil if a problem was reported.
func (d *document) read(data []byte) (root *node) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	d.lines = bytes.Split(data, []byte("\n"))
	if !d.readable(data) {
		return nil
	}
	file, err := parse(data)
	if err != nil {
		at, message := d.at(nil), err.Error()
		var located yaml.Error
		if errors.As(err, &located) {
			at, message = d.at(located.GetToken()), located.GetMessage()
		}
		d.report(at, "not YAML: %s", message)
		return nil
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if root != nil {
			at := d.at(doc.Body.GetToken())
			at.col = 1 // the token may be a colon
			d.report(at, "a file holds one document: remove what begins with ---")
			return nil
		}
		root = d.node(doc.Body)
	}
	if root == nil || root.kind == null {
		d.report(d.at(nil), "the file is empty: write {} to override nothing")
		return nil
	}
	if root.kind == refused {
		return nil
	}
	return root
}

// parse keeps a panic of the YAML parser from ending a service that rereads a file.
func parse(data []byte) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it cannot be read (%v)", r)
		}
	}()
	return parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
}

// readable reports what the YAML parser is not to see.
func (d *document) readable(data []byte) bool {
	if len(data) > maxFile {
		d.report(d.at(nil), "the file has %d bytes, and %d is the most: put networks into a cidr-file", len(data), maxFile)
		return false
	}
	depth := 0
	for i, line := range d.lines {
		at := place{d.name, i + 1, 1}
		if !utf8.Valid(line) {
			for at.col = 1; utf8.FullRune(line); {
				r, n := utf8.DecodeRune(line)
				if r == utf8.RuneError && n == 1 {
					break
				}
				line, at.col = line[n:], at.col+n
			}
			d.report(at, "not valid UTF-8")
			return false
		}
		if len(line) > maxLine {
			d.report(at, "the line has %d bytes, and %d is the most", len(line), maxLine)
			return false
		}
		for _, c := range line {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth--
			}
		}
		if depth > maxDepth {
			d.report(at, "too deeply nested: brackets are open")
			return false
		}
	}
	return true
}

// at is the place of a token, always within the file.
func (d *document) at(t *token.Token) place {
	p := place{d.name, 1, 1}
	if t == nil || t.Position == nil {
		return p
	}
	p.line = min(max(1, t.Position.Line), len(d.lines))
	line := d.lines[p.line-1]
	for range t.Position.Column - 1 { // which are characters
		if p.col > len(line) {
			break
		}
		_, n := utf8.DecodeRune(line[p.col-1:])
		p.col += max(1, n)
	}
	return p
}

func (d *document) node(n ast.Node) *node {
	if n == nil {
		return &node{place: d.at(nil), kind: null}
	}
	out := &node{place: d.at(n.GetToken())}
	switch n := n.(type) {
	case *ast.MappingNode:
		d.mapping(out, n.Values)
	case *ast.MappingValueNode:
		d.mapping(out, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		out.kind = sequence
		for _, item := range n.Values {
			out.items = append(out.items, d.node(item))
		}
	case *ast.NullNode:
		out.kind = null
	case *ast.StringNode:
		out.text = n.Value
	case *ast.LiteralNode:
		out.text = strings.TrimSuffix(n.Value.Value, "\n")
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		out.text = n.GetToken().Value
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		out.kind = refused
		d.report(out.place, "anchors, aliases and merge keys are not read: write the value out")
	case *ast.TagNode:
		out.kind = refused
		d.report(out.place, "tags are not read: remove %s", show(n.GetToken().Value))
	default:
		out.kind = refused
		d.report(out.place, "this kind of YAML is not read here: write a plain value")
	}
	return out
}

func (d *document) mapping(out *node, values []*ast.MappingValueNode) {
	out.kind = mapping
	out.index = make(map[string]int, len(values))
	for i, v := range values {
		key := d.node(v.Key)
		if i == 0 && out.col > key.col && out.line == key.line {
			out.place = key.place // and not that of the colon
		}
		value := d.node(v.Value)
		switch key.kind {
		case refused:
			out.lacks = true
			continue
		case scalar:
		default:
			out.lacks = true
			d.report(key.place, "a name is a text, not %s", key.what())
			continue
		}
		if value.kind == null {
			value.place = key.place
		}
		if first := out.pair(key.text); first != nil {
			d.report(key.place, "%s is given twice, first in line %d: keep one of them", show(key.text), first.key.line)
			continue
		}
		out.index[key.text] = len(out.pairs)
		out.pairs = append(out.pairs, pair{key, value})
	}
}

// pair returns the pair of a name, or nil.
func (n *node) pair(name string) *pair {
	if i, ok := n.index[name]; ok {
		return &n.pairs[i]
	}
	return nil
}
