// Package waited has a call tell the store when it began, where it has waited for something
// else before it asks: the time for which it waits for an answer counts from then.
package waited

import (
	"context"
	"time"
)

type call struct {
	context.Context
	at time.Time
}

// Since returns ctx with the time at which the call began.
func Since(ctx context.Context, at time.Time) context.Context { return &call{ctx, at} }

// Start returns the time that Since has put in ctx, and whether it has. What others have made
// of that context says nothing any more.
func Start(ctx context.Context) (at time.Time, ok bool) {
	c, ok := ctx.(*call)
	if !ok {
		return time.Time{}, false
	}
	return c.at, true
}
