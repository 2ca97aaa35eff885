package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"
)

// burst is a number of equal requests in a row.
type burst struct {
	caller string // address in X-Forwarded-For
	method string
	path   string
	form   url.Values
	note   string
	n      int
}

var bursts = []burst{
	{"203.0.113.7", "POST", "/login", url.Values{"user": {"ann"}, "password": {"guess"}}, "guessing ann's password", 8},
	{"203.0.113.8", "POST", "/login", url.Values{"user": {"ann"}, "password": {"correct horse"}}, "ann, from another address", 2},
	{"203.0.113.8", "POST", "/orders", url.Values{"tenant": {"acme"}, "user": {"ann"}, "item": {"apple"}}, "acme, ann", 5},
	{"203.0.113.8", "POST", "/orders", url.Values{"tenant": {"acme"}, "user": {"bob"}, "item": {"apple"}}, "acme, bob", 2},
	{"203.0.113.9", "POST", "/orders", url.Values{"tenant": {"globex"}, "user": {"ann"}, "item": {"apple"}}, "globex, ann", 2},
	{"203.0.113.9", "POST", "/orders", url.Values{"tenant": {"globex"}, "item": {"apple"}}, "globex, nobody", 1},
	{"203.0.113.7", "GET", "/search", url.Values{"q": {"ap"}}, "one caller", 6},
	{"203.0.113.9", "GET", "/search", url.Values{"q": {"an"}}, "another caller", 6},
}

// drive sends the bursts to the shop at base and prints what became of them.
func drive(ctx context.Context, base string, out io.Writer) error {
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "CALL\tFROM\tWHO\tSENT\tADMITTED\tREFUSED\tRETRY AFTER")
	client := &http.Client{Timeout: 10 * time.Second}
	for _, b := range bursts {
		admitted, refused := 0, map[int]int{}
		retry := "-"
		for range b.n {
			status, after, err := b.send(ctx, client, base)
			if err != nil {
				return err
			}
			switch status {
			case http.StatusTooManyRequests, http.StatusForbidden, http.StatusServiceUnavailable:
				refused[status]++
				if after != "" {
					retry = after + " s"
				}
			default:
				admitted++
			}
		}
		fmt.Fprintf(tw, "%s %s\t%s\t%s\t%d\t%d\t%s\t%s\n", b.method, b.path, b.caller, b.note, b.n, admitted, counts(refused), retry)
	}
	return tw.Flush()
}

// send sends one request and returns the status and the Retry-After of the
// response.
func (b *burst) send(ctx context.Context, client *http.Client, base string) (status int, after string, err error) {
	target, body := base+b.path, io.Reader(nil)
	if b.method == http.MethodGet {
		target += "?" + b.form.Encode()
	} else {
		body = strings.NewReader(b.form.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, b.method, target, body)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Forwarded-For", b.caller)
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header.Get("Retry-After"), errors.Join(err, resp.Body.Close())
}

// counts writes the refusals by status.
func counts(refused map[int]int) string {
	if len(refused) == 0 {
		return "0"
	}
	var parts []string
	for _, status := range []int{http.StatusTooManyRequests, http.StatusForbidden, http.StatusServiceUnavailable} {
		if n := refused[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d (%d)", n, status))
		}
	}
	return strings.Join(parts, ", ")
}
