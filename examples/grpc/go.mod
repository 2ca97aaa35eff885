module github.com/ratelimitgen/ratelimitgen/examples/grpc

go 1.26.0

replace (
	github.com/ratelimitgen/ratelimitgen => ../..
	github.com/ratelimitgen/ratelimitgen/runtime/connectlimit => ../../runtime/connectlimit
	github.com/ratelimitgen/ratelimitgen/runtime/grpclimit => ../../runtime/grpclimit
)

tool github.com/ratelimitgen/ratelimitgen/cmd/ratelimitgen

require (
	connectrpc.com/connect v1.21.1
	github.com/ratelimitgen/ratelimitgen v0.0.0
	github.com/ratelimitgen/ratelimitgen/runtime/connectlimit v0.0.0
	github.com/ratelimitgen/ratelimitgen/runtime/grpclimit v0.0.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/dave/jennifer v1.7.1 // indirect
	github.com/expr-lang/expr v1.17.8 // indirect
	github.com/rogpeppe/go-internal v1.16.0 // indirect
	golang.org/x/mod v0.43.0 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
)
