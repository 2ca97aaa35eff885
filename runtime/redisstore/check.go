package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/internal/rediskey"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Severity says how much a Finding matters.
type Severity string

const (
	// Problem is what keeps the store from working.
	Problem Severity = "problem"
	// Warning is what it works with, but not as one may expect.
	Warning Severity = "warning"
)

// Finding is what Check found out about one server.
type Finding struct {
	// Server is the address, or of all servers as errors name them.
	Server   string
	Severity Severity
	// What is the case, and Remedy is what to do.
	What, Remedy string
}

// String returns all of it in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s; %s", f.Server, f.Severity, f.What, f.Remedy)
}

// Report is what Check found.
type Report struct {
	// Servers are those that answered, by address: of a cluster its masters, and of a
	// ring all.
	Servers []ServerReport
	// Findings are sorted by server, problems first.
	Findings []Finding
}

// ServerReport is about one server. What it did not tell is zero.
type ServerReport struct {
	Server string
	// Software is "redis" or "valkey", and Version that of it.
	Software, Version string
	// Role is "master" or "replica".
	Role string
	// Cluster is set if it is a node of a cluster.
	Cluster bool
	// Memory is the server's maxmemory in bytes, 0 for no bound, and Eviction its
	// maxmemory-policy.
	Memory   int64
	Eviction string
	// Ahead is by how much its clock is ahead of that of this machine, half a round trip
	// more or less.
	Ahead time.Duration
}

// oldestRedis is the oldest version that knows what the script uses.
var oldestRedis = [2]int{6, 2}

// clockTolerance is how far clocks may be apart without a warning.
const clockTolerance = time.Second

// Check looks whether the servers are fit to keep counters, for a service to call when
// it starts, or an operator. It asks for their version, their role, what they do when
// memory is full, and their clock, and tries each command that the store needs, with a
// key of its own under the prefix that lives for a second. A server that has no memory left,
// or refuses to write for another reason, is a Problem, too. The error is nil if there is
// no Problem; else it names them all. The timeouts are those of the client.
func (s *Store) Check(ctx context.Context) (Report, error) {
	return s.check(ctx, time.Now)
}

func (s *Store) check(ctx context.Context, now func() time.Time) (Report, error) {
	if err := s.ready(ctx); err != nil {
		return Report{}, err
	}
	c := checkup{store: s, now: now}
	var err error
	switch client := s.client.(type) {
	case *redis.Client:
		_ = c.server(ctx, client)
	case *redis.ClusterClient:
		err = client.ForEachMaster(ctx, c.server)
	case *redis.Ring:
		err = client.ForEachShard(ctx, c.server)
	}
	if err != nil {
		c.cannot(s.name, err)
	}
	if !slices.ContainsFunc(c.report.Findings, isProblem) {
		c.decides(ctx)
	}
	slices.SortFunc(c.report.Servers, func(a, b ServerReport) int { return cmp.Compare(a.Server, b.Server) })
	slices.SortStableFunc(c.report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Server, b.Server))
	})
	var problems []error
	for _, f := range c.report.Findings {
		if isProblem(f) {
			problems = append(problems, errors.New(f.String()))
		}
	}
	return c.report, errors.Join(problems...)
}

func isProblem(f Finding) bool { return f.Severity == Problem }

// checkup is a Check under way.
type checkup struct {
	store *Store
	now   func() time.Time

	mu     sync.Mutex // of the report; servers of a cluster are looked at in parallel
	report Report
}

func (c *checkup) find(server string, severity Severity, what, remedy string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Findings = append(c.report.Findings, Finding{server, severity, what, remedy})
}

// cannot is find of an error that says that nothing can be asked.
func (c *checkup) cannot(server string, err error) {
	remedy := "start it, or correct the address"
	switch code(err) {
	case "NOAUTH", "WRONGPASS":
		remedy = "set Username and Password of the client"
	case "NOPERM":
		remedy = "give the user the right to it by ACL SETUSER"
	case "LOADING", "BUSY":
		remedy = "wait, or look what it is doing"
	}
	c.find(server, Problem, err.Error(), remedy)
}

