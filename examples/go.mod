module github.com/ratelimitgen/ratelimitgen/examples

go 1.26.0

require github.com/ratelimitgen/ratelimitgen v0.0.0

replace github.com/ratelimitgen/ratelimitgen => ../

tool github.com/ratelimitgen/ratelimitgen/cmd/ratelimitgen
