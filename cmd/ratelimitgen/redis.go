package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/internal/rediskey"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

const redisUsage = `usage: ratelimitgen redis inspect [flags] KEY...
       ratelimitgen redis reset   [-n] [flags] KEY...
       ratelimitgen redis block   [-n] -policy id -for time [flags] KEY...

Looks at the counters that services keep in Redis, and changes them. A KEY is what
the calls are counted by, such as an address or a user; "" is that of a policy that
counts all calls together. inspect prints the counters of the keys, reset removes
them, so that the next call is the first, and block refuses the keys for a time.
With -policy and no KEY, inspect and reset take all keys of the policy. Processes that
remember a refusal go by it for a second at most.

flags:
  -addr list    host:port of the server, or of several nodes of a cluster, by commas
  -url url      redis://user:password@host:port/db, or rediss:// for TLS
  -cluster      the server is a node of a cluster
  -prefix p     what all keys begin with, as redisstore.WithPrefix says
                ("ratelimit:" by default)
  -policy id    only counters of this policy, as the service's log names it
  -for time     for how long a key is blocked, like 90s or 12h; 0 lifts a block
  -form form    how the policy counts, for a key to block before its first call
  -n            only print what would be reset or blocked

environment:
  REDIS_URL     the -url where there is neither -url nor -addr; without it the server
                is 127.0.0.1:6379

Without -policy, and with -policy and no KEY, all names on the server are scanned, in
small steps. Credentials belong into REDIS_URL, since others can see flags.

exit status: 0 done, 1 a key has no counter, 2 ratelimitgen could not do its work
`

// redisURLEnv is the environment variable that says where the server is.
const redisURLEnv = "REDIS_URL"

// operator is the verb redis under way.
type operator struct {
	*command
	client redis.UniversalClient
	prefix string
	policy *string // nil: any
	dryRun bool
	watch  *watch
}

// redis looks at counters in Redis, or changes them.
func (c *command) redis(args []string) int {
	logging.Disable() // what fails is an error of ours
	word, args := splitWord(args)
	actions := []string{"block", "inspect", "reset"}
	switch {
	case word == "help" || word == "":
		fmt.Fprint(c.stdout, redisUsage)
		if word == "" {
			return exitTrouble
		}
		return exitDone
	case !slices.Contains(actions, word):
		hint := ""
		if s := diag.Suggest(word, actions); s != "" {
			hint = fmt.Sprintf("; did you mean %q?", s)
		}
		return c.trouble(fmt.Errorf("redis cannot %q%s There are inspect, reset and block; see ratelimitgen redis -h", word, cmp.Or(hint, ".")))
	}

	o := operator{command: c}
	var server redisServer
	var policy, form string
	var d time.Duration
	flags := flag.NewFlagSet("ratelimitgen redis "+word, flag.ContinueOnError)
	flags.SetOutput(c.stderr)
	flags.Usage = func() { fmt.Fprint(c.stderr, redisUsage) }
	dir := flags.String("C", ".", "")
	flags.StringVar(&server.addr, "addr", "", "")
	flags.StringVar(&server.url, "url", "", "")
	flags.BoolVar(&server.cluster, "cluster", false, "")
	flags.StringVar(&o.prefix, "prefix", rediskey.DefaultPrefix, "")
	flags.StringVar(&policy, "policy", "", "")
	if word != "inspect" {
		flags.BoolVar(&o.dryRun, "n", false, "")
	}
	if word == "block" {
		flags.DurationVar(&d, "for", -1, "")
		flags.StringVar(&form, "form", "", "")
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitDone
	} else if err != nil {
		return exitTrouble
	}
	if _, err := directory(*dir); err != nil {
		return c.trouble(err)
	}
	flags.Visit(func(f *flag.Flag) {
		if f.Name == "policy" {
			o.policy = &policy
		}
	})
	keys := flags.Args()
	switch {
	case len(keys) == 0 && (o.policy == nil || word == "block"):
		return c.trouble(fmt.Errorf("redis %s: which KEY? See ratelimitgen redis -h", word))
	case word == "block" && o.policy == nil:
		return c.trouble(errors.New("redis block: -policy says whose limit is to refuse the key"))
	case word == "block" && d < 0:
		return c.trouble(errors.New("redis block: -for says for how long, like 12h; 0 lifts a block"))
	case form != "" && rediskey.PolicyOf(form, "") == nil:
		return c.trouble(fmt.Errorf("redis block: no form %q; there are %s", form, strings.Join(rediskey.Forms(), ", ")))
	}
	client, err := server.connect(os.Getenv(redisURLEnv))
	if err != nil {
		return c.trouble(err)
	}
	defer func() { _ = client.Close() }() // what it was asked is done
	o.client = client
	o.watch = c.watch(c.terminal)
	o.watch.say("asking the server")
	defer o.watch.quiet()

	var code int
	switch word {
	case "inspect":
		code, err = o.inspect(keys)
	case "reset":
		code, err = o.reset(keys)
	case "block":
		code, err = o.block(keys, form, d)
	}
	if err != nil {
		text := err.Error()
		if strings.Contains(text, "MOVED ") || strings.Contains(text, "CROSSSLOT ") {
			err = fmt.Errorf("%w; with -cluster ratelimitgen asks the other nodes, too", err)
		}
		return c.trouble(fmt.Errorf("redis %s: %w", word, err))
	}
	return code
}

