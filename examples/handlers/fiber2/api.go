// Package fiber2 has limited handlers of github.com/gofiber/fiber/v2.
package fiber2

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

//go:generate go tool ratelimitgen

// API is a service with handlers.
type API struct{}

// Order is limited by the caller's address.
//
//ratelimit:max=2 window=1m key=ip
func (API) Order(c *fiber.Ctx) error { return c.SendString("order " + c.Params("id")) }

// Report is limited by address, route and tenant, and says no in words of its own.
//
//ratelimit:max=1 window=1m key=`[ip, route, request.header("X-Tenant")]` status=503 message="busy"
func (API) Report(c *fiber.Ctx) error { return c.SendString("report " + c.Params("id")) }

// Login counts only the logins that failed.
//
//ratelimit:max=1 window=1m key=`[ip, request.query("user")]` count=`err != nil`
func (API) Login(c *fiber.Ctx) error {
	if c.Query("password") != "secret" {
		return fiber.NewError(fiber.StatusUnauthorized, "wrong password")
	}
	return c.SendString("hello")
}

// Visit is limited by all that tells one request of an address from another.
//
//ratelimit:max=1 window=1m key=`[ip, method, path, request.cookie("seat") ?? "none"]`
func (API) Visit(c *fiber.Ctx) error { return c.SendString("visit " + c.Params("id")) }

// Status is a function, limited for all callers together.
//
//ratelimit:max=1 window=1m
func Status(c *fiber.Ctx) error { return c.SendString("up") }

// New returns the service with its limits.
func New(limiter *ratelimit.Limiter) *fiber.App {
	api := NewRateLimitedAPI(API{}, limiter)
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/orders/:id", api.Order)
	app.Get("/reports/:id", api.Report)
	app.Get("/login", api.Login)
	app.Get("/visits/:id", api.Visit)
	app.Post("/visits/:id", api.Visit)
	app.Get("/status", NewRateLimitedStatus(limiter))
	return app
}
