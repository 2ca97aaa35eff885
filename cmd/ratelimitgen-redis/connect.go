package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// redisURLEnv is the environment variable that says where the server is.
const redisURLEnv = "REDIS_URL"

// server says where a server is.
type server struct {
	addr, url string
	cluster   bool
}

// connect returns a client of it. It does not connect yet.
func (s *server) connect(env string) (redis.UniversalClient, error) {
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
