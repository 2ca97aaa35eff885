// Package gin has limited handlers of github.com/gin-gonic/gin.
package gin

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

//go:generate go tool ratelimitgen

// API is a service with handlers.
type API struct{}

// Order is limited by the caller's address.
//
//ratelimit:max=2 window=1m key=ip
func (API) Order(c *gin.Context) { c.String(http.StatusOK, "order "+c.Param("id")) }

// Report is limited by address, route and tenant, and says no in words of its own.
//
//ratelimit:max=1 window=1m key=`[ip, route, request.header("X-Tenant")]` status=503 message="busy"
func (API) Report(c *gin.Context) { c.String(http.StatusOK, "report "+c.Param("id")) }

// Login counts only the logins that failed.
//
//ratelimit:max=1 window=1m key=`[ip, request.query("user")]` count=`c.Writer.Status() == 401`
func (API) Login(c *gin.Context) {
	if c.Query("password") != "secret" {
		c.String(http.StatusUnauthorized, "wrong password")
		return
	}
	c.String(http.StatusOK, "hello")
}

// Visit is limited by all that tells one request of an address from another.
//
//ratelimit:max=1 window=1m key=`[ip, method, path, request.cookie("seat") ?? "none"]`
func (API) Visit(c *gin.Context) { c.String(http.StatusOK, "visit "+c.Param("id")) }

// Status is a function, limited for all callers together.
//
//ratelimit:max=1 window=1m
func Status(c *gin.Context) { c.String(http.StatusOK, "up") }

// New returns the service with its limits.
func New(limiter *ratelimit.Limiter) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	api := NewRateLimitedAPI(API{}, limiter)
	r := gin.New()
	r.GET("/orders/:id", api.Order)
	r.GET("/reports/:id", api.Report)
	r.GET("/login", api.Login)
	r.GET("/visits/:id", api.Visit)
	r.POST("/visits/:id", api.Visit)
	r.GET("/status", NewRateLimitedStatus(limiter))
	return r
}