// redisServer says where a server is.
type redisServer struct {
	addr, url string
	cluster   bool
}

// connect returns a client of it. It does not connect yet.
func (s *redisServer) connect(env string) (redis.UniversalClient, error) {
	o := &redis.UniversalOptions{Addrs: []string{"127.0.0.1:6379"}, IsClusterMode: s.cluster, ReadTimeout: 10 * time.Second, DialTimeout: 5 * time.Second}
	from := "-url"
	switch {
	case s.addr != "" && s.url != "":
		return nil, errors.New("both -addr and -url say where the server is")
	case s.addr != "":
		o.Addrs = strings.Split(s.addr, ",")
		return redisstore.NewClient(o), nil
	case s.url == "" && env != "":
		s.url, from = env, redisURLEnv
	}
	if s.url != "" {
		one, err := redis.ParseURL(s.url)
		if err != nil {
			// The text of an *url.Error has all of it, the password included.
			if inURL := (*url.Error)(nil); errors.As(err, &inURL) {
				err = inURL.Err
			}
			return nil, fmt.Errorf("%s is not the URL of a server: %w", from, err)
		}
		o.Addrs, o.DB, o.Username, o.Password, o.TLSConfig = []string{one.Addr}, one.DB, one.Username, one.Password, one.TLSConfig
	}
	return redisstore.NewClient(o), nil
}

// find returns the counters of the keys, or of all keys if there are none, and the keys
// that have none.
func (o *operator) find(keys []string) (found []rediskey.Key, without []string, err error) {
	switch {
	case len(keys) == 0:
		found, err = o.scan(nil)
	case o.policy == nil:
		for _, key := range keys {
			some, err := o.scan(&key)
			if err != nil {
				return nil, nil, err
			}
			found = append(found, some...)
		}
	default:
		for _, key := range keys {
			some, err := o.look(key)
			if err != nil {
				return nil, nil, err
			}
			found = append(found, some...)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(found, func(a, b rediskey.Key) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.User, b.User), cmp.Compare(a.Form, b.Form))
	})
	found = slices.Compact(found)
	for _, key := range keys {
		if !slices.ContainsFunc(found, func(k rediskey.Key) bool { return k.User == key }) {
			without = append(without, key)
		}
	}
	return found, without, nil
}

// look returns the counters of the policy with a key, without a scan.
func (o *operator) look(key string) ([]rediskey.Key, error) {
	pipe := o.client.Pipeline()
	var names []rediskey.Key
	var replies []*redis.IntCmd
	for _, form := range rediskey.Forms() {
		k := rediskey.Key{Prefix: o.prefix, User: key, Policy: *o.policy, Form: form}
		names = append(names, k)
		replies = append(replies, pipe.Exists(o.ctx, k.String()))
	}
	if _, err := pipe.Exec(o.ctx); err != nil {
		return nil, err
	}
	var found []rediskey.Key
	for i, r := range replies {
		if r.Val() > 0 {
			found = append(found, names[i])
		}
	}
	return found, nil
}

