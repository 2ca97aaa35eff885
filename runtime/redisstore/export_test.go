package redisstore

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/internal/rediskey"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// RATELIMITGEN_LAYOUT=hashes has all tests run with WithHashes.
func init() {
	defaultTimeout = 10 * time.Second
	switch l := os.Getenv("RATELIMITGEN_LAYOUT"); l {
	case "":
	case string(inHashes):
		defaultLayout, defaultScripts = inHashes, hashScripts
	default:
		panic("RATELIMITGEN_LAYOUT is " + l)
	}
}

// Split returns where the state of a name is if it is in a hash.
func Split(name string) (hash, field string) {
	return rediskey.SplitAt(name, strings.LastIndexByte(name, '{')+1)
}

// Sent returns a command for states in strings as it is for those of the layout that is
// tested. As one of common.lua it names the key of all states once.
func Sent(cmd []any) []any {
	if defaultLayout == inStrings {
		return cmd
	}
	n, err := strconv.Atoi(fmt.Sprint(cmd[2]))
	if err != nil {
		panic(err)
	}
	var homes, fields []any
	for _, name := range cmd[3 : 3+n] {
		home, field := Split(name.(string))
		if _, common := cmd[3+n].([]byte); !common || len(homes) == 0 {
			homes = append(homes, home)
		}
		fields = append(fields, field)
	}
	return slices.Concat(cmd[:2], []any{strconv.Itoa(len(homes))}, homes, cmd[3+n:], fields)
}

// InHashes reports whether stores keep states in hashes.
func InHashes() bool { return defaultLayout == inHashes }

// The script of NewFakeTime is the real one, run after this preamble: it takes its
// time from the key <prefix>now, and has keys outlive their time to live, which
// runs by the server's clock, by an hour.
const fakeTime = `
local real = redis
local function left(key)
  local lives = real.call('PTTL', key)
  return lives < 0 and lives or math.max(lives - 3600000, 0)
end
local redis = {
  pcall = function(name, ...)
    if name == 'PTTL' then return left(...) end
    if name == 'PEXPIRE' then
      local key, life = ...
      return real.pcall(name, key, string.format('%.0f', life + 3600000))
    end
    return real.pcall(name, ...)
  end,
  call = function(name, ...)
    local key, value, px, ttl, nx = ...
    if name == 'TIME' then
      local now = tonumber(real.call('GET', KEYS[1]:match('^(.-){') .. 'now') or '0')
      return {math.floor(now / 1000000), math.fmod(now, 1000000)}
    end
    if name == 'DEL' or name == 'HDEL' or name == 'HSET' then return real.call(name, ...) end
    if name == 'PTTL' then return left(key) end
    if name == 'PEXPIRE' then return real.call(name, key, string.format('%.0f', value + 3600000)) end
    if px == 'KEEPTTL' then return real.call(name, key, value, px) end
    ttl = string.format('%.0f', ttl + 3600000)
    if nx then return real.call(name, key, value, px, ttl, nx) end
    return real.call(name, key, value, px, ttl)
  end,
}
`

var fakeTimeScripts = sync.OnceValue(func() scripts { return newScripts(fakeTime, defaultLayout) })

// Alarms are of deadlines that are shared.
type Alarms struct{ latest atomic.Pointer[alarm] }

// Deadline returns one that is over after a time.
func (a *Alarms) Deadline(after time.Duration) context.Context {
	d := new(deadline)
	d.set(context.Background(), after)
	d.share(&a.latest)
	return d
}

// OnLanes returns how many commands are sent in pipelines, or wait for that.
func (s *Store) OnLanes() (n int) {
	s.nodesMu.RLock()
	defer s.nodesMu.RUnlock()
	for _, b := range append(slices.Collect(maps.Values(s.nodes)), s.whole) {
		b.lanes.mu.Lock()
		n += int(b.lanes.sent) + len(b.lanes.waiting)
		b.lanes.mu.Unlock()
	}
	return n
}

// MaxPipeline is the most commands that are sent together.
const MaxPipeline = maxPipeline

// Distinct reports whether keys, at most MaxPipeline, differ.
func Distinct(keys []string) bool { return distinct(keys) }

