package ratelimit

// RunRatelimitgenAgainV1 is referred to by every generated file. Where it is
// undefined, the generated code and this package are of different generations:
// use the ratelimitgen of the same release as the runtime and generate again.
const RunRatelimitgenAgainV1 = true
