package ratelimit

import "time"

// Decision is what a gate decided about one call. Where a method has several
// policies it speaks of the one that says most: of a refusal, the refusing policy
// with the longest RetryAfter; of an admission, the policy with the least
// Remaining. A policy in shadow mode is spoken of only if the method has no policy
// that is enforced.
type Decision struct {
	// Allowed tells whether the call may proceed.
	Allowed bool
	// Policy is the ID of the policy that the other fields speak of.
	Policy string
	// Limit is the capacity of the policy: its burst for a bucket that has one, its
	// limit otherwise; 0 if it is Blocked.
	Limit int64
	// Remaining is the greatest cost that would be admitted now: 0..Limit. Of a
	// TimeQuota it is the microseconds that are left.
	Remaining int64
	// RetryAfter is how long to wait until the same call is admitted if nobody
	// else calls and no call ends; 0 if it was admitted, Never if waiting does not
	// help.
	RetryAfter time.Duration
	// Delay is how long an admitted call has to wait for its turn in a LeakyBucket, or
	// for the time that Reserve found. Take and Reserve leave it to the caller to wait;
	// Allow, Wait and Acquire have waited.
	Delay time.Duration
	// ResetAt is when the counter will be as new if nobody calls. It is zero if
	// nothing is counted: for Blocked and Unlimited, and for gates that are off.
	ResetAt time.Time
	// Degraded is set if the decision was not made by the store that was asked, or
	// not by a counter of the key's own; see WithMaxKeys.
	Degraded bool
	// Shadow is set if a policy in shadow mode would have refused the call.
	Shadow bool
}

// Never is the RetryAfter of a call that no waiting can get admitted.
const Never time.Duration = 1<<63 - 1
