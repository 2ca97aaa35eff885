module github.com/ratelimitgen/ratelimitgen/runtime/connectlimit

go 1.26.0

replace github.com/ratelimitgen/ratelimitgen => ../..

require (
	connectrpc.com/connect v1.21.1
	github.com/ratelimitgen/ratelimitgen v0.0.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1
	google.golang.org/protobuf v1.36.12
)
