package main

import (
	"bytes"
	"fmt"
	"go/format"
	"slices"
	"strings"
	"text/template"
)

// pkg is one package of the module.
type pkg struct {
	Number  int
	Name    string
	Area    string
	Imports []*pkg // of lower numbers, so that there is no cycle
	Limited bool
	files   int
}

var areas = []string{"account", "billing", "catalog", "delivery", "identity", "ledger", "media", "search", "stock", "ticket"}

func (m *module) newPackage(n int) *pkg {
	p := m.named(n)
	// A few near neighbours and a few that much of the module imports, as code that
	// grew has it.
	for _, back := range []int{1, 7, 31} {
		if n >= back {
			p.Imports = append(p.Imports, m.named(n-back))
		}
	}
	if shared := n % 13; shared < n-31 {
		p.Imports = append(p.Imports, m.named(shared))
	}
	slices.SortFunc(p.Imports, func(a, b *pkg) int { return strings.Compare(a.Path(), b.Path()) })
	return p
}

func (m *module) named(n int) *pkg {
	area := areas[n%len(areas)]
	return &pkg{
		Number: n, Area: area, Name: fmt.Sprintf("%s%03d", area, n), files: m.files,
		// Spread evenly.
		Limited: (n+1)*m.limited/m.packages > n*m.limited/m.packages,
	}
}

func (p *pkg) dir() string { return "internal/" + p.Area + "/" + p.Name }

// Path is the import path.
func (p *pkg) Path() string { return modulePath + "/" + p.dir() }

// sources returns the files by name.
func (p *pkg) sources() map[string]string {
	files := map[string]string{"service.go": p.render(serviceText, 0)}
	for i := 1; i < p.files; i++ {
		name, text := fmt.Sprintf("store_%d.go", i), storeText
		if i%2 == 0 {
			name, text = fmt.Sprintf("handler_%d.go", i), handlerText
		}
		files[name] = p.render(text, i)
	}
	return files
}

func (p *pkg) render(t *template.Template, file int) string {
	var b bytes.Buffer
	err := t.Execute(&b, struct {
		*pkg
		File int
	}{p, file})
	if err != nil {
		panic(err) // the templates are constants
	}
	src, err := format.Source(b.Bytes())
	if err != nil {
		panic(err)
	}
	return string(src)
}

var serviceText = template.Must(template.New("service").Parse(`// Package {{.Name}} is the {{.Area}} service of part {{.Number}}.
package {{.Name}}

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
{{if .Imports}}
{{range .Imports}}	"{{.Path}}"
{{end}}{{end}})

// ErrClosed is returned by a Service that was closed.
var ErrClosed = errors.New("{{.Name}}: closed")

// Request asks the Service for something.
type Request struct {
	TenantID string
	UserID   string
	Items    []Item
	Deadline time.Time
}

// Item is a part of a Request.
type Item struct {
	SKU      string
	Quantity int
	Price    int64
}

// Response is what the Service answers.
type Response struct {
	ID      string
	Total   int64
	Created time.Time
}

// Summary is what lists show of a Response.
type Summary struct {
	ID    string
	Total int64
}

// Summaries makes lists; goverter can write it.
//
// goverter:converter
type Summaries interface {
	Summarize(source Response) Summary
}

// Orders is what others want of a Service.
type Orders interface {
	Place(ctx context.Context, req *Request) (*Response, error)
	Find(ctx context.Context, id string) (*Response, error)
}

// Service answers requests. It may be used by many goroutines.
type Service struct {
	mu     sync.Mutex
	closed bool
	seen   map[string]*Response
{{- range .Imports}}
	{{.Name}} *{{.Name}}.Service
{{- end}}
}

// New returns a Service.
func New() *Service {
	return &Service{
		seen: map[string]*Response{},
{{- range .Imports}}
		{{.Name}}: {{.Name}}.New(),
{{- end}}
	}
}

// Place takes a request on.
{{- if .Limited}}
//
//ratelimit:max=100 window=1m key=req.TenantID
//ratelimit:max=5 window=1s key=req.UserID algorithm=token-bucket burst=10
{{- end}}
func (s *Service) Place(ctx context.Context, req *Request) (*Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("place: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	res := &Response{ID: fmt.Sprintf("%s-%d", req.TenantID, len(s.seen)), Created: req.Deadline}
	for _, item := range req.Items {
		switch {
		case item.Quantity < 0:
			return nil, fmt.Errorf("place %s: quantity %d", item.SKU, item.Quantity)
		case item.Price > 1000:
			res.Total += int64(item.Quantity) * item.Price * 9 / 10
		default:
			res.Total += int64(item.Quantity) * item.Price
		}
	}
	s.seen[res.ID] = res
	return res, nil
}

// Find looks for what was placed.
{{- if .Limited}}
//
//ratelimit:max=1000 window=1m algorithm=fixed-window
{{- end}}
func (s *Service) Find(ctx context.Context, id string) (*Response, error) {
	s.mu.Lock()
	res, ok := s.seen[id]
	s.mu.Unlock()
	if ok {
		return res, nil
	}
{{- range .Imports}}
	if found, err := s.{{.Name}}.Find(ctx, id); err == nil {
		return &Response{ID: found.ID, Total: found.Total, Created: found.Created}, nil
	}
{{- end}}
	return nil, fmt.Errorf("find %q: not there: %w", id, context.Cause(ctx))
}

// Close lets no more requests in.
func (s *Service) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.closed = true
	return nil
}
`))

