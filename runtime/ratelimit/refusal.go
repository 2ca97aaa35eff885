package ratelimit

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// Refusal is how a limiter's error is answered over HTTP, as plain data that any
// framework can send. Neither Header nor Body hold anything of the error but the
// wait: no key, policy, method or file is disclosed to the client.
type Refusal struct {
	// Status is the HTTP status.
	Status int
	// Header holds the fields to be set. Their names are in canonical form.
	Header []HeaderField
	// Body is of type application/problem+json (RFC 9457).
	Body string
}

// HeaderField is a field of an HTTP header.
type HeaderField struct{ Name, Value string }

// RefusalOf returns how err is answered if it is or wraps an *Error, and whether it
// does.
//
//	ErrLimited  429  with Retry-After, unless waiting never helps
//	ErrNoKey    403
//	ErrCost     400
//	ErrStore    503  with Retry-After: 1
//
// A limit whose policy has a Status or Message of its own is answered with those
// in place of 429 and the usual text. Retry-After is in seconds, rounded up, at
// least 1. The response is not to be cached.
func RefusalOf(err error) (Refusal, bool) {
	var e *Error
	if !errors.As(err, &e) {
		return Refusal{}, false
	}
	p, wait := problemOf(e)
	if p == nil {
		return Refusal{}, false
	}
	r := Refusal{Status: p.status, Body: p.body}
	if e.Kind == ErrLimited && (e.Status != 0 || e.Message != "") {
		r.Status, r.Body = inWordsOf(e)
	}
	if wait > 0 {
		r.Header = append(r.Header, HeaderField{"Retry-After", strconv.FormatInt(seconds(wait), 10)})
	}
	r.Header = append(r.Header,
		HeaderField{"Cache-Control", "no-store"},
		HeaderField{"Content-Type", "application/problem+json"},
		HeaderField{"X-Content-Type-Options", "nosniff"},
	)
	return r, true
}

// WriteRefusal answers a call that was not admitted because of err on w, an
// http.ResponseWriter to which nothing has been written. See RefusalOf for how; any
// other error, such as that of a context that is done, is answered with 503.
func WriteRefusal[H ~map[string][]string](w interface {
	Header() H
	WriteHeader(status int)
	Write(body []byte) (int, error)
}, err error) {
	h := w.Header()
	delete(h, "Content-Length")
	delete(h, "Retry-After")
	r := Refuse(err)
	for _, f := range r.Header {
		h[f.Name] = []string{f.Value}
	}
	w.WriteHeader(r.Status)
	// The client may be gone; there is nobody left to tell.
	_, _ = w.Write([]byte(r.Body))
}

// Refuse is RefusalOf for a call that was not admitted, whatever the error: one that
// is no limiter's, such as that of a context that is done, is answered with 503.
func Refuse(err error) Refusal {
	r, ok := RefusalOf(err)
	if !ok {
		r, _ = RefusalOf(&Error{Kind: ErrStore})
	}
	return r
}

type problem struct {
	status int
	body   string
}

// inWordsOf returns the status and body that the policy of e asks for.
func inWordsOf(e *Error) (status int, body string) {
	own := struct {
		Title  string `json:"title,omitempty"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{Status: tooManyRequests.status, Detail: e.Message}
	if e.Status >= 400 && e.Status <= 599 {
		own.Status = e.Status
	}
	own.Title = titles[own.Status]
	if own.Detail == "" {
		own.Detail = "The rate limit does not admit this request."
	}
	text, err := json.Marshal(own)
	if err != nil {
		return tooManyRequests.status, tooManyRequests.body // strings and integers always marshal
	}
	return own.Status, string(text) + "\n"
}

// titles are the phrases of the statuses that refusals are likely to have. A title
// may be left out.
var titles = map[int]string{
	400: "Bad Request",
	401: "Unauthorized",
	402: "Payment Required",
	403: "Forbidden",
	404: "Not Found",
	409: "Conflict",
	423: "Locked",
	425: "Too Early",
	429: "Too Many Requests",
	500: "Internal Server Error",
	502: "Bad Gateway",
	503: "Service Unavailable",
	504: "Gateway Timeout",
}

var (
	tooManyRequests = &problem{429,
		`{"title":"Too Many Requests","status":429,"detail":"The rate limit is used up. The Retry-After header says when to try again."}` + "\n"}
	neverAdmitted = &problem{429,
		`{"title":"Too Many Requests","status":429,"detail":"The rate limit does not admit this request, and trying again will not help."}` + "\n"}
	forbidden = &problem{403,
		`{"title":"Forbidden","status":403,"detail":"The request does not say who is calling."}` + "\n"}
	badRequest = &problem{400,
		`{"title":"Bad Request","status":400,"detail":"The request asks for more than the rate limit can ever admit."}` + "\n"}
	serviceUnavailable = &problem{503,
		`{"title":"Service Unavailable","status":503,"detail":"The rate limit could not be checked. Try again shortly."}` + "\n"}
)

// problemOf returns how e is answered, nil if it is of no known kind, and the wait
// that the client is told, 0 for none.
func problemOf(e *Error) (*problem, time.Duration) {
	switch e.Kind {
	case ErrLimited:
		if e.Decision.RetryAfter == Never {
			return neverAdmitted, 0
		}
		return tooManyRequests, max(e.Decision.RetryAfter, 1)
	case ErrNoKey:
		return forbidden, 0
	case ErrCost:
		return badRequest, 0
	case ErrStore:
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
