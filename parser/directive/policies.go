package directive

import (
	"math/bits"
	"strings"
	"time"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// CheckLimits reports what is wrong with the limits of one method taken together:
// two with one identity, and limits that another makes unreachable. The limits
// are those for which Limit reported nothing, in the order written.
func CheckLimits(limits []Limit) diag.List {
	var diags diag.List
	var distinct []*Limit
	for i := range limits {
		if first := sameIdentity(&limits[i], distinct); first != nil {
			diags.Add(errDuplicate(&limits[i], first))
		} else {
			distinct = append(distinct, &limits[i])
		}
	}
	for i, l := range distinct {
		if by := unreachableBy(distinct, i); by != nil {
			diags.Add(errUnreachable(l, by))
		}
	}
	diags.Sort()
	return diags
}

// sameIdentity returns the limit that has the identity of l, or nil.
func sameIdentity(l *Limit, earlier []*Limit) *Limit {
	for _, e := range earlier {
		if l.Name != e.Name {
			continue
		}
		if l.Name != "" || l.Algorithm == e.Algorithm && l.Window == e.Window && l.sameKey(e) {
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
// Only limits with one key and one cost are compared. A limit for all calls does
// bound the calls of each key, but a limit with a key also refuses calls that have
// none, and is not without effect. Unlimited and blocked are switches: what they
// do to other limits is meant.
func implies(b, a *Limit) bool {
	switch {
	case b.Mode != ratelimit.Enforce || a.Mode == ratelimit.Off:
		return false
	case a.switched() || b.switched():
		return false
	case !a.sameKey(b) || !a.sameCost(b):
		return false
	}
	if a.Algorithm == ratelimit.TokenBucket {
		return impliesBucket(b, a)
	}
	// a refuses when more than a.Max units fall into one interval of length a.Window.
	switch b.Algorithm {
	case ratelimit.TokenBucket:
		// b.capacity + b.Max*a.Window/b.Window, rounded down, is at most a.Max.
		room := a.Max - b.capacity()
		return room >= 0 && lessProduct(b.Max, a.Window, room+1, b.Window)
	case ratelimit.FixedWindow:
		if a.Algorithm == ratelimit.FixedWindow && a.Window == b.Window {
			// The windows begin with the same call, so they never part.
			return b.Max <= a.Max
		}
		return windows(a.Window, b.Window)+1 <= a.Max/b.Max
	default:
		return windows(a.Window, b.Window) <= a.Max/b.Max
	}
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

func (l *Limit) sameKey(o *Limit) bool { return sameText(l.Key, o.Key) }

func (l *Limit) sameCost(o *Limit) bool {
	if l.CostExpr != nil || o.CostExpr != nil {
		return sameText(l.CostExpr, o.CostExpr)
	}
	return l.Cost == o.Cost
}

func sameText(a, b *Value) bool {
	if a == nil || b == nil {
		return a == b
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