// server looks at one server. It returns nil, so that the others are looked at, too.
func (c *checkup) server(ctx context.Context, client *redis.Client) error {
	addr := client.Options().Addr
	r := ServerReport{Server: addr}
	before := c.now()
	told, err := client.Time(ctx).Result()
	if err != nil && code(err) != "NOPERM" {
		c.cannot(addr, err)
		return nil
	}
	if err == nil {
		after := c.now()
		r.Ahead = told.Sub(before.Add(after.Sub(before) / 2)).Round(time.Microsecond)
		if ahead := r.Ahead.Abs() - after.Sub(before); ahead > clockTolerance {
			direction := "ahead of"
			if r.Ahead < 0 {
				direction = "behind"
			}
			c.find(addr, Warning, fmt.Sprintf("its clock is %v %s that of this machine", r.Ahead.Abs().Round(time.Millisecond), direction),
				"set both by NTP: the limits go by the server's clock, windows on the calendar as well")
		}
	}
	if info, err := client.Info(ctx, "everything").Result(); err != nil {
		c.find(addr, Warning, "version, role and eviction are not known: "+err.Error(), "give the user the right to INFO by ACL SETUSER, or look yourself")
	} else {
		c.info(&r, info)
	}
	c.rights(ctx, client, r.Role)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Servers = append(c.report.Servers, r)
	return nil
}

// info reads what INFO says.
func (c *checkup) info(r *ServerReport, info string) {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	r.Software, r.Version = "redis", fields["redis_version"]
	if v := fields["valkey_version"]; v != "" {
		r.Software, r.Version = "valkey", v
	} else if isOlder(r.Version, oldestRedis) {
		c.find(r.Server, Problem, "it is Redis "+r.Version, fmt.Sprintf("use Redis %d.%d or newer, or Valkey", oldestRedis[0], oldestRedis[1]))
	}
	r.Role = fields["role"]
	if r.Role == "slave" {
		r.Role = "replica"
		master := fields["master_host"] + ":" + fields["master_port"]
		c.find(r.Server, Problem, "it is a replica of "+master, "connect to that, or by Sentinel (FailoverOptions of the client)")
	}
	r.Cluster = fields["cluster_enabled"] == "1"
	if _, single := c.store.client.(*redis.Client); single && r.Cluster {
		c.find(r.Server, Problem, "it is a node of a cluster, and the client knows only this one", "use redis.NewClusterClient, or IsClusterMode of redisstore.NewClient")
	}
	r.Memory, _ = strconv.ParseInt(fields["maxmemory"], 10, 64)
	r.Eviction = fields["maxmemory_policy"]
	if r.Memory > 0 && r.Eviction != "" && r.Eviction != "noeviction" {
		c.find(r.Server, Warning, fmt.Sprintf("maxmemory-policy %s removes counters when %d bytes are in use, and what they have counted is forgotten", r.Eviction, r.Memory),
			"set maxmemory-policy noeviction, on a server for the limits alone: then on-error decides when memory is full")
	}
	if fields["loading"] == "1" {
		c.find(r.Server, Problem, "it is loading its data", "wait until it is ready")
	}
}

// isOlder reports whether a version is known and older than the least.
func isOlder(version string, least [2]int) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	var n [2]int
	for i, digits := range []string{major, cmp.Or(minor, "0")} {
		var err error
		if n[i], err = strconv.Atoi(digits); err != nil {
			return false
		}
	}
	return n[0] < least[0] || n[0] == least[0] && n[1] < least[1]
}

// noWrites is what to do about a server that writes nothing, by what it says.
var noWrites = map[string]string{
	"OOM":        "raise maxmemory, or see what fills it",
	"NOREPLICAS": "bring its replicas back, or lower min-replicas-to-write",
	"MISCONF":    "see in its log why it cannot save, or set stop-writes-on-bgsave-error no",
	"READONLY":   "connect to its master, or by Sentinel (FailoverOptions of the client)",
}

