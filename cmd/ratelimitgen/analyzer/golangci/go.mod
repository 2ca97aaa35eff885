module github.com/ratelimitgen/ratelimitgen/cmd/ratelimitgen/analyzer/golangci

go 1.26.0

require (
	github.com/golangci/plugin-module-register v0.1.2
	github.com/ratelimitgen/ratelimitgen v0.0.0
	golang.org/x/tools v0.52.0
)

require (
	github.com/dave/jennifer v1.7.1 // indirect
	github.com/expr-lang/expr v1.17.8 // indirect
	golang.org/x/mod v0.43.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
)

replace github.com/ratelimitgen/ratelimitgen => ../../../..
