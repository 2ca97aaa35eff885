package redisstore

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

//go:embed take.lua
var takeSource string

var takeScript = newScript(takeSource)

// script is a Lua script and the name that a server that has seen it knows it by.
type script struct {
	source, sha string
}

func newScript(source string) *script {
	sum := sha1.Sum([]byte(source)) // the name that Redis prescribes; no secret depends on it
	return &script{source: source, sha: hex.EncodeToString(sum[:])}
}

// run executes the script at most once and returns its reply. A server that does
// not know the script has executed nothing, and gets it in full.
func (s *script) run(ctx context.Context, client redis.UniversalClient, keys []string, args []any) (any, error) {
	cmd := newOnceCmd(ctx, "evalsha", s.sha, keys, args)
	err := client.Process(ctx, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = newOnceCmd(ctx, "eval", s.source, keys, args)
		err = client.Process(ctx, cmd)
	}
	if err != nil {
		return nil, err
	}
	return cmd.Val(), nil
}

// onceCmd is a command that go-redis does not send again when its reply is lost:
// it may have been executed, and would be executed twice.
type onceCmd struct{ *redis.Cmd }

// newOnceCmd returns a call of a script by name, which is eval or evalsha.
func newOnceCmd(ctx context.Context, name, script string, keys []string, args []any) *onceCmd {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, name, script, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	all = append(all, args...)
	cmd := redis.NewCmd(ctx, all...)
	cmd.SetFirstKeyPos(3)
	return &onceCmd{cmd}
}

// NoRetry implements [redis.Cmder].
func (c *onceCmd) NoRetry() bool { return true }

// Clone implements [redis.Cmder], and keeps a clone from being sent again too.
func (c *onceCmd) Clone() redis.Cmder { return &onceCmd{c.Cmd.Clone().(*redis.Cmd)} }

// arguments returns what the script's ARGV says about ops.
func arguments(ops []ratelimit.Op) []any {
	const perOp = 6
	args := make([]any, 0, perOp*len(ops))
	for i := range ops {
		op := &ops[i]
		p := op.Policy
		flags := 0
		if p.Mode == ratelimit.Shadow {
			flags |= 1
		}
		if op.Peek {
			flags |= 2
		}
		args = append(args, algorithmName(p.Algorithm), p.Limit, p.Window.Microseconds(), p.Capacity(), op.Cost, flags)
	}
	return args
}

// algorithmName is what the script and the keys call an algorithm. One that the
// script does not know is an error there.
func algorithmName(a ratelimit.Algorithm) string {
	switch a {
	case "", ratelimit.SlidingLog:
		return "log"
	case ratelimit.FixedWindow:
		return "fixed"
	case ratelimit.TokenBucket:
		return "bucket"
	}
	return string(a)
}

// maxWait bounds the times of a reply: a window, and as much again where the clock
// was set back.
const maxWait = int64(2 * ratelimit.MaxWindow / time.Microsecond)

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
		allowed, remaining, retry, reset := n[0], n[1], n[2], n[3]
		if allowed&^1 != 0 || remaining < 0 || remaining > ops[i].Policy.Capacity() ||
			retry < 0 || retry > maxWait || (retry == 0) != (allowed == 1) || reset < 0 || reset > maxWait {
			return fmt.Errorf("reply holds an outcome that makes no sense: %d", n)
		}
		outcomes[i] = ratelimit.Outcome{
			Allowed:    allowed == 1,
			Remaining:  remaining,
			RetryAfter: time.Duration(retry) * time.Microsecond,
			ResetAfter: time.Duration(reset) * time.Microsecond,
		}
	}
	for i := range ops {
		ops[i].Outcome = outcomes[i]
	}
	return nil
}
