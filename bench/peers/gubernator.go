//go:build gubernator

package main

import (
	"context"
	"io"
	"time"

	gubernator "github.com/gubernator-io/gubernator/v2"
	"github.com/sirupsen/logrus"
)

var gubernators = []contestant{{
	name: "gubernator/v2 v2.13.0", keys: exactly, waits: true, slow: true,
	note: "WorkerPool.GetRateLimit, without its server and peers; TOKEN_BUCKET refills at the end of each interval, ms; decided in goroutines; the least recently used keys are forgotten; first calls are those of 100,000 keys",
	open: func(p policy) (limiter, func()) {
		log := logrus.New()
		log.SetOutput(io.Discard)
		conf := gubernator.Config{Logger: log, CacheSize: 3 * keyCount}
		must(conf.SetDefaults())
		pool := gubernator.NewWorkerPool(&conf)
		ctx := context.Background()
		return func(key string) bool {
			now := time.Now().UnixMilli()
			r, err := pool.GetRateLimit(ctx, &gubernator.RateLimitReq{
				Name: "p", UniqueKey: key, Hits: 1, Limit: int64(p.limit), Duration: p.window.Milliseconds(),
				Algorithm: gubernator.Algorithm_TOKEN_BUCKET, CreatedAt: &now,
			}, gubernator.RateLimitReqState{IsOwner: true})
			return err == nil && r.Status == gubernator.Status_UNDER_LIMIT
		}, func() { must(pool.Close()) }
	},
}}
