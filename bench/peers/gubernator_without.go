//go:build !gubernator

package main

// Gubernator's package needs the clients of Kubernetes and etcd, which take minutes
// to compile; so only runs that ask for it do.
var gubernators = []contestant{{
	name: "gubernator/v2 v2.13.0", keys: exactly,
	note: "not measured: the program was built without -tags gubernator",
}}
