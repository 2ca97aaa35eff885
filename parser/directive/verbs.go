package directive

import (
	"slices"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// The verbs.
const (
	VerbLimit    = "limit"
	VerbOff      = "off"
	VerbWrapper  = "wrapper"
	VerbDefine   = "define"
	VerbDefaults = "defaults"
)

// The options.
const (
	optMax         = "max"
	optWindow      = "window"
	optKey         = "key"
	optAlgorithm   = "algorithm"
	optBurst       = "burst"
	optInitial     = "initial"
	optRefill      = "refill"
	optWarmup      = "warmup"
	optSegments    = "segments"
	optAlign       = "align"
	optTZ          = "tz"
	optCost        = "cost"
	optCostAfter   = "cost-after"
	optCount       = "count"
	optWhen        = "when"
	optUnless      = "unless"
	optLock        = "lock"
	optLease       = "lease"
	optOnLimit     = "on-limit"
	optMaxWait     = "max-wait"
	optMaxQueue    = "max-queue"
	optOnEmpty     = "on-empty"
	optOnError     = "on-error"
	optMode        = "mode"
	optName        = "name"
	optGroup       = "group"
	optStore       = "store"
	optMessage     = "message"
	optStatus      = "status"
	optUse         = "use"
	optConstructor = "constructor"
	optImplements  = "implements"
)

// Words of options that are no numbers.
const (
	wordUnlimited = "unlimited"
	wordBlocked   = "blocked"
	wordGlobal    = "global"
)

// MaxSteps is the greatest length of a list of locks.
const MaxSteps = 32

// Groups of algorithms that take the same options.
var (
	charged  = []ratelimit.Algorithm{ratelimit.SlidingLog, ratelimit.SlidingWindow, ratelimit.FixedWindow, ratelimit.TokenBucket}
	counted  = append(slices.Clip(charged), ratelimit.LeakyBucket)
	costed   = append(slices.Clip(counted), ratelimit.Concurrency, Custom)
	windowed = append(slices.Clip(counted), ratelimit.TimeQuota, Custom)
)

// limitOptions are the options of limit. Where an option goes with some algorithms
// only, that is said here and nowhere else.
var limitOptions = []Option{
	{
		Name: optMax, Type: Units, Values: []string{wordUnlimited, wordBlocked}, Default: "5",
		Aliases: []string{"limit", "maximum", "rate", "requests", "calls", "quota", "permits"},
		Doc:     "units admitted per window, calls in flight for concurrency, a duration for time-quota; unlimited admits every call, blocked refuses every call, and so does an expression that is not positive",
		Example: "max=100",
	},
	{
		Name: optWindow, Type: Duration, Default: "1m",
		Algorithms: windowed,
		Without:    optAlign, unused: CodeWindowUnused,
		Aliases: []string{"per", "period", "interval", "duration", "every"},
		Doc:     "length of the window; d is 24 hours and w 7 days",
		Example: "window=1h30m",
	},
	{
		Name: optKey, Type: Key, Default: wordGlobal,
		Aliases: []string{"by", "scope"},
		Doc:     "whose calls share a counter: a dimension, a list of them, or an expression over the method's parameters",
		Example: "key=`[req.TenantID, req.UserID]`",
	},
	{
		Name: optAlgorithm, Type: Algorithm, Default: string(ratelimit.SlidingLog),
		Values: []string{
			string(ratelimit.SlidingLog), string(ratelimit.SlidingWindow), string(ratelimit.FixedWindow),
			string(ratelimit.TokenBucket), string(ratelimit.LeakyBucket), string(ratelimit.Concurrency), string(ratelimit.TimeQuota),
		},
		Aliases: []string{"algo", "strategy", "type"},
		Doc:     "how calls are counted: exactly, in parts of a window, per window, with bursts, evenly spaced, while they run, by their time, or in a way of your own, which the limiter is given by ratelimit.WithAlgorithm",
		Example: "algorithm=token-bucket",
	},
	{
		Name: optBurst, Type: Integer, Min: 1, Max: ratelimit.MaxLimit,
		Algorithms: []ratelimit.Algorithm{ratelimit.TokenBucket, ratelimit.LeakyBucket, Custom}, Without: optWarmup, unused: CodeBurstUnused,
		Aliases: []string{"capacity"},
		Doc:     "capacity of a token or leaky bucket, or what an algorithm of your own makes of it; max if not given",
		Example: "algorithm=token-bucket max=10 window=1s burst=20",
	},
	{
		Name: optInitial, Type: Integer, Min: 0, Max: ratelimit.MaxLimit,
		Algorithms: []ratelimit.Algorithm{ratelimit.TokenBucket}, Without: optWarmup, unused: CodeOptionUnused,
		Aliases: []string{"start"},
		Doc:     "tokens of a new bucket; full if not given. A bucket is new again when it was full for a window, so that calls which come more rarely always find a new one",
		Example: "algorithm=token-bucket initial=0",
	},
	{
		Name: optRefill, Type: Choice, Values: []string{"smooth", "interval"}, Default: "smooth",
		Algorithms: []ratelimit.Algorithm{ratelimit.TokenBucket}, Without: optWarmup, unused: CodeOptionUnused,
		Doc:     "how tokens come back: one at a time, or max at once each window",
		Example: "algorithm=token-bucket refill=interval",
	},
	{
		Name: optWarmup, Type: Duration,
		Algorithms: []ratelimit.Algorithm{ratelimit.TokenBucket}, unused: CodeOptionUnused,
		Doc:     "slow start: how long a bucket that was idle takes to reach its full pace, beginning at a third of it",
		Example: "algorithm=token-bucket max=100 window=1s warmup=10s",
	},
	{
		Name: optSegments, Type: Integer, Min: 2, Max: 60, Default: "10",
		Algorithms: []ratelimit.Algorithm{ratelimit.SlidingWindow}, unused: CodeOptionUnused,
		Aliases: []string{"parts", "buckets", "slots"},
		Doc:     "parts of a sliding window",
		Example: "algorithm=sliding-window segments=60",
	},
	{
		Name: optAlign, Type: Choice, Values: []string{"second", "minute", "hour", "day", "week", "month"},
		Algorithms: []ratelimit.Algorithm{ratelimit.FixedWindow}, unused: CodeAlignUnused,
		Aliases: []string{"calendar"},
		Doc:     "makes the window one of the calendar, weeks beginning on Monday",
		Example: "algorithm=fixed-window align=day",
	},
	{
		Name: optTZ, Type: Zone, Default: "UTC", Needs: optAlign, unused: CodeTZUnused,
		Aliases: []string{"timezone", "zone", "location"},
		Doc:     "time zone of the calendar",
		Example: "algorithm=fixed-window align=day tz=Europe/Berlin",
	},
	{
		Name: optCost, Type: Cost, Default: "1",
		Algorithms: costed, unused: CodeOptionUnused,
		Aliases: []string{"weight", "tokens", "units"},
		Doc:     "units that one call takes",
		Example: "cost=`len(req.Items)`",
	},
	{
		Name: optCostAfter, Type: Amount,
		Algorithms: charged, Without: optWarmup, unused: CodeOptionUnused,
		Doc:     "units charged after the call besides, over arguments and results; with count, of calls that stay counted only",
		Example: "cost-after=`len(result)`",
	},
	{
		Name: optCount, Type: Condition,
		Algorithms: counted, Without: optWarmup, unused: CodeOptionUnused,
		Aliases: []string{"count-if", "only"},
		Doc:     "only calls for which it holds stay counted; what a call takes is reserved before it and given back after it, or if it panics",
		Example: "count=`err != nil`",
	},
	{
		Name: optWhen, Type: Condition,
		Aliases: []string{"if", "condition", "only-if"},
		Doc:     "the policy applies only to calls for which it holds",
		Example: "when=`req.Amount > 100`",
	},
	{
		Name: optUnless, Type: Condition,
		Aliases: []string{"except", "skip", "skip-if"},
		Doc:     "the policy does not apply to calls for which it holds",
		Example: "unless=req.Internal",
	},
	{
		Name: optLock, Type: Durations,
		Aliases: []string{"ban", "block", "penalty", "lockout", "cooldown"},
		Doc:     "after a refusal, refuse this key for so long; of a list, longer with each further refusal; calls while locked do not prolong it",
		Example: "lock=1m,10m,1h",
	},
	{
		Name: optLease, Type: Duration, Default: "1m",
		Algorithms: []ratelimit.Algorithm{ratelimit.Concurrency}, unused: CodeLeaseUnused,
		Aliases: []string{"ttl"},
		Doc:     "time after which a holder that died gives its place back",
		Example: "algorithm=concurrency lease=5m",
	},
	{
		Name: optOnLimit, Type: Action, Values: []string{string(OnLimitError), string(OnLimitWait), string(OnLimitZero), string(OnLimitFallback) + ":Method"}, Default: string(OnLimitError),
		Aliases: []string{"action", "fallback", "on-refuse", "on-refusal", "then"},
		Doc:     "what the caller of a refused call gets, whatever the reason: the error; a wait until it is admitted, its context ends or max-wait is over; zero results; or what another method of the same signature returns, whose own limits apply",
		Example: "on-limit=fallback:Cached",
	},
	{
		Name: optMaxWait, Type: Duration, Needs: optOnLimit + "=" + string(OnLimitWait), unused: CodeWaitUnused,
		Aliases: []string{"timeout", "wait"},
		Doc:     "longest wait; a call that cannot be admitted by then is refused at once; as long as its context allows if not given",
		Example: "max=100 window=1s on-limit=wait max-wait=2s",
	},
	{
		Name: optMaxQueue, Type: Integer, Min: 0, Max: ratelimit.MaxLimit, Default: "0", Needs: optOnLimit + "=" + string(OnLimitWait), unused: CodeWaitUnused,
		Aliases: []string{"queue", "queue-size"},
		Doc:     "most calls of one key that wait; 0 is unbounded",
		Example: "on-limit=wait max-queue=100",
	},
	{
		Name: optOnEmpty, Type: Choice, Values: []string{"deny", "skip", "shared"}, Default: "deny", Needs: optKey, unused: CodeEmptyUnused,
		Aliases: []string{"on-missing", "on-no-key"},
		Doc:     "what becomes of a call whose key is absent or empty: refused with ErrNoKey, not limited, or counted together with all others like it",
		Example: "key=user on-empty=skip",
	},
	{
		Name: optOnError, Type: Choice, Values: []string{"local", "allow", "deny"}, Default: "local",
		Aliases: []string{"on-failure", "on-store-error", "fail"},
		Doc:     "what becomes of a call if the store fails or is too slow: limited in this process, admitted, or refused with ErrStore",
		Example: "on-error=allow",
	},
	{
		Name: optMode, Type: Choice, Values: []string{"enforce", "shadow", "off"}, Default: "enforce",
		Doc:     "enforce refuses; shadow decides, counts and reports but admits; off does nothing",
		Example: "mode=shadow",
	},
	{
		Name: optName, Type: Name, Targets: []TargetKind{Method, InterfaceMethod, Func}, Without: optGroup, unused: CodeNameUnused,
		Aliases: []string{"id"},
		Doc:     "identity of the policy's counters, metrics and overrides, kept when policies are moved or changed; by default import path, type and method, and for several policies also algorithm, window and key, so that a policy without a name is another one once its method gets a second",
		Example: "name=login-per-ip",
	},
	{
		Name: optGroup, Type: Name,
		Aliases: []string{"shared", "share"},
		Doc:     "methods of one group share counters; their limits must be the same but for what a call costs and which calls count, and have count, or cost-after, on all of them or on none",
		Example: "group=uploads",
	},
	{
		Name: optStore, Type: Name,
		Aliases: []string{"backend", "storage"},
		Doc:     "which of the limiter's stores keeps the counters; the default store if not given",
		Example: "store=redis",
	},
	{
		Name: optMessage, Type: Text, Needs: optOnLimit + "=" + string(OnLimitError) + "|" + string(OnLimitWait), unused: CodeRefusalUnused,
		Aliases: []string{"msg", "text", "reason"},
		Doc:     "what a refused client is told in place of the usual words",
		Example: "message=\"try again tomorrow\"",
	},
	{
		Name: optStatus, Type: Integer, Min: 400, Max: 599, Needs: optOnLimit + "=" + string(OnLimitError) + "|" + string(OnLimitWait), unused: CodeRefusalUnused,
		Aliases: []string{"code", "http-status", "status-code"},
		Doc:     "HTTP status of a refusal; 429 if not given",
		Example: "status=503",
	},
	{
		Name: optUse, Type: Name,
		Aliases: []string{"from", "extends", "policy"},
		Doc:     "starts from the policy that a define of this name describes; options given here take precedence",
		Example: "use=standard",
	},
}

// limitOptionsBut returns the options of limit without some, for use on other
// targets.
func limitOptionsBut(except []string) []Option {
	var options []Option
	for _, o := range limitOptions {
		if !slices.Contains(except, o.Name) {
			options = append(options, o)
		}
	}
	return options
}

var (
	defineExcept   = []string{optName, optUse}
	defaultsExcept = []string{optName, optGroup, optUse}
)

var registry = []Verb{
	{
		Name:       VerbLimit,
		Doc:        "one policy of a method or function, or of each exported method of a type; the verb may be left out",
		Example:    "//ratelimit:max=5 window=1m key=ip",
		Targets:    []TargetKind{Method, InterfaceMethod, Func, TypeDecl},
		Repeatable: true,
		Options:    limitOptions,
	},
	{
		Name:    VerbOff,
		Doc:     "opts a method out of the limits of its type, so that only its own apply",
		Example: "//ratelimit:off",
		Targets: []TargetKind{Method, InterfaceMethod},
	},
	{
		Name:    VerbWrapper,
		Doc:     "names what is generated for a type or a function",
		Example: "//ratelimit:wrapper name=LimitedService constructor=Limit",
		Targets: []TargetKind{TypeDecl, Func},
		Options: []Option{
			{
				Name: optName, Type: Identifier, Targets: []TargetKind{TypeDecl},
				Doc:     "name of the generated type; RateLimitedX for X if not given",
				Example: "name=LimitedService",
			},
			{
				Name: optConstructor, Type: Identifier,
				Doc:     "name of the generated constructor; NewRateLimitedX for X if not given; that of a function returns the limited function",
				Example: "constructor=Limit",
			},
			{
				Name: optImplements, Type: TypeName, Targets: []TargetKind{TypeDecl},
				Doc:     "interface that the generated type is asserted to implement",
				Example: "implements=pb.GreeterServer",
			},
		},
	},
	{
		Name:       VerbDefine,
		Doc:        "a policy that limits of the package start from with use=",
		Example:    "//ratelimit:define name=standard max=100 window=1m key=user",
		Targets:    []TargetKind{Package},
		Repeatable: true,
		Except:     defineExcept,
		Options: append([]Option{
			{
				Name: optName, Type: Name, Required: true,
				Doc:     "what use= calls the policy; unique in the package",
				Example: "name=standard",
			},
		}, limitOptionsBut(defineExcept)...),
	},
	{
		Name:    VerbDefaults,
		Doc:     "options that the limits of the package have unless they say otherwise; an option is left out where the limit's algorithm does not take it",
		Example: "//ratelimit:defaults key=user on-error=deny",
		Targets: []TargetKind{Package},
		Except:  defaultsExcept,
		Options: limitOptionsBut(defaultsExcept),
	},
}
