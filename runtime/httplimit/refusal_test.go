package httplimit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/httplimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// refusal makes the error of a limiter, with something secret in every text.
func refusal(kind error, retryAfter time.Duration) *ratelimit.Error {
	return &ratelimit.Error{
		Kind: kind,
		Decision: ratelimit.Decision{
			Policy: "secret.example/pay.Service.PlaceOrder", Limit: 5,
			RetryAfter: retryAfter, ResetAt: time.Now().Add(time.Hour),
		},
		Method:    "secret.Service.PlaceOrder",
		File:      "secret.go",
		Directive: "max=5 window=1m key=secret",
		Err:       errors.New("redis 127.0.0.1:6379: secret"),
	}
}

func TestWriteErrorAnswersEachKind(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err        error
		status     int
		retryAfter []string
	}{
		"limited":              {refusal(ratelimit.ErrLimited, 11*time.Second+1), 429, []string{"12"}},
		"limited, wrapped":     {fmt.Errorf("place order: %w", refusal(ratelimit.ErrLimited, time.Second)), 429, []string{"1"}},
		"limited, joined":      {errors.Join(errors.New("x"), refusal(ratelimit.ErrLimited, time.Second)), 429, []string{"1"}},
		"limited, wait of 0":   {refusal(ratelimit.ErrLimited, 0), 429, []string{"1"}},
		"limited, clock steps": {refusal(ratelimit.ErrLimited, -time.Hour), 429, []string{"1"}},
		"limited for good":     {refusal(ratelimit.ErrLimited, ratelimit.Never), 429, nil},
		"limited for ages":     {refusal(ratelimit.ErrLimited, ratelimit.Never-1), 429, []string{"9223372037"}},
		"no key":               {refusal(ratelimit.ErrNoKey, 0), 403, nil},
		"cost":                 {refusal(ratelimit.ErrCost, ratelimit.Never), 400, nil},
		"store":                {refusal(ratelimit.ErrStore, 0), 503, []string{"1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			w.Header().Set("Content-Length", "3")
			w.Header().Add("Retry-After", "77")
			w.Header().Add("Retry-After", "78")
			if !httplimit.WriteError(w, httptest.NewRequest(http.MethodPost, "/", nil), tt.err) {
				t.Fatal("WriteError returns false")
			}
			res := w.Result()
			if res.StatusCode != tt.status {
				t.Errorf("status %d, want %d", res.StatusCode, tt.status)
			}
			if got := res.Header["Retry-After"]; fmt.Sprint(got) != fmt.Sprint(tt.retryAfter) {
				t.Errorf("Retry-After %q, want %q", got, tt.retryAfter)
			}
			for name, want := range map[string]string{
				"Cache-Control": "no-store", "Content-Type": "application/problem+json", "Content-Length": "",
			} {
				if got := res.Header.Get(name); got != want {
					t.Errorf("%s %q, want %q", name, got, want)
				}
			}
			var problem struct {
				Title, Detail string
				Status        int
			}
			if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil {
				t.Fatalf("body %q: %v", w.Body, err)
			}
			if problem.Status != tt.status || problem.Title != http.StatusText(tt.status) || problem.Detail == "" {
				t.Errorf("problem %+v, want status %d, its text, and a detail", problem, tt.status)
			}
			if mentions := strings.Contains(problem.Detail, "Retry-After"); tt.status == 429 && mentions != (tt.retryAfter != nil) {
				t.Errorf("detail %q, with Retry-After %q", problem.Detail, tt.retryAfter)
			}
			for _, secret := range []string{"secret", "PlaceOrder", "max=5", "redis"} {
				if text := fmt.Sprint(res.Header, w.Body); strings.Contains(text, secret) {
					t.Errorf("the response discloses %q: %s", secret, text)
				}
			}
		})
	}
}

func TestWriteErrorLeavesOtherErrorsAlone(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errors.New("x"), ratelimit.ErrLimited, &ratelimit.Error{}, &ratelimit.Error{Kind: errors.New("x")}} {
		w := httptest.NewRecorder()
		if httplimit.WriteError(w, httptest.NewRequest(http.MethodGet, "/", nil), err) {
			t.Errorf("WriteError takes %#v for a limiter's error", err)
		}
		if len(w.Header()) != 0 || w.Body.Len() != 0 {
			t.Errorf("%v: response touched: %v %q", err, w.Header(), w.Body)
		}
	}
}

