package redisstore

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/internal/rediskey"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

//go:embed *.lua
var sources embed.FS

// layout is how states are kept on the server.
type layout string

const (
	inStrings layout = "strings"
	inHashes  layout = "hashes"
)

// scripts are those of a layout: one that decides and one that blocks.
type scripts struct{ take, block *script }

// The scripts, once they are needed. A program that links this package need not use it.
var (
	stringScripts = sync.OnceValue(func() scripts { return newScripts("", inStrings) })
	hashScripts   = sync.OnceValue(func() scripts { return newScripts("", inHashes) })
)

// newScripts returns the scripts of a layout, each after a preamble.
func newScripts(preamble string, l layout) scripts {
	return scripts{newScript(preamble + takeSource(l)), newScript(preamble + blockSource(l))}
}

// takeSource returns the script that decides, which is in several files. Those of all
// but the usual algorithms are the body of a function.
func takeSource(l layout) string {
	var b strings.Builder
	add := func(name string) { b.WriteString(readSource(name)) }
	b.WriteString(only(l, readSource("common.lua")))
	add(string(l) + ".lua")
	add("plain.lua")
	b.WriteString("local function records()\n")
	for _, name := range []string{"holds.lua", "windows.lua", "buckets.lua", "running.lua", "ahead.lua", "records.lua", "ends.lua"} {
		add(name)
	}
	b.WriteString("end\n\n")
	add("decide.lua")
	return b.String()
}

// blockSource returns the script that blocks.
func blockSource(l layout) string {
	return only(l, "--@hashes\nlocal FIELDS\n--@end\n") + readSource(string(l)+".lua") + readSource("block.lua")
}

// only returns a source without the lines that are of another layout: those behind a line
// that names that, up to the next such line or one that says that it ends.
func only(l layout, source string) string {
	var b strings.Builder
	keeps := true
	for line := range strings.Lines(source) {
		if part, ok := strings.CutPrefix(line, "--@"); ok {
			part = strings.TrimSpace(part)
			keeps = part == string(l) || part == "end"
		} else if keeps {
			b.WriteString(line)
		}
	}
	return b.String()
}

func readSource(name string) string {
	source, err := sources.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded above
	}
	return string(source)
}

// script is a Lua script and the name that a server that has seen it knows it by.
type script struct {
	source, sha string
}

func newScript(source string) *script {
	sum := sha1.Sum([]byte(source)) // the name that Redis prescribes; no secret depends on it
	return &script{source: source, sha: hex.EncodeToString(sum[:])}
}

// run executes the script at most once, as c says, and returns its reply. A server that
// does not know the script has executed nothing, and gets it in full.
func (s *script) run(ctx context.Context, client redis.UniversalClient, c *command) (any, error) {
	err := client.Process(ctx, c.call(ctx, "evalsha", &s.sha))
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		err = client.Process(ctx, c.call(ctx, "eval", &s.source))
	}
	if err != nil {
		return nil, err
	}
	return c.sent.Val(), nil
}

// onceCmd is a command that go-redis does not send again when its reply is lost:
// it may have been executed, and would be executed twice.
type onceCmd struct{ *redis.Cmd }

// call makes c.sent the call of a script by name, which is eval or evalsha. Texts are
// arguments by their address, which takes no allocation, as the constant name does not.
// A call that was made before stays as it is.
func (c *command) call(ctx context.Context, name any, script *string) *onceCmd {
	once, all := &c.once, c.words[:0]
	if c.sent != nil {
		once, all = new(onceCmd), nil
	}
	c.sent = once
	n := 3 + len(c.keys) + len(c.args)
	if c.tagAt > 0 {
		n += len(c.keys)
	}
	if n > cap(all) {
		all = make([]any, 0, n)
	}
	all = append(all, name, script)
	if c.tagAt > 0 {
		all = c.appendHashes(all)
	} else {
		all = append(all, len(c.keys))
		for i := range c.keys {
			all = append(all, &c.keys[i])
		}
		all = append(all, c.args...)
	}
	once.Cmd = redis.NewCmd(ctx, all...)
	once.SetFirstKeyPos(3)
	return once
}

// appendHashes appends keys and arguments for states in hashes: the hash of each key, but
// one if common.lua is asked about several in one, and behind all other arguments the
// field of each.
func (c *command) appendHashes(all []any) []any {
	homes, fields := c.home[:], c.field[:]
	if n := len(c.keys); n != 1 || c.home[0] != "" { // there may be a call that has them
		both := make([]string, 2*n)
		homes, fields = both[:n], both[n:]
	}
	same := len(c.keys) > 1 && c.ops != nil
	for i, key := range c.keys {
		homes[i], fields[i] = rediskey.SplitAt(key, c.tagAt)
		same = same && homes[i] == homes[0]
	}
	if same {
		homes = homes[:1]
	}
	all = append(all, len(homes))
	for i := range homes {
		all = append(all, &homes[i])
	}
	all = append(all, c.args...)
	if c.parts == nil { // else they are there
		for i := range fields {
			all = append(all, &fields[i])
		}
	}
	return all
}

