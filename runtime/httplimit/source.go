package httplimit

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// caller is a request as limits see it. It is the source of its own headers, so
// that both are one object.
type caller struct {
	ratelimit.Request
	r *http.Request // as the wrapped handler gets it
}

// Header returns the first field of that name. The Host field is not among the
// headers of net/http.
func (c *caller) Header(name string) string {
	if name == "Host" {
		return c.r.Host
	}
	return c.r.Header.Get(name)
}

// Query returns what c.r.URL.Query().Get(name) does, without reading more of the
// query than it needs.
func (c *caller) Query(name string) string {
	for rest := c.r.URL.RawQuery; rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		if strings.Contains(pair, ";") {
			continue // no separator, and no character of a name or value either
		}
		key, value, _ := strings.Cut(pair, "=")
		if key != name {
			decoded, err := url.QueryUnescape(key)
			if err != nil || decoded != name {
				continue
			}
		} else if strings.ContainsAny(key, "%+") {
			continue // stands for another name
		}
		if decoded, err := url.QueryUnescape(value); err == nil && pair != "" {
			return decoded
		}
	}
	return ""
}

// Cookie returns the value of the first cookie of that name.
func (c *caller) Cookie(name string) string {
	cookie, err := c.r.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Route returns the pattern by which a ServeMux behind the middleware has chosen
// the handler. A mux notes it in the request that it is given: it is lost if
// another middleware in between hands on a copy.
func (c *caller) Route() string { return c.r.Pattern }
