// Ratelimitgen-redis looks at the counters that services keep in Redis, and changes
// them.
//
// Usage:
//
//	ratelimitgen-redis inspect [flags] key...
//	ratelimitgen-redis reset [-n] [flags] key...
//	ratelimitgen-redis block [-n] -policy id -for time [flags] key...
//	ratelimitgen-redis help
//	ratelimitgen-redis version
//
// It prints, resets or blocks what package redisstore has counted for some keys; help
// prints the flags. "ratelimitgen redis" is the same.
//
// The exit status is 0 if everything is done, 1 if a key has no counter, or one that this
// version does not know, and 2 if ratelimitgen-redis could not do its work.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/ratelimitgen/ratelimitgen/internal/cli"
	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/internal/rediskey"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Exit codes.
const (
	exitDone    = 0
	exitProblem = 1 // a key has no counter, or one of an unknown form
	exitTrouble = 2 // trouble of ours: flags, the server
)

const usage = `usage: ratelimitgen-redis inspect [flags] KEY...
       ratelimitgen-redis reset   [-n] [flags] KEY...
       ratelimitgen-redis block   [-n] -policy id -for time [flags] KEY...
       ratelimitgen-redis help
       ratelimitgen-redis version

Looks at the counters that services keep in Redis, and changes them; "ratelimitgen redis"
is the same. A KEY is what the calls are counted by, such as an address or a user; "" is
that of a policy that counts all calls together. inspect prints the counters of the keys,
reset removes them, so that the next call is the first, and block refuses the keys for a
time. With -policy and no KEY, inspect and reset take all keys of the policy. Processes
that remember a refusal go by it for a second at most.

flags:
  -addr list    host:port of the server, or of several nodes of a cluster, by commas
  -url url      redis://user:password@host:port/db, or rediss:// for TLS
  -cluster      the server is a node of a cluster
  -prefix p     what all keys begin with, as redisstore.WithPrefix says
                ("ratelimit:" by default)
  -policy id    only counters of this policy, as the service's log names it
  -for time     for how long a key is blocked, like 90s or 12h; 0 lifts a block
  -form form    how the policy counts, for a key to block before its first call
  -hashes       block in hashes, as redisstore.WithHashes keeps limits, and with
                -hashes=false in strings; else where the policy has counted before
  -n            only print what would be reset or blocked

Flags come before the first KEY, and -- before a KEY that begins with a dash.

environment:
  REDIS_URL     the -url where there is neither -url nor -addr; without it the server
                is 127.0.0.1:6379

Without -policy, and with -policy and no KEY, all names on the server are scanned, in
small steps. Credentials belong into REDIS_URL, since others can see flags.

exit status: 0 done, 1 a key has no counter, or one that this version does not know,
2 ratelimitgen-redis could not do its work
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are what flags say.
type options struct {
	dir    string
	server server
	prefix string
	policy string
	dryRun bool
	form   string
	hashes bool
	during time.Duration
}

// register adds the flags of a verb, of all if it is "".
func (o *options) register(flags *flag.FlagSet, verb string) {
	flags.StringVar(&o.dir, "C", ".", "") // as all verbs of ratelimitgen have it
	flags.StringVar(&o.server.addr, "addr", "", "")
	flags.StringVar(&o.server.url, "url", "", "")
	flags.BoolVar(&o.server.cluster, "cluster", false, "")
	flags.StringVar(&o.prefix, "prefix", rediskey.DefaultPrefix, "")
	flags.StringVar(&o.policy, "policy", "", "")
	if verb != "inspect" {
		flags.BoolVar(&o.dryRun, "n", false, "")
	}
	if verb == "block" || verb == "" {
		flags.DurationVar(&o.during, "for", -1, "")
		flags.StringVar(&o.form, "form", "", "")
		flags.BoolVar(&o.hashes, "hashes", false, "")
	}
}

// operator is a run under way.
type operator struct {
	ctx            context.Context
	stdout, stderr io.Writer
	client         redis.UniversalClient
	prefix         string
	policy         *string // nil: any
	hashes         *bool   // whether limits to block are in hashes; nil: as the server shows
	dryRun         bool
	say            func(string)   // how far it is
	unknown        []rediskey.Key // counters of forms that this version does not know
}

func (o *operator) trouble(err error) int {
	if errors.Is(err, context.Canceled) && o.ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	fmt.Fprintf(o.stderr, "ratelimitgen-redis: %v\n", err)
	return exitTrouble
}

// run is the whole command but for the exit.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	logging.Disable() // what fails is an error of ours
	o := &operator{ctx: ctx, stdout: stdout, stderr: stderr}
	var opts options
	known := flag.NewFlagSet("", flag.ContinueOnError)
	opts.register(known, "")
	word, args := cli.SplitWord(args, known)
	verbs := []string{"block", "help", "inspect", "reset", "version"}
	switch {
	case word == "help":
		fmt.Fprint(stdout, usage)
		return exitDone
	case word != "" && !slices.Contains(verbs, word):
		hint := ""
		if s := diag.Suggest(word, verbs); s != "" {
			hint = fmt.Sprintf("; did you mean %q?", s)
		}
		return o.trouble(fmt.Errorf("unknown verb %q%s There are inspect, reset and block; see ratelimitgen-redis -h", word, cmp.Or(hint, ".")))
	}

	opts = options{}
	flags := flag.NewFlagSet(strings.TrimSpace("ratelimitgen-redis "+word), flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage) }
	opts.register(flags, word)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitDone
	} else if err != nil {
		return exitTrouble
	}
	if _, err := cli.Directory(opts.dir); err != nil {
		return o.trouble(err)
	}
	keys := flags.Args()
	if n := len(args) - len(keys); n == 0 || args[n-1] != "--" {
		// What is meant as -n or -policy must not be a key more to reset.
		for _, key := range keys {
			if len(key) > 1 && key[0] == '-' {
				return o.trouble(fmt.Errorf("%s: is %s a flag? Flags come before the first KEY; and if it is a KEY, -- comes before it", word, quoted(key)))
			}
		}
	}
	switch {
	case word == "":
		fmt.Fprint(stdout, usage)
		return exitTrouble
	case word == "version" && len(keys) > 0:
		return o.trouble(fmt.Errorf("version takes no argument %q", keys[0]))
	case word == "version":
		fmt.Fprintf(stdout, "ratelimitgen-redis %s\n", cli.Version())
		return exitDone
	}
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "policy":
			o.policy = &opts.policy
		case "hashes":
			o.hashes = &opts.hashes
		}
	})
	o.prefix, o.dryRun = opts.prefix, opts.dryRun
	return o.do(word, keys, opts)
}

// do asks the server for what the verb says.
func (o *operator) do(verb string, keys []string, opts options) int {
	switch {
	case len(keys) == 0 && (o.policy == nil || verb == "block"):
		return o.trouble(fmt.Errorf("%s: which KEY? See ratelimitgen-redis -h", verb))
	case verb == "block" && o.policy == nil:
		return o.trouble(errors.New("block: -policy says whose limit is to refuse the key"))
	case verb == "block" && opts.during < 0:
		return o.trouble(errors.New("block: -for says for how long, like 12h; 0 lifts a block"))
	case verb == "block" && opts.during > ratelimit.MaxWindow:
		return o.trouble(fmt.Errorf("block: -for is %v, and %v at most", opts.during, time.Duration(ratelimit.MaxWindow)))
	case opts.form != "" && rediskey.PolicyOf(opts.form, "") == nil:
		return o.trouble(fmt.Errorf("block: no form %q; there are %s", opts.form, strings.Join(rediskey.Forms(), ", ")))
	}
	client, err := opts.server.connect(os.Getenv(redisURLEnv))
	if err != nil {
		return o.trouble(err)
	}
	defer func() { _ = client.Close() }() // what it was asked is done
	o.client = client
	line := cli.NewLine("ratelimitgen-redis", o.stderr, cli.IsTerminal(o.stderr))
	defer line.Quiet()
	o.stdout, o.stderr, o.say = line.Before(o.stdout), line.Before(o.stderr), line.Say
	o.say("asking the server")

	var code int
	switch verb {
	case "inspect":
		code, err = o.inspect(keys)
	case "reset":
		code, err = o.reset(keys)
	case "block":
		code, err = o.block(keys, opts.form, opts.during)
	}
	if err != nil {
		text := err.Error()
		if strings.Contains(text, "MOVED ") || strings.Contains(text, "CROSSSLOT ") {
			err = fmt.Errorf("%w; with -cluster ratelimitgen-redis asks the other nodes, too", err)
		}
		return o.trouble(fmt.Errorf("%s: %w", verb, err))
	}
	return o.left(code)
}

// left says which counters were found and left alone because services of another version
// made them, and returns the exit status. It is the version of these that ours has to fit.
func (o *operator) left(code int) int {
	counts := map[string]int{}
	seen := map[rediskey.Key]bool{} // a scan may come by more than once
	for _, k := range o.unknown {
		if !seen[k] {
			seen[k] = true
			counts[k.Form]++
		}
	}
	for _, form := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(o.stderr, "ratelimitgen-redis: left alone %d of form %s, which ratelimitgen-redis %s does not know: take the version of the services\n", counts[form], quoted(form), cli.Version())
		code = exitProblem
	}
	return code
}