// scan goes through all names on the server for the counters of a key, nil for any.
func (o *operator) scan(key *string) ([]rediskey.Key, error) {
	pattern := rediskey.Pattern(o.prefix, o.policy, key)
	var mu sync.Mutex // nodes of a cluster are scanned in parallel
	var found []rediskey.Key
	var seen, size int64
	node := func(ctx context.Context, client *redis.Client) error {
		n, err := client.DBSize(ctx).Result()
		if err != nil {
			return err
		}
		mu.Lock()
		size += n
		mu.Unlock()
		const step = 1000
		for cursor := uint64(0); ; {
			names, next, err := client.Scan(ctx, cursor, pattern, step).Result()
			if err != nil {
				return err
			}
			mu.Lock()
			for _, name := range names {
				k, ok := rediskey.Parse(o.prefix, name)
				if ok && (o.policy == nil || k.Policy == *o.policy) && (key == nil || k.User == *key) {
					found = append(found, k)
				}
			}
			seen = min(seen+step, size)
			o.watch.say(fmt.Sprintf("scanned %d of %d names, %d counters", seen, size, len(found)))
			mu.Unlock()
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	}
	switch client := o.client.(type) {
	case *redis.Client:
		return found, node(o.ctx, client)
	case *redis.ClusterClient:
		if key == nil {
			err := client.ForEachMaster(o.ctx, node)
			return found, err
		}
		// The key alone decides where it is.
		one, err := client.MasterForKey(o.ctx, rediskey.Key{Prefix: o.prefix, User: *key}.String())
		if err != nil {
			return nil, err
		}
		err = node(o.ctx, one)
		return found, err
	}
	return nil, fmt.Errorf("a client of type %T cannot be scanned", o.client)
}

// batch is how many counters are asked about at a time.
const batch = 500

// inspect prints counters.
func (o *operator) inspect(keys []string) (int, error) {
	found, without, err := o.find(keys)
	if err != nil {
		return 0, err
	}
	now, err := o.client.Time(o.ctx).Result()
	if err != nil {
		now = time.Now() // the user may not be allowed to ask
	}
	w := tabwriter.NewWriter(o.stdout, 0, 0, 2, ' ', 0)
	if len(found) > 0 {
		fmt.Fprintln(w, "POLICY\tKEY\tFORM\tEXPIRES IN\tSTATE")
	}
	for some := range slices.Chunk(found, batch) {
		pipe := o.client.Pipeline()
		states := make([]*redis.StringCmd, len(some))
		lives := make([]*redis.DurationCmd, len(some))
		for i, k := range some {
			states[i], lives[i] = pipe.Get(o.ctx, k.String()), pipe.PTTL(o.ctx, k.String())
		}
		if _, err := pipe.Exec(o.ctx); err != nil && !isReply(err) {
			return 0, err
		}
		for i, k := range some {
			raw, err := states[i].Bytes()
			if errors.Is(err, redis.Nil) {
				continue // expired since
			}
			life := "never"
			if ttl := lives[i].Val(); ttl >= 0 {
				life = rounded(ttl)
			}
			text := "not a counter: "
			if err != nil {
				text += quoted(err.Error())
			} else {
				text = describe(k.Form, raw, now)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", quoted(k.Policy), quoted(k.User), k.Form, life, text)
		}
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	return o.missing(keys, without, len(found)), nil
}

// isReply reports whether a server said err about a single command.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// describe says what a counter holds.
func describe(form string, raw []byte, now time.Time) string {
	s := rediskey.ParseState(form, raw)
	var parts []string
	if left := s.Blocked.Sub(now); left > 0 {
		parts = append(parts, "blocked for "+rounded(left))
	}
	if left := s.Locked.Sub(now); left > 0 {
		parts = append(parts, "locked for "+rounded(left))
	}
	switch {
	case !s.Known:
		parts = append(parts, fmt.Sprintf("%d bytes that ratelimitgen cannot read", len(raw)))
	case s.Used >= 0 && form == "quota":
		parts = append(parts, "used "+(time.Duration(s.Used)*time.Microsecond).String())
	case s.Used >= 0:
		parts = append(parts, fmt.Sprintf("%d charged", s.Used))
	}
	if s.Ahead > 0 {
		parts = append(parts, fmt.Sprintf("%d reserved", s.Ahead))
	}
	if age := now.Sub(s.Last); !s.Last.IsZero() && s.Known {
		what := "last charged"
		if form == "fixed" {
			what = "window began"
		}
		parts = append(parts, fmt.Sprintf("%s %s ago", what, rounded(max(age, 0))))
	}
	return strings.Join(parts, ", ")
}

// rounded is a time for people.
func rounded(d time.Duration) string {
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}

// reset removes counters.
func (o *operator) reset(keys []string) (int, error) {
	found, without, err := o.find(keys)
	if err != nil {
		return 0, err
	}
	for some := range slices.Chunk(found, batch) {
		if !o.dryRun {
			pipe := o.client.Pipeline()
			for _, k := range some {
				pipe.Del(o.ctx, k.String())
			}
			if _, err := pipe.Exec(o.ctx); err != nil {
				return 0, err
			}
		}
		for _, k := range some {
			o.did("reset", k, "")
		}
	}
	return o.missing(keys, without, len(found)), nil
}

// block blocks keys, or lifts that.
func (o *operator) block(keys []string, form string, d time.Duration) (int, error) {
	store := redisstore.New(o.client, redisstore.WithPrefix(o.prefix), redisstore.WithTimeout(10*time.Second),
		redisstore.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	code := exitDone
	for _, key := range keys {
		var forms []string
		if form != "" {
			forms = []string{form}
		} else {
			found, err := o.look(key)
			if err == nil && len(found) == 0 && d > 0 {
				found, err = o.scan(nil) // other keys tell how the policy counts
			}
			if err != nil {
				return 0, err
			}
			for _, k := range found {
				forms = append(forms, k.Form)
			}
			slices.Sort(forms)
			forms = slices.Compact(forms)
		}
		if len(forms) == 0 && d > 0 {
			fmt.Fprintf(o.stderr, "ratelimitgen: policy %s has counted nothing under %s, so that nobody knows how it counts: say it by -form (%s)\n",
				quoted(*o.policy), quoted(o.prefix), strings.Join(rediskey.Forms(), ", "))
			return exitProblem, nil
		}
		if len(forms) == 0 {
			code = o.missing(keys, []string{key}, 1)
		}
		for _, form := range forms {
			if !o.dryRun {
				if err := store.Block(o.ctx, rediskey.PolicyOf(form, *o.policy), key, d); err != nil {
					return 0, err
				}
			}
			k := rediskey.Key{User: key, Policy: *o.policy, Form: form}
			if d == 0 {
				o.did("unblock", k, "")
			} else {
				o.did("block", k, " for "+d.String())
			}
		}
	}
	return code, nil
}

// did prints what was done to a counter.
func (o *operator) did(verb string, k rediskey.Key, how string) {
	past := map[string]string{"reset": "reset", "block": "blocked", "unblock": "unblocked"}[verb]
	if o.dryRun {
		past = "would " + verb
	}
	fmt.Fprintf(o.stdout, "%s %s of %s (%s)%s\n", past, quoted(k.User), quoted(k.Policy), k.Form, how)
}

// missing says which keys have no counter, and returns the exit status.
func (o *operator) missing(keys, without []string, found int) int {
	of := ""
	if o.policy != nil {
		of = " of policy " + quoted(*o.policy)
	}
	for _, key := range without {
		fmt.Fprintf(o.stderr, "ratelimitgen: no counter%s of key %s under %s\n", of, quoted(key), quoted(o.prefix))
	}
	if len(keys) == 0 && found == 0 {
		fmt.Fprintf(o.stderr, "ratelimitgen: no counter%s under %s\n", of, quoted(o.prefix))
	}
	if len(without) > 0 || found == 0 {
		return exitProblem
	}
	return exitDone
}

// quoted is text that others chose: as it is if it is one word of printable ASCII, else as
// a Go string, so that it can neither move the cursor nor look like more than one word.
func quoted(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'`\\", r) }) {
		return strconv.QuoteToASCII(text)
	}
	return text
}