var storeText = template.Must(template.New("store").Parse(`package {{.Name}}

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Record{{.File}} is what a Store{{.File}} keeps.
type Record{{.File}} struct {
	Key     string            ` + "`json:\"key\"`" + `
	Value   int64             ` + "`json:\"value\"`" + `
	Labels  map[string]string ` + "`json:\"labels,omitempty\"`" + `
	Written time.Time         ` + "`json:\"written\"`" + `
}

// Store{{.File}} keeps records in the order of their keys.
type Store{{.File}} struct {
	records []Record{{.File}}
}

// Put adds or replaces a record.
func (s *Store{{.File}}) Put(r Record{{.File}}) {
	i, ok := s.search(r.Key)
	if ok {
		s.records[i] = r
		return
	}
	s.records = slices.Insert(s.records, i, r)
}

// Get returns the record of a key.
func (s *Store{{.File}}) Get(key string) (Record{{.File}}, bool) {
	if i, ok := s.search(key); ok {
		return s.records[i], true
	}
	return Record{{.File}}{}, false
}

func (s *Store{{.File}}) search(key string) (int, bool) {
	return slices.BinarySearchFunc(s.records, key, func(r Record{{.File}}, key string) int {
		return cmp.Compare(r.Key, key)
	})
}

// Since returns the records that are not older than t.
func (s *Store{{.File}}) Since(t time.Time) []Record{{.File}} {
	var found []Record{{.File}}
	for _, r := range s.records {
		if !r.Written.Before(t) {
			found = append(found, r)
		}
	}
	return found
}

// Labelled counts the records for each value of a label.
func (s *Store{{.File}}) Labelled(name string) map[string]int {
	counts := make(map[string]int, len(s.records))
	for _, r := range s.records {
		value, ok := r.Labels[name]
		if !ok {
			value = "none"
		}
		counts[strings.ToLower(value)]++
	}
	return counts
}

// Load reads records, one in JSON a line.
func (s *Store{{.File}}) Load(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var record Record{{.File}}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		s.Put(record)
	}
	return lines.Err()
}

// Save writes the records as Load reads them.
func (s *Store{{.File}}) Save(w io.Writer) error {
	enc := json.NewEncoder(w)
	for i := range s.records {
		if err := enc.Encode(&s.records[i]); err != nil {
			return fmt.Errorf("record %q: %w", s.records[i].Key, err)
		}
	}
	return nil
}
`))

var handlerText = template.Must(template.New("handler").Parse(`package {{.Name}}

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Handler{{.File}} serves a Service to HTTP clients.
type Handler{{.File}} struct {
	service *Service
	timeout time.Duration
}

// NewHandler{{.File}} returns a handler that gives each request so much time.
func NewHandler{{.File}}(s *Service, timeout time.Duration) *Handler{{.File}} {
	return &Handler{{.File}}{service: s, timeout: timeout}
}

// ServeHTTP implements http.Handler.
func (h *Handler{{.File}}) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), h.timeout)
	defer cancel()
	var (
		res *Response
		err error
	)
	switch r.Method {
	case http.MethodGet:
		res, err = h.service.Find(ctx, r.PathValue("id"))
	case http.MethodPost:
		res, err = h.place(ctx, w, r)
	default:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	if err != nil {
		h.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Total", strconv.FormatInt(res.Total, 10))
	if err := json.NewEncoder(w).Encode(res); err != nil {
		h.fail(w, err)
	}
}

func (h *Handler{{.File}}) place(ctx context.Context, w http.ResponseWriter, r *http.Request) (*Response, error) {
	var req Request
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		return nil, err
	}
	if req.TenantID == "" {
		return nil, errors.New("no tenant")
	}
	for i := range req.Items {
		if req.Items[i].Quantity == 0 {
			req.Items[i].Quantity = 1
		}
	}
	return h.service.Place(ctx, &req)
}

func (h *Handler{{.File}}) fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, ErrClosed):
		status = http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		status = http.StatusGatewayTimeout
	case errors.As(err, &syntax):
		status = http.StatusBadRequest
	}
	http.Error(w, http.StatusText(status), status)
}
`))
