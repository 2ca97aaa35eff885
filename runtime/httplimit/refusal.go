package httplimit

import (
	"net/http"

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
// See ratelimit.RefusalOf for the status, headers and body.
func WriteError(w http.ResponseWriter, r *http.Request, err error) bool {
	if _, ok := ratelimit.RefusalOf(err); !ok {
		return false
	}
	if r.Method == http.MethodHead {
		w = bodiless{w}
	}
	ratelimit.WriteRefusal(w, err)
	return true
}

// bodiless is a response that has no body, whoever serves it.
type bodiless struct{ http.ResponseWriter }

func (bodiless) Write(body []byte) (int, error) { return len(body), nil }
