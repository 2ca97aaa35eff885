package policyfile

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// kind says what values an option takes.
type kind uint8

const (
	units     kind = iota // an integer >= 1 or a word; a duration where time is counted
	integer               // from option.min to option.max
	length                // a duration
	choice                // one of option.words
	text                  // one line
	mentioned             // a list or a text that is read elsewhere
)

// value is what an option is set to: a text, or a number in the units that Policy has.
type value struct {
	n    int64
	s    string
	time bool // it was spelt as a duration
}

// option is one option of a limit. What files, the environment, the schema and the
// documentation know of options comes from the tables below.
type option struct {
	name     string
	kind     kind
	words    []string
	min, max int64
	// inDefaults is set if the option may stand in defaults.
	inDefaults bool
	// waits is set if the option is for limits that calls wait for.
	waits bool
	// aliases are what other tools, or other parts of a directive, call it.
	aliases []string
	doc     string
	example string
	field   field
}

// field is where a policy and a patch have the option.
type field struct {
	get   func(*ratelimit.Policy) value
	set   func(*ratelimit.Policy, value)
	patch func(*ratelimit.Patch, value)
}

func number[T ~int | ~int64 | ~uint8](policy func(*ratelimit.Policy) *T, patch func(*ratelimit.Patch) **T) field {
	return field{
		get: func(p *ratelimit.Policy) value { return value{n: int64(*policy(p))} },
		set: func(p *ratelimit.Policy, v value) { *policy(p) = T(v.n) },
		patch: func(c *ratelimit.Patch, v value) {
			n := T(v.n)
			*patch(c) = &n
		},
	}
}

const (
	wordUnlimited = "unlimited"
	wordBlocked   = "blocked"
	optMax        = "max"
	optOnEmpty    = "on-empty"
	optKeys       = "keys"
	optTimes      = "times"
)

// limitOptions are the options of a limit.
var limitOptions = []option{
	{
		name: optMax, kind: units, words: []string{wordUnlimited, wordBlocked}, min: 1, max: ratelimit.MaxLimit,
		aliases: []string{"limit", "maximum", "rate", "requests", "quota"},
		doc:     "units admitted per window, calls in flight for concurrency, a duration for time-quota; `unlimited` admits every call, `blocked` refuses every call",
		example: "100",
		field:   number(func(p *ratelimit.Policy) *int64 { return &p.Limit }, func(c *ratelimit.Patch) **int64 { return &c.Limit }),
	},
	{
		name: "window", kind: length,
		aliases: []string{"per", "period", "interval", "every"},
		doc:     "length of the window",
		example: "1m",
		field:   number(func(p *ratelimit.Policy) *time.Duration { return &p.Window }, func(c *ratelimit.Patch) **time.Duration { return &c.Window }),
	},
	{
		name: "burst", kind: integer, min: 1, max: ratelimit.MaxLimit,
		aliases: []string{"capacity"},
		doc:     "capacity of a token or leaky bucket",
		example: "200",
		field:   number(func(p *ratelimit.Policy) *int64 { return &p.Burst }, func(c *ratelimit.Patch) **int64 { return &c.Burst }),
	},
	{
		name: "lease", kind: length,
		aliases: []string{"ttl"},
		doc:     "time after which a holder of a concurrency limit that died gives its place back",
		example: "5m",
		field:   number(func(p *ratelimit.Policy) *time.Duration { return &p.Lease }, func(c *ratelimit.Patch) **time.Duration { return &c.Lease }),
	},
	{
		name: "max-wait", kind: length, waits: true,
		aliases: []string{"timeout", "wait"},
		doc:     "longest wait of a call, for limits whose directive says `on-limit=wait`",
		example: "2s",
		field:   number(func(p *ratelimit.Policy) *time.Duration { return &p.MaxWait }, func(c *ratelimit.Patch) **time.Duration { return &c.MaxWait }),
	},
	{
		name: "max-queue", kind: integer, min: 0, max: ratelimit.MaxLimit, waits: true,
		aliases: []string{"queue", "queue-size"},
		doc:     "most calls of one key that wait, for limits whose directive says `on-limit=wait`; 0 is unbounded",
		example: "50",
		field:   number(func(p *ratelimit.Policy) *int { return &p.MaxQueue }, func(c *ratelimit.Patch) **int { return &c.MaxQueue }),
	},
	{
		name: "mode", kind: choice, words: []string{"enforce", "shadow", "off"}, inDefaults: true,
		doc:     "`enforce` refuses; `shadow` decides, counts and reports but admits; `off` does nothing",
		example: "shadow",
		field:   number(func(p *ratelimit.Policy) *ratelimit.Mode { return &p.Mode }, func(c *ratelimit.Patch) **ratelimit.Mode { return &c.Mode }),
	},
	{
		name: optOnEmpty, kind: choice, words: []string{"deny", "skip", "shared"}, inDefaults: true,
		aliases: []string{"on-missing", "on-no-key"},
		doc:     "a call whose key is absent or empty is refused, not limited, or counted with all others like it; in `defaults`, for the limits that have a key",
		example: "skip",
		field:   number(func(p *ratelimit.Policy) *ratelimit.OnEmpty { return &p.OnEmpty }, func(c *ratelimit.Patch) **ratelimit.OnEmpty { return &c.OnEmpty }),
	},
	{
		name: "on-error", kind: choice, words: []string{"local", "allow", "deny"}, inDefaults: true,
		aliases: []string{"on-failure", "on-store-error", "fail"},
		doc:     "if the store fails, a call is decided in the process, admitted, or refused",
		example: "allow",
		field:   number(func(p *ratelimit.Policy) *ratelimit.OnError { return &p.OnError }, func(c *ratelimit.Patch) **ratelimit.OnError { return &c.OnError }),
	},
	{
		name: "message", kind: text, inDefaults: true,
		aliases: []string{"msg", "text", "reason"},
		doc:     "what a refused client is told, one line of at most 512 bytes; `\"\"` is the usual words",
		example: "\"try again tomorrow\"",
		field: field{
			get:   func(p *ratelimit.Policy) value { return value{s: p.Message} },
			set:   func(p *ratelimit.Policy, v value) { p.Message = v.s },
			patch: func(c *ratelimit.Patch, v value) { c.Message = &v.s },
		},
	},
	{
		name: "status", kind: integer, min: 400, max: 599, inDefaults: true,
		aliases: []string{"code", "http-status", "status-code"},
		doc:     "HTTP status of a refusal",
		example: "503",
		field:   number(func(p *ratelimit.Policy) *int { return &p.Status }, func(c *ratelimit.Patch) **int { return &c.Status }),
	},
}