// own returns a key of no policy, as there is no form of its name, in a slot of the
// server's, if one of some has one.
func (c *checkup) own(ctx context.Context, client *redis.Client) string {
	const tries = 200 // which miss one of 20 masters once in 28,000 times
	k := rediskey.Key{Prefix: c.store.prefix, Form: "check"}
	probe := []any{"set", "", "", "px", 1000}
	if c.store.layout == inHashes {
		probe = []any{"hget", "", "f"}
	}
	first := k.String()
	for i := range tries {
		name := k.String()
		probe[1] = name
		if code(client.Do(ctx, probe...).Err()) != "MOVED" {
			return name
		}
		if k.User = strconv.Itoa(i); hashTag(k.String()) == hashTag(first) {
			break // as the prefix has a tag
		}
	}
	return first
}

// rights tries the commands that the store needs on a server in a role, "" if that is not
// known.
func (c *checkup) rights(ctx context.Context, client *redis.Client, role string) {
	s := c.store
	addr, user := client.Options().Addr, cmp.Or(client.Options().Username, "default")
	key := c.own(ctx, client)
	commands := [][]any{{"time"}, {"eval", "return 0", 1, key}, {"evalsha", s.scripts.take.sha, 1, key}}
	if s.layout == inHashes {
		commands = append(commands, [][]any{
			{"pexpire", key, 1000},
			{"hdel", key, "f"},
			{"pttl", key},
			{"hget", key, "f"},
			{"hmget", key, "f"},
			{"hset", key, "f", ""},
		}...)
	} else {
		commands = append(commands, [][]any{
			{"set", key, "", "px", 1000},
			{"setrange", key, 0, ""},
			{"get", key},
			{"pttl", key},
			{"del", key},
		}...)
	}
	if s.pipelines > 0 && s.layout == inStrings {
		commands = append(commands, []any{"mget", key})
	}
	lacks := map[any]bool{}
	for _, command := range commands {
		if command[0] == "hset" && lacks["pexpire"] && lacks["hdel"] {
			continue // what it writes would stay for ever
		}
		pipe := client.Pipeline()
		cmd := pipe.Do(ctx, command...)
		if command[0] == "hset" {
			pipe.Do(ctx, "pexpire", key, 1000)
			pipe.Do(ctx, "hdel", key, "f")
		}
		_, _ = pipe.Exec(ctx)
		err := cmd.Err()
		if code(err) != "NOPERM" {
			// A node that has other slots says so. That it is a replica is known from INFO.
			remedy, ok := noWrites[code(err)]
			if ok && (command[0] == "set" || command[0] == "hset") && (role == "" || code(err) != "READONLY") {
				c.find(addr, Problem, err.Error(), remedy)
			}
			continue
		}
		name := command[0].(string)
		lacks[name] = true
		what := err.Error()
		if !strings.Contains(strings.ToLower(what), "'"+name) { // about a key
			what = strings.ToUpper(name) + ": " + what
		}
		severity := Problem
		if s.layout == inStrings && (name == "setrange" || name == "pttl" || name == "mget") {
			// Without them the script reads and writes by commands that take longer.
			severity = Warning
			what = "the server's time for a decision is longer than it need be: " + what
		}
		c.find(addr, severity, what, fmt.Sprintf("ACL SETUSER %s +%s ~%s", user, name, quoteIfNeeded(s.prefix+"*")))
	}
}

// quoteIfNeeded quotes text that is not one word.
func quoteIfNeeded(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\'' || r == '\\' }) {
		return strconv.Quote(text)
	}
	return text
}

// decides has the script decide something, by way of the client.
func (c *checkup) decides(ctx context.Context) {
	op := ratelimit.Op{Policy: &ratelimit.Policy{ID: "check", Limit: 1, Window: time.Second}, Cost: 1, Limit: 1, Peek: true}
	s := c.store
	ops := []ratelimit.Op{op}
	args, err := s.arguments(ops, c.now())
	if err == nil {
		var reply any
		if reply, err = s.scripts.take.run(ctx, s.client, &command{keys: []string{s.key(op.Policy, "")}, args: args, tagAt: s.tagAt()}); err == nil {
			_, err = readReply(reply, ops)
		}
	}
	if err != nil {
		c.cannot(s.name, err)
	}
}