// NewFakeTime is New with a store that lives in the time of the key <prefix>now, and
// remembers no refusals, since that runs by another time.
func NewFakeTime(client redis.UniversalClient, prefix string, opts ...Option) *Store {
	s := New(client, append(opts, WithPrefix(prefix), WithRefusalMemory(0))...)
	s.scripts = fakeTimeScripts()
	return s
}

// Hashes has s, a store in fake time, keep states in hashes.
func (s *Store) Hashes() *Store {
	s.layout, s.scripts = inHashes, newScripts(fakeTime, inHashes)
	return s
}

// Remembering has s remember refusals by the time, in µs, that clock tells.
func (s *Store) Remembering(entries int, clock func() int64) *Store {
	s.refusals = newRefusals(entries)
	s.clock = func() int64 { return clock() * 1000 }
	return s
}

// WithWall has s take its process for one where it is the time that wall tells.
func (s *Store) WithWall(wall func() time.Time) *Store {
	s.wall = wall
	return s
}

// Recalls reports whether s refuses ops without the server.
func (s *Store) Recalls(ops []ratelimit.Op) bool { return s.refusals.recall(ops, s.now()) }

// KeyOf returns where s counts.
func (s *Store) KeyOf(p *ratelimit.Policy, key string) string { return s.key(p, key) }

// HashTag returns what decides the slot of key.
func HashTag(key string) string { return hashTag(key) }

// Command returns the EVALSHA or EVAL that decides ops, arguments as strings.
func (s *Store) Command(name string, ops []ratelimit.Op) []any {
	script := s.scripts.take.sha
	if name == "eval" {
		script = s.scripts.take.source
	}
	cmd := []any{name, script, strconv.Itoa(len(ops))}
	for i := range ops {
		cmd = append(cmd, s.key(ops[i].Policy, ops[i].Key))
	}
	args, err := s.arguments(ops, time.Now())
	if err != nil {
		panic(err)
	}
	return append(cmd, args...)
}

// CommonCommand is Command with the arguments of common.lua.
func (s *Store) CommonCommand(ops []ratelimit.Op) []any {
	cmd := s.Command("eval", ops)
	return append(cmd[:3+len(ops):3+len(ops)], commonArguments(ops)...)
}

// JoinedCommand is CommonCommand, as it is sent, with ops as calls that are sent together.
func (s *Store) JoinedCommand(ops []ratelimit.Op) []any {
	var parts []*command
	for i := range ops {
		c := commonCommand(s, ops[i:i+1])
		c.tagAt = s.tagAt()
		parts = append(parts, c)
	}
	cmd := join(parts).call(context.Background(), "eval", &s.scripts.take.source).Args()
	for i, arg := range cmd {
		if text, ok := arg.(*string); ok {
			cmd[i] = *text
		}
	}
	return cmd
}

// OnceCmd returns args, an EVALSHA or EVAL, as the command that is sent.
func OnceCmd(args []any) redis.Cmder {
	return &onceCmd{redis.NewCmd(context.Background(), args...)}
}

// Direct decides ops in the caller's goroutine, with no deadline and no breaker.
func (s *Store) Direct(ctx context.Context, ops []ratelimit.Op) (err error) {
	keys := make([]string, len(ops))
	for i := range ops {
		keys[i] = s.key(ops[i].Policy, ops[i].Key)
	}
	c := &command{keys: keys, args: commonArguments(ops), ops: ops, tagAt: s.tagAt()}
	if c.reply, err = s.scripts.take.run(ctx, s.client, c); err != nil {
		return err
	}
	return readCommonReply(c)
}

// EndCommand returns the EVAL that does ends.
func (s *Store) EndCommand(ends []ratelimit.End) []any {
	cmd := []any{"eval", s.scripts.take.source, strconv.Itoa(len(ends))}
	for i := range ends {
		cmd = append(cmd, s.key(ends[i].Policy, ends[i].Key))
	}
	args, err := s.endArguments(ends, time.Now())
	if err != nil {
		panic(err)
	}
	return append(cmd, args...)
}

// Apart has s treat keys with different tags as if they lived on different servers.
func (s *Store) Apart() *Store {
	s.sharded = true
	return s
}

