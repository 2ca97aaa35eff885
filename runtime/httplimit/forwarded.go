package httplimit

import (
	"net/netip"
	"strings"
)

// maxHops bounds the work that a header can cause.
const maxHops = 64

// forwardedFor returns the first address from the right, over all lines of the
// header, that is not trusted. It returns false if there is none, or if something
// that is no address comes before it.
func (p *Proxies) forwardedFor(lines []string) (netip.Addr, bool) {
	cut, parse := cutLastItem, parseHop
	if p.header == "Forwarded" {
		cut, parse = cutLastElement, parseElement
	}
	hops := 0
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			if hops++; hops > maxHops {
				return netip.Addr{}, false
			}
			var item string
			rest, item, more = cut(rest)
			item = strings.Trim(item, " \t")
			if item == "" {
				continue // RFC 9110 section 5.6.1: a list may have empty elements
			}
			addr, ok := parse(item)
			if !ok {
				return netip.Addr{}, false
			}
			if !p.trusts(addr) {
				return addr, true
			}
		}
	}
	return netip.Addr{}, false
}

// cutLastItem splits list at its last comma.
func cutLastItem(list string) (rest, item string, more bool) {
	i := strings.LastIndexByte(list, ',')
	if i < 0 {
		return "", list, false
	}
	return list[:i], list[i+1:], true
}

// cutLastElement splits list at its last comma outside of quoted strings. It
// works from the right end, which a trusted proxy wrote, so that a quote which a
// client left open further left cannot swallow the proxy's words.
func cutLastElement(list string) (rest, element string, more bool) {
	quoted := false
	for i := len(list) - 1; i >= 0; i-- {
		switch {
		case list[i] == '"' && !(quoted && escaped(list, i)):
			quoted = !quoted
		case list[i] == ',' && !quoted:
			return list[:i], list[i+1:], true
		}
	}
	return "", list, false
}

// escaped reports whether the byte at i has an odd number of backslashes before it.
func escaped(s string, i int) bool {
	odd := false
	for i--; i >= 0 && s[i] == '\\'; i-- {
		odd = !odd
	}
	return odd
}

// parseElement returns the address that a forwarded-element of RFC 7239 names in
// its one "for" parameter.
func parseElement(element string) (addr netip.Addr, ok bool) {
	for rest := element; ; {
		rest = strings.TrimLeft(rest, " \t")
		if rest != "" && rest[0] != ';' {
			n := tokenLen(rest)
			name := rest[:n]
			if n == 0 || n == len(rest) || rest[n] != '=' {
				return netip.Addr{}, false
			}
			var value string
			if value, rest, ok = cutValue(rest[n+1:]); !ok {
				return netip.Addr{}, false
			}
			if strings.EqualFold(name, "for") {
				if addr.IsValid() {
					return netip.Addr{}, false
				}
				if addr, ok = parseHop(value); !ok {
					return netip.Addr{}, false
				}
			}
			rest = strings.TrimLeft(rest, " \t")
		}
		if rest == "" {
			return addr, addr.IsValid()
		}
		if rest[0] != ';' {
			return netip.Addr{}, false
		}
		rest = rest[1:]
	}
}

// cutValue splits s behind the token or quoted-string that it begins with. The
// value of a quoted-string is what stands between the quotes, as written: no
// address needs a quoted-pair, so one that has any does not parse.
func cutValue(s string) (value, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		n := tokenLen(s)
		return s[:n], s[n:], n > 0
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return s[1:i], s[i+1:], true
		case '\\':
			i++
		}
	}
	return "", "", false
}

// tokenLen returns the length of the token that s begins with. Colons and brackets
// are let through: proxies write addresses without the quotes that they need.
func tokenLen(s string) int {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~:[]", c) >= 0:
		default:
			return i
		}
	}
	return len(s)
}

// parseHop parses an address that may have a port and, in IPv6, brackets and a
// zone. Port and zone are dropped and a mapped address is unmapped.
func parseHop(s string) (netip.Addr, bool) {
	host := s
	switch colon := strings.IndexByte(s, ':'); {
	case s != "" && s[0] == '[':
		end := strings.IndexByte(s, ']')
		if end < 0 || colon < 0 || colon > end {
			return netip.Addr{}, false
		}
		if port := s[end+1:]; port != "" && (port[0] != ':' || !validPort(port[1:])) {
			return netip.Addr{}, false
		}
		host = s[1:end]
	case colon >= 0 && strings.IndexByte(s[colon+1:], ':') < 0:
		if !validPort(s[colon+1:]) {
			return netip.Addr{}, false
		}
		host = s[:colon]
	}
	// The zone is cut from the text because netip would intern it.
	if zone := strings.IndexByte(host, '%'); zone >= 0 && strings.IndexByte(host[:zone], ':') >= 0 {
		host = host[:zone]
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

// validPort reports whether s is a port number or, as RFC 7239 allows, an
// obfuscated one such as _p.
func validPort(s string) bool {
	if s != "" && s[0] == '_' {
		return len(s) > 1
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return 1 <= len(s) && len(s) <= 5
}