// keysOption is the option of a limit that holds its exceptions.
var keysOption = option{
	name: optKeys, kind: mentioned,
	aliases: []string{"exceptions", "overrides", "except"},
	doc:     "exceptions for some keys; the first that matches counts",
	example: "[{key: acme, max: 1000}]",
}

// withKeys are all options that may stand in a limit.
var withKeys = append(slices.Clip(limitOptions), keysOption)

func names(options []option) []string {
	all := make([]string, len(options))
	for i := range options {
		all[i] = options[i].name
	}
	return all
}

func find(options []option, name string) *option {
	for i := range options {
		if options[i].name == name {
			return &options[i]
		}
	}
	return nil
}

// unknownOption tells what to write instead of a name that none of the options has.
func unknownOption(options []option, name string) string {
	for i := range options {
		if slices.Contains(options[i].aliases, strings.ToLower(name)) {
			return "unknown option " + show(name) + "; did you mean \"" + options[i].name + "\"? (valid: " + strings.Join(names(options), ", ") + ")"
		}
	}
	return "unknown option " + show(name) + suggest(name, names(options))
}

// decode reads a value, or says what is wrong with it.
func (o *option) decode(s string) (v value, wrong string) {
	if s == "" && o.kind != text {
		return v, "the value is missing: write for example " + o.name + ": " + o.example
	}
	switch o.kind {
	case units:
		return o.decodeUnits(s)
	case integer:
		v.n, wrong = o.decodeInteger(s)
	case length:
		var d time.Duration
		d, wrong = duration(s)
		v = value{n: int64(d), time: true}
	case choice:
		i := slices.Index(o.words, s)
		if i < 0 {
			return v, "unknown word " + show(s) + suggest(s, o.words)
		}
		v.n = int64(i)
	case text:
		v.s, wrong = s, wrongText(s)
	}
	return v, wrong
}

func (o *option) decodeInteger(s string) (int64, string) {
	n, ok := decimal(strings.TrimPrefix(s, "-"))
	switch {
	case !ok:
		return 0, integerHint(s)
	case n < o.min || s[0] == '-':
		return 0, "the least that " + o.name + " can be is " + strconv.FormatInt(o.min, 10)
	case n > o.max:
		return 0, "the most is " + strconv.FormatInt(o.max, 10)
	}
	return n, ""
}

// decodeUnits reads a limit. Whether it may be a duration is known where the limit's
// algorithm is.
func (o *option) decodeUnits(s string) (value, string) {
	switch s {
	case wordUnlimited:
		return value{n: ratelimit.Unlimited}, ""
	case wordBlocked:
		return value{n: ratelimit.Blocked}, ""
	}
	if word := diag.Suggest(s, o.words); word != "" {
		return value{}, "unknown word " + show(s) + suggest(s, o.words)
	}
	n, ok := decimal(strings.TrimPrefix(s, "-"))
	switch {
	case ok && (n == 0 || s[0] == '-'):
		return value{}, "a limit is at least 1: write unlimited to admit every call, or blocked to refuse every call"
	case ok && n > o.max:
		return value{}, "the most is " + strconv.FormatInt(o.max, 10)
	case ok:
		return value{n: n}, ""
	}
	d, wrong := duration(s)
	switch {
	case wrong == "":
		return value{n: int64(d / time.Microsecond), time: true}, ""
	case durationPart.MatchString(s):
		return value{}, wrong // it was meant to be one
	}
	return value{}, integerHint(s) + "; unlimited and blocked are possible too, and a duration like 90s for a time-quota"
}

// fits says what is wrong with a value of max for a policy, or "".
func (v value) fits(p *ratelimit.Policy) string {
	word := v.n == ratelimit.Unlimited || v.n == ratelimit.Blocked
	switch quota := p.Algorithm == ratelimit.TimeQuota; {
	case word:
	case quota && !v.time:
		n := strconv.FormatInt(v.n, 10)
		return "a time-quota counts time, and the unit is missing: write " + n + "s, " + n + "m, " + n + "h or " + n + "d"
	case !quota && v.time:
		return "a duration is for a time-quota: write a number of calls"
	}
	return ""
}
