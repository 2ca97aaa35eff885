package httplimit

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync/atomic"
)

// Proxies finds the caller behind proxies by the rule of the package comment. A
// Middleware has one of its own; Proxies is for other transports, so that one rule
// holds for all of them. It may be used by many goroutines at once. A nil Proxies
// trusts nobody.
type Proxies struct {
	trusted   []netip.Prefix
	header    string // canonical
	fallbacks atomic.Uint64
}

// NewProxies returns the Proxies that believe what the trusted networks write into
// header; see WithTrustedProxies and WithHeader. The error is about an empty header
// or a network that is not valid.
func NewProxies(header string, trusted ...netip.Prefix) (*Proxies, error) {
	if header == "" {
		return nil, errors.New("the name of the proxies' header is empty")
	}
	p := &Proxies{header: http.CanonicalHeaderKey(header)}
	for _, network := range trusted {
		unmapped, err := unmapPrefix(network)
		if err != nil {
			return nil, err
		}
		p.trusted = append(p.trusted, unmapped)
	}
	return p, nil
}

// unmapPrefix spells a network of mapped addresses as the IPv4 network it is,
// since addresses are unmapped before they are compared.
func unmapPrefix(p netip.Prefix) (netip.Prefix, error) {
	unmapped := p
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		unmapped = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if !unmapped.IsValid() || unmapped.Addr().Is4In6() {
		return p, fmt.Errorf("trusted proxies: %v is not a valid network", p)
	}
	return unmapped.Masked(), nil
}

// Caller returns the address of who is calling over a connection from peer. If peer
// is a trusted proxy, values is called once with the canonical name of the header,
// and returns its lines, the first one first. The address is unmapped and has no
// zone. It is the zero Addr if peer is.
func (p *Proxies) Caller(peer netip.Addr, values func(header string) []string) netip.Addr {
	peer = peer.Unmap().WithZone("")
	if p == nil || !p.trusts(peer) {
		return peer
	}
	if addr, ok := p.forwardedFor(values(p.header)); ok {
		return addr
	}
	p.fallbacks.Add(1)
	return peer
}

// Fallbacks returns how often a trusted proxy was itself taken for the caller; see
// Middleware.Fallbacks.
func (p *Proxies) Fallbacks() uint64 {
	if p == nil {
		return 0
	}
	return p.fallbacks.Load()
}

func (p *Proxies) trusts(addr netip.Addr) bool {
	for _, network := range p.trusted {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// PeerAddr returns the address that s begins with, such as the RemoteAddr of an
// http.Request: a port, brackets and a zone may follow it and are dropped, and a
// mapped address is unmapped. It is the zero Addr if s is anything else.
func PeerAddr(s string) netip.Addr {
	addr, _ := parseHop(s)
	return addr
}