func TestWriteErrorHasNoBodyForHead(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	httplimit.WriteError(w, httptest.NewRequest(http.MethodHead, "/", nil), refusal(ratelimit.ErrLimited, time.Second))
	if w.Code != 429 || w.Body.Len() != 0 {
		t.Errorf("status %d, body %q; want 429 and none", w.Code, w.Body)
	}
}

func TestHI11RetryAfterIsAnIntegerThatIsLongEnough(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(11, 39879))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for i := range 100_000 {
		wait := time.Duration(rng.Int64N(int64(1) << (1 + rng.IntN(60))))
		switch i % 4 {
		case 0:
			wait = wait / time.Second * time.Second // the exact boundary
		case 1:
			wait = -wait
		}
		w := httptest.NewRecorder()
		httplimit.WriteError(w, r, &ratelimit.Error{Kind: ratelimit.ErrLimited, Decision: ratelimit.Decision{RetryAfter: wait}})
		values := w.Header()["Retry-After"]
		if len(values) != 1 {
			t.Fatalf("wait %v: Retry-After %q, want one value", wait, values)
		}
		s, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil || s < 1 {
			t.Fatalf("wait %v: Retry-After %q, want an integer >= 1", wait, values[0])
		}
		if told := time.Duration(s) * time.Second; told < wait || s > 1 && told-wait >= time.Second {
			t.Fatalf("wait %v: Retry-After %d, want the least that is not shorter", wait, s)
		}
	}
}

func TestHandlerFuncAnswersErrors(t *testing.T) {
	t.Parallel()
	fail := func(err error) httplimit.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) error {
			if err == nil {
				_, err := w.Write([]byte("fine"))
				return err
			}
			return err
		}
	}
	for name, tt := range map[string]struct {
		handler http.Handler
		status  int
		body    string // part of it
	}{
		"none":                {fail(nil), 200, "fine"},
		"limiter's":           {fail(refusal(ratelimit.ErrLimited, time.Second)), 429, "Too Many Requests"},
		"other":               {fail(errors.New("secret")), 500, "Internal Server Error\n"},
		"limiter's, OnError":  {fail(refusal(ratelimit.ErrStore, 0)).OnError(teapot), 503, "Service Unavailable"},
		"other, with OnError": {fail(errors.New("secret")).OnError(teapot), 418, "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			tt.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.body) {
				t.Errorf("%d %q, want %d %q", w.Code, w.Body, tt.status, tt.body)
			}
			if tt.status == 500 && strings.Contains(w.Body.String(), "secret") {
				t.Errorf("the response discloses the error: %q", w.Body)
			}
		})
	}
}

func teapot(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusTeapot)
}

func TestARefusalInTheWordsOfItsPolicy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind    error
		status  int
		message string
		want    int
		body    string
	}{
		{ratelimit.ErrLimited, 420, "slow <down> \"now\"\n", 420, `{"status":420,"detail":"slow \u003cdown\u003e \"now\"\n"}`},
		{ratelimit.ErrLimited, 503, "", 503, `{"title":"Service Unavailable","status":503,"detail":"The rate limit does not admit this request."}`},
		{ratelimit.ErrLimited, 0, "later", 429, `{"title":"Too Many Requests","status":429,"detail":"later"}`},
		{ratelimit.ErrLimited, 99, "later", 429, `{"title":"Too Many Requests","status":429,"detail":"later"}`},
		{ratelimit.ErrNoKey, 420, "slow", 403, `{"title":"Forbidden","status":403,"detail":"The request does not say who is calling."}`},
	} {
		w := httptest.NewRecorder()
		err := &ratelimit.Error{Kind: c.kind, Status: c.status, Message: c.message, Decision: ratelimit.Decision{RetryAfter: time.Second}}
		if !httplimit.WriteError(w, httptest.NewRequest("GET", "/", nil), err) {
			t.Fatal("not taken for a refusal")
		}
		if got := strings.TrimSuffix(w.Body.String(), "\n"); w.Code != c.want || got != c.body {
			t.Errorf("%d %q: %d %s, want %d %s", c.status, c.message, w.Code, got, c.want, c.body)
		}
	}
}
