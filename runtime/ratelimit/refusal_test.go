package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRefusalOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err    error
		status int
		retry  string
		own    bool
	}{
		{&Error{Kind: ErrLimited, Decision: Decision{RetryAfter: 1500 * time.Millisecond}}, 429, "2", true},
		{&Error{Kind: ErrLimited}, 429, "1", true},
		{&Error{Kind: ErrLimited, Decision: Decision{RetryAfter: Never}}, 429, "", true},
		{&Error{Kind: ErrLimited, Status: 420, Message: "a\"b\n"}, 420, "1", true},
		{&Error{Kind: ErrLimited, Status: 999}, 429, "1", true},
		{fmt.Errorf("x: %w", &Error{Kind: ErrNoKey}), 403, "", true},
		{&Error{Kind: ErrCost}, 400, "", true},
		{&Error{Kind: ErrStore, Err: errors.New("127.0.0.1:6379 refused")}, 503, "1", true},
		{context.Canceled, 503, "1", false},
		{&Error{Kind: errors.New("unknown")}, 503, "1", false},
	} {
		if _, ok := RefusalOf(tc.err); ok != tc.own {
			t.Errorf("%v: is one of ours: %v", tc.err, ok)
		}
		w := httptest.NewRecorder()
		w.Header().Set("Content-Length", "5")
		w.Header().Set("Retry-After", "99")
		WriteRefusal(w, tc.err)
		if w.Code != tc.status || w.Header().Get("Retry-After") != tc.retry || w.Header().Get("Content-Length") != "" {
			t.Errorf("%v: got %d, %v", tc.err, w.Code, w.Header())
		}
		if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%v: got %v", tc.err, w.Header())
		}
		if body := fmt.Sprintf(`"status":%d,`, tc.status); !strings.Contains(w.Body.String(), body) {
			t.Errorf("%v: the body is %s", tc.err, w.Body)
		}
	}
}
