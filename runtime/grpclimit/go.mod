module github.com/ratelimitgen/ratelimitgen/runtime/grpclimit

go 1.26.0

replace github.com/ratelimitgen/ratelimitgen => ../..

require (
	github.com/ratelimitgen/ratelimitgen v0.0.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)
