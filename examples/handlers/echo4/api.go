// Package echo4 has limited handlers of github.com/labstack/echo/v4.
package echo4

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

//go:generate go tool ratelimitgen

// API is a service with handlers.
type API struct{}

// Order is limited by the caller's address.
//
//ratelimit:max=2 window=1m key=ip
func (API) Order(c echo.Context) error { return c.String(http.StatusOK, "order "+c.Param("id")) }

// Report is limited by address, route and tenant, and says no in words of its own.
//
//ratelimit:max=1 window=1m key=`[ip, route, request.header("X-Tenant")]` status=503 message="busy"
func (API) Report(c echo.Context) error { return c.String(http.StatusOK, "report "+c.Param("id")) }

// Login counts only the logins that failed.
//
//ratelimit:max=1 window=1m key=`[ip, request.query("user")]` count=`err != nil`
func (API) Login(c echo.Context) error {
	if c.QueryParam("password") != "secret" {
		return echo.NewHTTPError(http.StatusUnauthorized, "wrong password")
	}
	return c.String(http.StatusOK, "hello")
}

// Visit is limited by all that tells one request of an address from another.
//
//ratelimit:max=1 window=1m key=`[ip, method, path, request.cookie("seat") ?? "none"]`
func (API) Visit(c echo.Context) error { return c.String(http.StatusOK, "visit "+c.Param("id")) }

// Status is a function, limited for all callers together.
//
//ratelimit:max=1 window=1m
func Status(c echo.Context) error { return c.String(http.StatusOK, "up") }

// New returns the service with its limits.
func New(limiter *ratelimit.Limiter) http.Handler {
	api := NewRateLimitedAPI(API{}, limiter)
	e := echo.New()
	e.GET("/orders/:id", api.Order)
	e.GET("/reports/:id", api.Report)
	e.GET("/login", api.Login)
	e.GET("/visits/:id", api.Visit)
	e.POST("/visits/:id", api.Visit)
	e.GET("/status", NewRateLimitedStatus(limiter))
	return e
}
