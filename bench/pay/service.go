// Package pay has a limited service for measurements: what is measured is the
// code that ratelimitgen writes for it, with nothing behind it.
package pay

import "context"

// Service does nothing, so that a call costs what its limits cost. The limits are
// so high that no machine reaches them, but for Refuse's.
type Service struct{}

// TokenBucket has one limit per account.
//
//ratelimit:max=90000000 window=1s algorithm=token-bucket key=account
func (s *Service) TokenBucket(ctx context.Context, account string) error { return nil }

// FixedWindow has one limit per account.
//
//ratelimit:max=1000000000 window=1s algorithm=fixed-window key=account
func (s *Service) FixedWindow(ctx context.Context, account string) error { return nil }

// SlidingLog has one limit per account. The log is as long as it may be, and a
// call in a microsecond of its own leaves it before it is full.
//
//ratelimit:max=4096 window=1us algorithm=sliding-log key=account
func (s *Service) SlidingLog(ctx context.Context, account string) error { return nil }

// ByAddress has one limit per address of the caller.
//
//ratelimit:max=90000000 window=1s algorithm=token-bucket key=ip
func (s *Service) ByAddress(ctx context.Context) error { return nil }

// TwoPolicies has a limit per account and one for all accounts.
//
//ratelimit:max=90000000 window=1s algorithm=token-bucket key=account
//ratelimit:max=80000000 window=1s algorithm=token-bucket
func (s *Service) TwoPolicies(ctx context.Context, account string) error { return nil }

// Refuse admits one call per account and day.
//
//ratelimit:max=1 window=1d algorithm=token-bucket key=account
func (s *Service) Refuse(ctx context.Context, account string) error { return nil }

// Hot has a limit per account that a run of bench/peers does not use up.
//
//ratelimit:max=90000000 window=1h algorithm=token-bucket key=account
func (s *Service) Hot(ctx context.Context, account string) error { return nil }

// Wide is Hot with a unit that takes half a minute to come back.
//
//ratelimit:max=1000000 window=365d algorithm=token-bucket key=account
func (s *Service) Wide(ctx context.Context, account string) error { return nil }

// Few admits five calls per account and hour.
//
//ratelimit:max=5 window=1h algorithm=token-bucket key=account
func (s *Service) Few(ctx context.Context, account string) error { return nil }