// TakePlain is Take without what common.lua decides.
func (s *Store) TakePlain(ctx context.Context, ops []ratelimit.Op) error {
	keys := make([]string, len(ops))
	for i := range ops {
		keys[i] = s.key(ops[i].Policy, ops[i].Key)
	}
	return s.run(ctx, keys, func(at time.Time) ([]any, error) { return s.arguments(ops, at) },
		func(c *command) error {
			_, err := readReply(c.reply, ops)
			return err
		})
}

// IsCommon reports whether common.lua decides op, if nothing rare is found.
func IsCommon(op *ratelimit.Op) bool { return isCommon(op) }

// Remember has s remember ops as refused now, of which the reply came after what
// meanwhile does.
func (s *Store) Remember(ops []ratelimit.Op, meanwhile func()) {
	generation, sent := s.refusals.generation(), s.now()
	meanwhile()
	s.remember(ops, nil, generation, sent)
}

// CheckAt is Check by a clock that is off.
func (s *Store) CheckAt(ctx context.Context, off time.Duration) (Report, error) {
	return s.check(ctx, func() time.Time { return time.Now().Add(off) })
}

// IsOld reports whether Check refuses a version of Redis.
func IsOld(version string) bool { return isOlder(version, oldestRedis) }

// TakeTogether decides ops, each a call of its own, as if all had waited for a lane.
func (s *Store) TakeTogether(ctx context.Context, ops []ratelimit.Op) []error {
	return s.TakeEach(slices.Repeat([]context.Context{ctx}, len(ops)), ops)
}

// TakeEach is TakeTogether with a context for each op.
func (s *Store) TakeEach(ctxs []context.Context, ops []ratelimit.Op) (errs []error) {
	var batch []*command
	for i := range ops {
		one := ops[i : i+1]
		c := &command{ops: one, keys: []string{s.key(one[0].Policy, one[0].Key)}, read: readCommonReply}
		if isCommon(&one[0]) {
			c = commonCommand(s, one)
		} else {
			args, err := s.arguments(one, time.Now())
			if err != nil {
				panic(err)
			}
			c.args = args
		}
		c.tagAt = s.tagAt()
		c.within.set(ctxs[i], s.timeout)
		c.done = make(chan struct{})
		s.inFlight.Add(1)
		batch = append(batch, c)
	}
	s.sendAll(batch)
	for _, c := range batch {
		<-c.done
		err := c.err
		if err == nil {
			err = c.read(c)
		}
		if err == nil {
			c.recycle()
		}
		errs = append(errs, err)
	}
	return errs
}

// Waiting returns how many commands to s, whose client is of one server, wait for a lane.
func (s *Store) Waiting() int {
	l := &s.breakerOf(context.Background(), "").lanes
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// Leasing has s take leases by the time, in ns, that clock tells.
func (s *Store) Leasing(n int, τ time.Duration, clock func() int64) *Store {
	WithLease(n, τ)(s)
	return s.Clock(clock)
}

// Clock has s go by the time, in ns, that clock tells.
func (s *Store) Clock(clock func() int64) *Store {
	s.clock = clock
	return s
}

// Undo gives back units of p that were charged at a time of the server, in µs, after
// which the key would have been as new after reset.
func (s *Store) Undo(ctx context.Context, p *ratelimit.Policy, key string, units, charged int64, reset time.Duration) error {
	return s.undo(ctx, []unused{{p, s.key(p, key), units, charged, reset}})
}

// Previous has s, a store in fake time, ask the script of an earlier version. What its
// processes send is what those of this version do.
func (s *Store) Previous(source string) *Store {
	s.scripts.take = newScript(fakeTime + source)
	return s
}

// AheadCommand returns the EVAL that reserves ops within an hour, or cancels them.
func (s *Store) AheadCommand(what string, ops []ratelimit.Op) []any {
	cmd := s.Command("eval", ops)
	cmd = append(cmd[:3+len(ops):3+len(ops)], what, idBytes(77))
	if what == "book" {
		cmd = append(cmd, time.Hour.Microseconds())
		for range ops {
			cmd = append(cmd, maxAhead)
		}
	}
	cmd, err := s.appendAhead(cmd, ops, 77, time.Now())
	if err != nil {
		panic(err)
	}
	return cmd
}

// ClassOf returns the class of an error of TakeTogether.
func ClassOf(err error) Class { return classify(err) }
