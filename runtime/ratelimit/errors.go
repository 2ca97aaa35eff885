package ratelimit

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Errors that callers branch on, by errors.Is. They arrive wrapped in an
// *Error.
var (
	// ErrLimited is the error of a call that came too early. HTTP: 429.
	ErrLimited = errors.New("rate limit exceeded")
	// ErrNoKey is the error of a call that does not say whose call it is: an
	// address, user or other value that the key needs is absent. HTTP: 403.
	ErrNoKey = errors.New("no key to count the call under")
	// ErrCost is the error of a call whose cost is negative or above the policy's
	// capacity, so that it can never be admitted, except by an Unlimited one. HTTP: 400.
	ErrCost = errors.New("cost can never be admitted")
	// ErrStore is the error of a call that could not be decided because the store
	// of the counters failed. HTTP: 503.
	ErrStore = errors.New("rate limit store unavailable")
)

// Error is the error of a call that was not let through.
type Error struct {
	// Kind is ErrLimited, ErrNoKey, ErrCost or ErrStore.
	Kind error
	// Decision tells what the refusing policy said. If Kind is not ErrLimited,
	// nothing was counted, and only Policy and Limit are known; RetryAfter is Never
	// for ErrNoKey and ErrCost, and 0 for ErrStore.
	Decision Decision
	// Method is the limited method, like "pay.Service.PlaceOrder".
	Method string
	// File is the base name of the file that holds the directive.
	File string
	// Directive is the directive's text, like "max=5 window=1m key=ip".
	Directive string
	// Message is the refusing policy's Message, for the client.
	Message string
	// Status is the refusing policy's Status, the HTTP status of the refusal; 0 for
	// the usual one of Kind.
	Status int
	// Err is the cause, or nil.
	Err error
}

// Error says what was denied, by which directive, and when to try again.
func (e *Error) Error() string {
	b := make([]byte, 0, 128)
	b = append(b, "denied by "...)
	b = append(b, e.Method...)
	if e.File != "" {
		b = append(b, " ("...)
		b = append(b, e.File...)
		b = append(b, ')')
	}
	if e.Directive != "" {
		b = append(b, ' ')
		b = strconv.AppendQuote(b, e.Directive)
	}
	switch {
	case e.Kind == ErrLimited && e.Decision.RetryAfter == Never:
		b = append(b, ", never admitted"...)
	case e.Kind == ErrLimited:
		b = append(b, ", retry in "...)
		b = append(b, roundUp(e.Decision.RetryAfter).String()...)
	case e.Kind != nil:
		b = append(b, ": "...)
		b = append(b, e.Kind.Error()...)
	}
	if e.Err != nil {
		b = fmt.Appendf(b, ": %v", e.Err)
	}
	return string(b)
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Is reports whether target is the kind of e, without the allocation of Unwrap.
func (e *Error) Is(target error) bool { return target == e.Kind }

// roundUp makes d short to read and never promises an earlier time.
func roundUp(d time.Duration) time.Duration {
	unit := time.Microsecond
	switch {
	case d > 10*time.Second:
		unit = time.Second
	case d > time.Second:
		unit = 100 * time.Millisecond
	case d > time.Millisecond:
		unit = time.Millisecond
	}
	if r := d % unit; r != 0 && d <= Never-unit {
		d += unit - r
	}
	return d
}
