package load

import (
	"bytes"
	"go/ast"
)

// stripBodies returns src with the inside of function bodies blanked out, so that
// parsing does not have to build a syntax tree of what nobody looks at. Line ends
// stay, and with them every position. Text that does not look like Go is returned
// as it is.
//
// It understands as much of Go as it takes to tell a brace of the syntax from one
// in a literal or a comment: a body is what stands in braces behind a func that
// begins a declaration, except for the braces of struct and interface types in its
// signature.
func stripBodies(src []byte) []byte { return strip(src, false) }

// stripToOutline is stripBodies that also leaves out what no outline keeps:
// functions, methods that are not exported, and variables. What is left may end
// before src does.
func stripToOutline(src []byte) []byte { return strip(src, true) }

func strip(src []byte, outline bool) []byte {
	s := stripper{src: src, outline: outline}
	if !s.file() || len(s.blank) == 0 {
		return src
	}
	out := bytes.Clone(src)
	for _, b := range s.blank {
		for i := b[0]; i < b[1]; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	if outline {
		out = bytes.TrimRight(out, " \n")
	}
	return out
}

type stripper struct {
	src     []byte
	pos     int
	ends    bool // a line end behind what was read ends a declaration
	outline bool
	blank   [][2]int // ranges, in order
	declared
}

// declared is what an outline of a file declares.
type declared struct {
	names     []string // of types and constants, and words that are none
	aliases   []string // those that something is assigned to
	receivers []string // types of the receivers of exported methods
}

// file finds what is to be blanked out. It reports false if the text makes no
// sense.
func (s *stripper) file() bool {
	for start := true; ; { // of a declaration
		tok, word := s.next()
		switch {
		case tok == 0:
			return s.pos >= len(s.src)
		case start && string(word) == "func":
			if !s.function(s.pos - len(word)) {
				return false
			}
			continue
		case start && s.outline && string(word) == "var":
			if !s.variables(s.pos - len(word)) {
				return false
			}
			continue
		case start && s.outline && (string(word) == "type" || string(word) == "const"):
			if !s.named() {
				return false
			}
			continue
		case tok == '(' || tok == '[' || tok == '{':
			if !s.balanced() {
				return false
			}
		case tok == ')' || tok == ']' || tok == '}':
			return false
		}
		start = tok == '\n' || tok == ';'
	}
}

// function reads a signature and the body behind it, if there is one, and what
// separates that from the next declaration. The word func is at start.
func (s *stripper) function(start int) bool {
	tok, word := s.next()
	method := tok == '('
	var receiver []byte
	if method {
		var ok bool
		if receiver, ok = s.receiver(); !ok {
			return false
		}
		tok, word = s.next()
	}
	dropped := s.outline && tok == 'w' && !(method && ast.IsExported(string(word)))
	if s.outline && !dropped {
		s.receivers = append(s.receivers, string(receiver))
	}
	var last []byte // the word before the current token
	for ; ; tok, word = s.next() {
		switch tok {
		case 0, '\n', ';':
			if dropped {
				s.blank = append(s.blank, [2]int{start, s.pos})
			}
			return tok != 0 || s.pos >= len(s.src)
		case ')', ']', '}':
			return false
		case '(', '[', '{':
			inner := s.pos
			if !s.balanced() {
				return false
			}
			if w := string(last); tok == '{' && w != "struct" && w != "interface" && !dropped {
				s.blank = append(s.blank, [2]int{inner, s.pos - 1})
			}
		}
		last = word
	}
}

// receiver reads up to the end of a receiver and returns the name of its type: the
// last word that is not in the list of type parameters.
func (s *stripper) receiver() (name []byte, ok bool) {
	for depth := 1; depth > 0; {
		switch tok, word := s.next(); tok {
		case 0, '{', '}', ']':
			return nil, false
		case '(':
			depth++
		case ')':
			depth--
		case '[':
			if !s.balanced() {
				return nil, false
			}
		case 'w':
			name = word
		}
	}
	return name, true
}

// named reads a declaration of types or constants behind its keyword, and notes
// their names: the words at the beginning of a line of it, and behind commas until
// something else comes.
func (s *stripper) named() bool {
	grouped, first := false, true // in parentheses; a name may come
	var name []byte               // the token before, if it was a name
	for fresh := true; ; fresh = false {
		tok, word := s.next()
		last := name
		name = nil
		switch {
		case tok == 'w' && first:
			s.names = append(s.names, string(word))
			name, first = word, false
		case tok == '=' && last != nil:
			s.aliases = append(s.aliases, string(last))
		case tok == '(' && fresh:
			grouped = true
		case tok == '(' || tok == '[' || tok == '{':
			if !s.balanced() {
				return false
			}
		case tok == ')' && grouped:
			grouped = false
		case tok == ')' || tok == ']' || tok == '}':
			return false
		case tok == 0:
			return s.pos >= len(s.src)
		case tok == '\n' || tok == ';':
			if !grouped {
				return true
			}
			first = true
		case tok == ',':
			first = true
		}
	}
}

// variables reads a declaration of variables. The word var is at start.
func (s *stripper) variables(start int) bool {
	for {
		switch tok, _ := s.next(); tok {
		case 0, '\n', ';':
			s.blank = append(s.blank, [2]int{start, s.pos})
			return tok != 0 || s.pos >= len(s.src)
		case '(', '[', '{':
			if !s.balanced() {
				return false
			}
		case ')', ']', '}':
			return false
		}
	}
}

// balanced reads up to the bracket that closes the one just read.
func (s *stripper) balanced() bool {
	for depth := 1; depth > 0; {
		switch tok, _ := s.next(); tok {
		case 0:
			return false
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		}
	}
	return true
}

// next reads a token: 'w' and the text of a word, '"' for a literal, a line end if
// it ends a declaration, or any other byte for itself. It is 0 at the end, or where a
// literal or comment has none.
func (s *stripper) next() (tok byte, word []byte) {
	tok, word = s.token()
	switch tok {
	case 'w':
		switch string(word) {
		case "chan", "const", "func", "import", "interface", "map", "package", "struct", "type", "var":
			s.ends = false
		default:
			s.ends = true
		}
	case '"', ')', ']', '}':
		s.ends = true
	default:
		s.ends = false
	}
	return tok, word
}

func (s *stripper) token() (tok byte, word []byte) {
	for s.pos < len(s.src) {
		c := s.src[s.pos]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' && !s.ends:
			s.pos++
		case isWord(c):
			start := s.pos
			for s.pos < len(s.src) && isWord(s.src[s.pos]) {
				s.pos++
			}
			return 'w', s.src[start:s.pos]
		case c == '/' && s.at(1) == '/':
			if !s.skipTo("\n") {
				s.pos = len(s.src)
				return 0, nil
			}
			s.pos-- // the line end counts
		case c == '/' && s.at(1) == '*':
			start := s.pos
			s.pos += 2
			if !s.skipTo("*/") {
				return 0, nil
			}
			if s.ends && bytes.IndexByte(s.src[start:s.pos], '\n') >= 0 {
				return '\n', nil
			}
		case c == '`':
			s.pos++
			if !s.skipTo("`") {
				return 0, nil
			}
			return '"', nil
		case c == '"' || c == '\'':
			if !s.quoted(c) {
				return 0, nil
			}
			return '"', nil
		default:
			s.pos++
			return c, nil
		}
	}
	return 0, nil
}

// at is the byte n behind the current one, or 0.
func (s *stripper) at(n int) byte {
	if s.pos+n < len(s.src) {
		return s.src[s.pos+n]
	}
	return 0
}

// skipTo goes behind the next occurrence of end.
func (s *stripper) skipTo(end string) bool {
	i := bytes.Index(s.src[s.pos:], []byte(end))
	if i < 0 {
		return false
	}
	s.pos += i + len(end)
	return true
}

// quoted reads a string or rune literal.
func (s *stripper) quoted(quote byte) bool {
	for s.pos++; s.pos < len(s.src); s.pos++ {
		switch s.src[s.pos] {
		case '\\':
			s.pos++
		case '\n':
			return false
		case quote:
			s.pos++
			return true
		}
	}
	return false
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