// NoRetry implements [redis.Cmder].
func (c *onceCmd) NoRetry() bool { return true }

// Clone implements [redis.Cmder], and keeps a clone from being sent again too.
func (c *onceCmd) Clone() redis.Cmder { return &onceCmd{c.Cmd.Clone().(*redis.Cmd)} }

// maxWait bounds the times of a reply, in µs, and stands for all that are longer.
const maxWait = int64(1) << 53

// micros returns a time of a reply, which is never ratelimit.Never.
func micros(µs int64) time.Duration {
	if µs == maxWait {
		return (ratelimit.Never - 1).Truncate(time.Microsecond)
	}
	return time.Duration(µs) * time.Microsecond
}

// readReply sets the outcomes of ops from the script's reply to a call that reserves
// nothing, and returns for how long each may be taken to refuse what it refuses: nil if
// none says so, and less than 0 if a key has calls ahead, of which others may be cancelled.
func readReply(reply any, ops []ratelimit.Op) (lasts []time.Duration, err error) {
	values, ok := reply.([]any)
	n := 4 * len(ops)
	// next takes the number that follows the outcomes. If there is none, readOutcomes
	// complains.
	next := func(what string) (number int64, err error) {
		if n >= len(values) {
			return 0, nil
		}
		number, isInt := values[n].(int64)
		if !isInt || number < 0 || number > maxWait {
			return 0, fmt.Errorf("reply holds %.100q in place of %s", fmt.Sprint(values[n]), what)
		}
		values = slices.Delete(values, n, n+1)
		reply = values
		return number, nil
	}
	var before []int64 // in line
	for i := range ops {
		if !ok {
			break
		}
		if saysHowLong(ops[i].Policy) {
			µs, err := next("a time")
			if err != nil {
				return nil, err
			}
			if lasts == nil {
				lasts = make([]time.Duration, len(ops))
			}
			lasts[i] = micros(µs)
		}
		if ticketOf(&ops[i]) != 0 {
			calls, err := next("a number of calls")
			if err != nil {
				return nil, err
			}
			if before == nil {
				before = make([]int64, len(ops))
			}
			before[i] = calls
		}
	}
	if ok && len(values) == n+1 && values[n] == int64(0) {
		lasts = besideOthers(len(ops))
		reply = values[:n]
	}
	if err := readOutcomes(reply, ops); err != nil {
		return lasts, err
	}
	for i, n := range before {
		ops[i].Outcome.Before = n
	}
	return lasts, nil
}

// besideOthers is what readReply returns of n ops if a key has calls ahead.
func besideOthers(n int) []time.Duration { return slices.Repeat([]time.Duration{-1}, n) }

// lasts is what readReply returned to readCommonReply, whose ops do not say how long.
func (c *command) lasts() []time.Duration {
	if !c.ahead {
		return nil
	}
	return besideOthers(len(c.ops))
}

// saysHowLong reports whether the script has a fifth number for p: where its refusals may
// end, or do something, before its RetryAfter.
func saysHowLong(p *ratelimit.Policy) bool {
	return len(p.Lock) > 0 || p.Algorithm == ratelimit.SlidingWindow || p.Warmup != 0
}

// readOutcomes sets the outcomes of ops from the script's reply, if all of it makes
// sense.
func readOutcomes(reply any, ops []ratelimit.Op) error {
	const perOp = 4
	values, ok := reply.([]any)
	if !ok || len(values) != perOp*len(ops) {
		return fmt.Errorf("reply of a shape that the script does not return: %.100q", fmt.Sprint(reply))
	}
	outcomes := make([]ratelimit.Outcome, len(ops))
	for i := range outcomes {
		var n [perOp]int64
		for j := range n {
			if n[j], ok = values[perOp*i+j].(int64); !ok {
				return fmt.Errorf("reply holds %.100q in place of an integer", fmt.Sprint(values[perOp*i+j]))
			}
		}
		allowed, remaining, wait, reset := n[0], n[1], n[2], n[3]
		queues := ops[i].Policy.Algorithm == ratelimit.LeakyBucket && allowed == 1
		if allowed&^1 != 0 || remaining < 0 || remaining > mostRemaining(&ops[i]) ||
			wait < 0 || wait > maxWait || (wait == 0) != (allowed == 1) && !queues || reset < 0 || reset > maxWait {
			return fmt.Errorf("reply holds an outcome that makes no sense: %d", n)
		}
		outcomes[i] = ratelimit.Outcome{
			Allowed:    allowed == 1,
			Remaining:  remaining,
			ResetAfter: micros(reset),
		}
		if queues {
			outcomes[i].Delay = micros(wait)
		} else {
			outcomes[i].RetryAfter = micros(wait)
		}
	}
	for i := range ops {
		ops[i].Outcome = outcomes[i]
	}
	return nil
}
