module github.com/ratelimitgen/ratelimitgen/examples

go 1.26.0

require (
	github.com/ratelimitgen/ratelimitgen v0.0.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/spf13/afero v1.15.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dave/jennifer v1.7.1 // indirect
	github.com/expr-lang/expr v1.17.8 // indirect
	github.com/rogpeppe/go-internal v1.16.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/mod v0.43.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.28.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)

replace github.com/ratelimitgen/ratelimitgen => ../

tool github.com/ratelimitgen/ratelimitgen/cmd/ratelimitgen
