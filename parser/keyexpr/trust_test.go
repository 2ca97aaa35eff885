package keyexpr

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"testing"
)

// imports finds packages in a map, and those of the standard library.
type imports map[string]*types.Package

func (im imports) Import(path string) (*types.Package, error) {
	if p := im[path]; p != nil {
		return p, nil
	}
	return importer.Default().Import(path)
}

func typeCheck(t *testing.T, im imports, path, src string) *types.Package {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	conf := types.Config{Importer: im}
	pkg, err := conf.Check(path, fset, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

// The contexts of frameworks are known by the path of their package and by the names
// of their methods, so these stand for the real ones, which examples/handlers uses.
func TestWhoChoosesAKeyAndWhatIsSecretInIt(t *testing.T) {
	t.Parallel()
	im := imports{}
	im["github.com/gin-gonic/gin"] = typeCheck(t, im, "github.com/gin-gonic/gin", `package gin
import "net/http"
type Context struct{ Request *http.Request }
func (c *Context) GetHeader(name string) string { return "" }
func (c *Context) Query(name string) string { return "" }
func (c *Context) ClientIP() string { return "" }
func (c *Context) GetString(name string) string { return "" }
`)
	im["github.com/labstack/echo/v4"] = typeCheck(t, im, "github.com/labstack/echo/v4", `package echo
import (
	"net/http"
	"net/url"
)
type Context interface {
	Cookies() []*http.Cookie
	QueryParams() url.Values
	Request() *http.Request
	RealIP() string
	Param(name string) string
	Get(name string) any
}
`)
	im["github.com/gofiber/fiber/v3"] = typeCheck(t, im, "github.com/gofiber/fiber/v3", `package fiber
type Ctx interface {
	Get(name string, otherwise ...string) string
	Cookies(name string, otherwise ...string) string
	Queries() map[string]string
	GetReqHeaders() map[string][]string
	IP() string
}
`)
	pkg := typeCheck(t, im, "example.com/app", `package app
import (
	"crypto/tls"
	"mime/multipart"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v3"
	"github.com/labstack/echo/v4"
)
func checked(token string) string { return token }
type API struct{}
func (API) Do(g *gin.Context, e echo.Context, f fiber.Ctx, r *http.Request, id string, crumb *http.Cookie, files *multipart.Form, hello *tls.ClientHelloInfo, labels map[string]string) {}
`)
	do, _, _ := types.LookupFieldOrMethod(pkg.Scope().Lookup("API").Type(), true, pkg, "Do")
	scope := &Scope{Pkg: pkg, Sig: do.(*types.Func).Signature(), Method: "Do", Request: true}
	for _, tc := range []struct {
		key            string
		chosen, secret bool
	}{
		{`id`, false, false},
		{`ip`, false, false},
		{`path`, true, false},
		{`route`, false, false},
		{`[ip, path]`, false, false},
		{`request.header("X-Tenant")`, true, false},
		{`request.header("X-Api-Key")`, true, true},
		{`request.header("X-Tenant") ?: ip`, true, false},
		{`user ?: request.header("A")`, true, false},
		{`user ?: ip`, false, false},
		{`request.header("A") startsWith "x" ? request.header("B") : user`, true, false},
		{`request.header("A") == "x" ? "a" : "b"`, false, false},
		{`checked(request.header("A"))`, false, false},
		{`checked(request.cookie("sid"))`, false, true},
		{`let t = request.header("A"); [t, method]`, true, false},
		{`lower(request.query("q"))`, true, false},
		{`r.Header.Get("A")`, true, false},
		{`r.Header.Get("Authorization")`, true, true},
		{`r.Header["Authorization"][0]`, true, true},
		{`r.FormValue("token")`, true, true},
		{`r.URL.Query().Get("session")`, true, true},
		{`r.Cookies()[0].Value`, true, true},
		{`r.CookiesNamed("sid")[0].Value`, true, true},
		{`map(r.Cookies(), .Value)[0]`, true, true},
		{`crumb.Value`, false, true},
		{`r.MultipartForm.Value["password"][0]`, true, true},
		{`r.MultipartForm.Value["q"][0]`, true, false},
		{`let form = r.MultipartForm; form.Value["password"][0]`, true, true},
		{`files.Value["password"][0]`, false, true},
		{`labels["token"]`, false, false}, // not of a request
		{`r.TLS.ServerName`, true, false},
		{`[ip, r.TLS.ServerName]`, false, false},
		{`string(r.TLS.PeerCertificates[0].Raw)`, false, false},
		{`r.TLS.PeerCertificates[0].Subject.CommonName`, false, false},
		{`hello.ServerName`, true, false},
		{`r.URL.Path`, true, false},
		{`r.Method`, false, false},
		{`r.RemoteAddr`, true, false},
		{`r.Header.Get("A") ?: r.RemoteAddr`, true, false},
		{`g.Query("q")`, true, false},
		{`g.GetHeader("Authorization")`, true, true},
		{`g.Request.Header.Get("A")`, true, false},
		{`g.Request.Header.Get("Authorization")`, true, true},
		{`g.ClientIP()`, true, false}, // gin trusts every proxy unless told otherwise
		{`g.GetString("user")`, false, false},
		{`g.Request.MultipartForm.Value["password"][0]`, true, true},
		{`e.Param("id")`, true, false},
		{`e.Cookies()[0].Value`, true, true},
		{`e.QueryParams()["token"][0]`, true, true},
		{`e.QueryParams()["q"][0]`, true, false},
		{`e.RealIP()`, false, false},
		{`e.Request().Header.Get("X-Token")`, true, true},
		{`f.Get("A")`, true, false},
		{`f.Get("Authorization")`, true, true},
		{`f.Cookies("sid")`, true, true},
		{`f.Queries()["token"]`, true, true},
		{`f.Queries()["q"]`, true, false},
		{`f.GetReqHeaders()["Authorization"][0]`, true, true},
		{`f.IP()`, false, false},
	} {
		k, problems := ParseKey(tc.key, scope)
		chosen := false
		for _, p := range problems {
			if p.Code == "key-trust" {
				chosen = true
			} else {
				t.Errorf("%s: %s", tc.key, p.Message)
			}
		}
		if k == nil {
			continue
		}
		secret := false
		for _, n := range k.Elems {
			secret = secret || Credential(n)
		}
		if chosen != tc.chosen || secret != tc.secret {
			t.Errorf("%s: chosen by the client %v, secret %v", tc.key, chosen, secret)
		}
	}
}
