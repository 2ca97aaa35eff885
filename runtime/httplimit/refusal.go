package httplimit

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// HandlerFunc is a handler that returns what went wrong instead of answering it.
// It must not have written to the response if it returns an error.
type HandlerFunc func(http.ResponseWriter, *http.Request) error

// ServeHTTP calls f and answers a limiter's error as WriteError does. Any other
// error is answered with 500 and without its text; OnError sees it.
func (f HandlerFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.OnError(internalServerError).ServeHTTP(w, r)
}

// OnError returns a handler that calls f, answers a limiter's error as WriteError
// does, and leaves every other error to other.
func (f HandlerFunc) OnError(other func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := f(w, r); err != nil && !WriteError(w, r, err) {
			other(w, r, err)
		}
	})
}

func internalServerError(w http.ResponseWriter, _ *http.Request, _ error) {
	http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
}

// WriteError answers r if err is or wraps a limiter's error, and returns false
// without touching w if it does not. It must come before anything is written to w.
//
//	ErrLimited  429  with Retry-After, unless waiting never helps
//	ErrNoKey    403
//	ErrCost     400
//	ErrStore    503  with Retry-After: 1
//
// A limit whose policy has a Status or Message of its own is answered with those
// in place of 429 and the usual text.
//
// Retry-After is in seconds, rounded up, at least 1. The response is not to be
// cached (Cache-Control: no-store) and has a fixed body of type
// application/problem+json (RFC 9457). Neither body nor headers hold anything else of
// err but the wait: no key, policy, method or file is disclosed to the client.
func WriteError(w http.ResponseWriter, r *http.Request, err error) bool {
	var e *ratelimit.Error
	if !errors.As(err, &e) {
		return false
	}
	p, wait := problemOf(e)
	if p == nil {
		return false
	}
	if e.Kind == ratelimit.ErrLimited && (e.Status != 0 || e.Message != "") {
		p = p.inWordsOf(e)
	}
	h := w.Header()
	h.Del("Content-Length")
	h.Del("Retry-After")
	if wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(seconds(wait), 10))
	}
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/problem+json")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.status)
	if r.Method != http.MethodHead {
		// The client may be gone; there is nobody left to tell.
		_, _ = w.Write([]byte(p.body))
	}
	return true
}

type problem struct {
	status int
	body   string
}

// inWordsOf returns p with the status and message that the policy of e asks for.
func (p *problem) inWordsOf(e *ratelimit.Error) *problem {
	own := struct {
		Title  string `json:"title,omitempty"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{Status: p.status, Detail: e.Message}
	if e.Status >= 400 && e.Status <= 599 {
		own.Status = e.Status
	}
	own.Title = http.StatusText(own.Status)
	if own.Detail == "" {
		own.Detail = "The rate limit does not admit this request."
	}
	body, err := json.Marshal(own)
	if err != nil {
		return p // strings and integers always marshal
	}
	return &problem{own.Status, string(body) + "\n"}
}

var (
	tooManyRequests = &problem{http.StatusTooManyRequests,
		`{"title":"Too Many Requests","status":429,"detail":"The rate limit is used up. The Retry-After header says when to try again."}` + "\n"}
	neverAdmitted = &problem{http.StatusTooManyRequests,
		`{"title":"Too Many Requests","status":429,"detail":"The rate limit does not admit this request, and trying again will not help."}` + "\n"}
	forbidden = &problem{http.StatusForbidden,
		`{"title":"Forbidden","status":403,"detail":"The request does not say who is calling."}` + "\n"}
	badRequest = &problem{http.StatusBadRequest,
		`{"title":"Bad Request","status":400,"detail":"The request asks for more than the rate limit can ever admit."}` + "\n"}
	serviceUnavailable = &problem{http.StatusServiceUnavailable,
		`{"title":"Service Unavailable","status":503,"detail":"The rate limit could not be checked. Try again shortly."}` + "\n"}
)

// problemOf returns how e is answered, nil if it is of no known kind, and the wait
// that the client is told, 0 for none.
func problemOf(e *ratelimit.Error) (*problem, time.Duration) {
	switch e.Kind {
	case ratelimit.ErrLimited:
		if e.Decision.RetryAfter == ratelimit.Never {
			return neverAdmitted, 0
		}
		return tooManyRequests, max(e.Decision.RetryAfter, 1)
	case ratelimit.ErrNoKey:
		return forbidden, 0
	case ratelimit.ErrCost:
		return badRequest, 0
	case ratelimit.ErrStore:
		return serviceUnavailable, time.Second
	}
	return nil, 0
}

// seconds rounds d up, because a client that waits too short is refused again.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}
