package main

import "context"

// Service has a method for each key that is measured.
type Service struct{}

// Request is what keys are computed from.
type Request struct {
	UserID string
	Email  string
	Shard  uint64
	Tenant *Tenant
}

// Tenant is where a request comes from.
type Tenant struct{ Name string }

// Field has a field of a parameter for its key.
//
//ratelimit:max=5 key=req.UserID
func (Service) Field(ctx context.Context, req *Request) error { return nil }

// Tuple has two elements.
//
//ratelimit:max=5 key=`[req.UserID, req.Tenant.Name]`
func (Service) Tuple(ctx context.Context, req *Request) error { return nil }

// Joined joins text.
//
//ratelimit:max=5 key=`lower(req.Email) + "|" + string(req.Shard % 16)`
func (Service) Joined(ctx context.Context, req *Request) error { return nil }
