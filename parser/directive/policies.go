package directive

import (
	"math/bits"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// CheckLimits reports what is wrong with the limits of one method taken together:
// too many, two with one identity, limits that another makes unreachable, and
// limits that do not agree on what the caller of a refused call gets. The limits
// are those for which Limit reported no error, those of the type included, in the
// order written.
func CheckLimits(limits []Limit) diag.List {
	var diags diag.List
	if len(limits) > ratelimit.MaxPolicies {
		return diag.List{errManyPolicies(&limits[ratelimit.MaxPolicies])}
	}
	// What a directive that could not be read whole says is unknown.
	limits = slices.DeleteFunc(slices.Clone(limits), func(l Limit) bool { return l.Directive.broken })
	var distinct []*Limit
	for i := range limits {
		l := &limits[i]
		if first := sameIdentity(l, distinct); first != nil {
			diags.Add(errDuplicate(l, first))
		} else {
			distinct = append(distinct, l)
		}
		if first := &limits[0]; l.onLimit() != first.onLimit() {
			if a := l.Directive.Option(optOnLimit); a != nil {
				diags.Add(errOnLimitDiffers(a, l, first))
			} else {
				diags.Add(errOnLimitDiffers(first.Directive.Option(optOnLimit), first, l))
			}
		}
	}
	for i, l := range distinct {
		// A method may be limited more than the others of its type.
		if by := unreachableBy(distinct, i); by != nil && (by.OfType || !l.OfType) {
			diags.Add(errUnreachable(l, by))
		}
	}
	diags.Sort()
	return diags
}

// CheckGroup reports limits of one group that do not agree with the first. They
// share counters, so everything must be the same but for what a call costs and gets,
// which calls the limit applies to, and how each method spells the key, whose elements
// must be of the same kinds: an address is no text, and 7 not "7". The
// limits are those for which Limit reported no error.
func CheckGroup(limits []Limit) diag.List {
	var diags diag.List
	for i := range limits {
		l, first := &limits[i], &limits[0]
		for _, o := range shared {
			switch {
			case reflect.DeepEqual(o.of(l), o.of(first)):
			case o.name == optCount || o.name == optCostAfter:
				diags.Add(errGroupLacks(l, first, o.name))
			default:
				diags.Add(errGroupDiffers(l, first, o.name))
			}
		}
	}
	diags.Sort()
	return diags
}

// shared are the options that the limits of a group agree on.
var shared = []struct {
	name string
	of   func(l *Limit) any
}{
	{optMax, func(l *Limit) any { return [2]any{l.Max, l.MaxExpr != nil} }},
	{optWindow, func(l *Limit) any { return l.Window }},
	{optKey, func(l *Limit) any { return [2]any{l.Key == nil, l.Spelling.KeyKind} }},
	{optAlgorithm, func(l *Limit) any { return l.Algorithm }},
	{optBurst, func(l *Limit) any { return l.Burst }},
	{optInitial, func(l *Limit) any { return l.Initial }},
	{optRefill, func(l *Limit) any { return l.Refill }},
	{optWarmup, func(l *Limit) any { return l.Warmup }},
	{optSegments, func(l *Limit) any { return l.Segments }},
	{optAlign, func(l *Limit) any { return l.Align }},
	{optTZ, func(l *Limit) any { return l.TZ }},
	{optCostAfter, func(l *Limit) any { return l.CostAfter != nil }},
	{optCount, func(l *Limit) any { return l.Count != nil }},
	{optLock, func(l *Limit) any { return l.Lock }},
	{optLease, func(l *Limit) any { return l.Lease }},
	{optMaxWait, func(l *Limit) any { return l.MaxWait }},
	{optMaxQueue, func(l *Limit) any { return l.MaxQueue }},
	{optOnEmpty, func(l *Limit) any { return l.OnEmpty }},
	{optOnError, func(l *Limit) any { return l.OnError }},
	{optMode, func(l *Limit) any { return l.Mode }},
	{optStore, func(l *Limit) any { return l.Store }},
	{optMessage, func(l *Limit) any { return l.Message }},
	{optStatus, func(l *Limit) any { return l.Status }},
}

// sameIdentity returns the limit that has the identity of l, or nil.
func sameIdentity(l *Limit, earlier []*Limit) *Limit {
	for _, e := range earlier {
		if l.Name != e.Name || l.Group != e.Group {
			continue
		}
		if l.Name != "" || l.Group != "" || l.Algorithm == e.Algorithm && l.Window == e.Window && l.sameKey(e) {
			return e
		}
	}
	return nil
}

// unreachableBy returns a limit that keeps limits[i] from ever refusing a call. Of
// two that do so to each other, only the later is unreachable.
func unreachableBy(limits []*Limit, i int) *Limit {
	l := limits[i]
	for j, by := range limits {
		if j != i && implies(by, l) && (j < i || !implies(l, by)) {
			return by
		}
	}
	return nil
}

// implies reports whether every call that b admits is one that a admits too, so
// that a has no effect. Both count the same calls, since a refusal by one of them
// consumes nothing of the other; what remains is to compare the most that b lets
// through with the least that a may refuse at.
//
// Only limits with one key and one cost are compared, and of those only limits that
// really count the same: see comparable. A limit for all calls does bound the calls
// of each key, but a limit with a key also refuses calls that have none, and is not
// without effect. Unlimited and blocked are switches: what they do to other limits is
// meant.
func implies(b, a *Limit) bool {
	switch {
	case b.Mode != ratelimit.Enforce || a.Mode == ratelimit.Off:
		return false
	case !a.comparable() || !b.comparable():
		return false
	case !a.sameKey(b) || !a.sameCost(b) || !sameText(a.When, b.When, a.Spelling.When, b.Spelling.When),
		!sameText(a.Unless, b.Unless, a.Spelling.Unless, b.Spelling.Unless):
		return false
	case a.Key != nil && a.OnEmpty != b.OnEmpty || a.Store != b.Store || a.OnError != b.OnError:
		return false
	case a.sameWindows(b):
		return b.Max <= a.Max
	case a.Align != "" || b.Align != "":
		return false
	}
	switch a.Algorithm {
	case ratelimit.Concurrency:
		return b.Algorithm == ratelimit.Concurrency && b.Max <= a.Max && a.Lease == b.Lease
	case ratelimit.TokenBucket:
		return b.Algorithm != ratelimit.Concurrency && impliesBucket(b, a)
	}
	// a refuses when more than a.Max units fall into one interval of length span.
	span := a.span()
	switch b.Algorithm {
	case ratelimit.Concurrency:
		return false
	case ratelimit.TokenBucket:
		// b.capacity + b.Max*span/b.Window, rounded down, is at most a.Max.
		room := a.Max - b.capacity()
		return room >= 0 && lessProduct(b.Max, span, room+1, b.Window)
	case ratelimit.FixedWindow:
		return windows(span, b.Window)+1 <= a.Max/b.Max
	default:
		return windows(span, b.Window) <= a.Max/b.Max
	}
}

// comparable reports whether l counts just what it admits, each call at once and
// for as long as its window says. Of other limits implies does not judge.
func (l *Limit) comparable() bool {
	switch {
	case l.switched() || l.MaxExpr != nil,
		l.Count != nil || l.CostAfter != nil || l.Group != "",
		l.Initial != nil || l.Refill != ratelimit.Smooth || l.Warmup > 0,
		l.Algorithm == ratelimit.LeakyBucket || l.Algorithm == ratelimit.TimeQuota || l.Algorithm.IsCustom():
		return false
	}
	return true
}

// sameWindows reports whether the windows, or the parts of windows, of two limits
// that count the same calls begin and end together.
func (l *Limit) sameWindows(o *Limit) bool {
	return (l.Algorithm == ratelimit.FixedWindow || l.Algorithm == ratelimit.SlidingWindow) && l.Algorithm == o.Algorithm &&
		l.Window == o.Window && l.Segments == o.Segments && l.Align == o.Align && l.TZ == o.TZ
}

// span is the length of an interval that l counts in: no call counts for longer.
func (l *Limit) span() time.Duration {
	if l.Algorithm != ratelimit.SlidingWindow {
		return l.Window
	}
	segments := time.Duration(l.Segments)
	part := (l.Window + segments - 1) / segments
	// The runtime counts in microseconds.
	part = (part + time.Microsecond - 1) / time.Microsecond * time.Microsecond
	return part * (segments + 1)
}

// impliesBucket is implies for a token bucket a. It refuses when an interval of
// any length T sees more than a.capacity + a.Max*T/a.Window, so b must be no
// greater both at once (T = 0) and in the long run.
func impliesBucket(b, a *Limit) bool {
	atOnce := b.Max
	switch b.Algorithm {
	case ratelimit.TokenBucket:
		atOnce = b.capacity()
	case ratelimit.FixedWindow:
		atOnce = 2 * b.Max
	}
	return atOnce <= a.capacity() && !lessProduct(a.Max, b.Window, b.Max, a.Window)
}

func (l *Limit) sameKey(o *Limit) bool {
	return sameText(l.Key, o.Key, l.Spelling.Key, o.Spelling.Key)
}

func (l *Limit) sameCost(o *Limit) bool {
	if l.CostExpr != nil || o.CostExpr != nil {
		return sameText(l.CostExpr, o.CostExpr, l.Spelling.Cost, o.Spelling.Cost)
	}
	return l.Cost == o.Cost
}

func sameText(a, b *Value, spelledA, spelledB string) bool {
	switch {
	case a == nil || b == nil:
		return a == b
	case spelledA != "" && spelledB != "":
		return spelledA == spelledB
	}
	return strings.TrimSpace(a.Text) == strings.TrimSpace(b.Text)
}

// windows is how many windows of length w it takes to cover d.
func windows(d, w time.Duration) int64 {
	n := int64(d / w)
	if d%w != 0 {
		n++
	}
	return n
}

// lessProduct reports a*x < b*y for factors that are not negative.
func lessProduct(a int64, x time.Duration, b int64, y time.Duration) bool {
	hi1, lo1 := bits.Mul64(uint64(a), uint64(x))
	hi2, lo2 := bits.Mul64(uint64(b), uint64(y))
	return hi1 < hi2 || hi1 == hi2 && lo1 < lo2
}
