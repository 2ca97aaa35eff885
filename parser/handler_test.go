package parser

import (
	"go/importer"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shape makes the signature of a method with one parameter, a type of the package
// with that path or a pointer to it, and a result if it returns an error.
func shape(pkg *types.Package, name string, pointer, fails bool) *types.Signature {
	var t types.Type = types.NewNamed(types.NewTypeName(0, pkg, name, nil), types.NewStruct(nil, nil), nil)
	if pkg.Path() == "net/http" {
		t = pkg.Scope().Lookup(name).Type()
	}
	if pointer {
		t = types.NewPointer(t)
	}
	var results []*types.Var
	if fails {
		results = append(results, types.NewParam(0, nil, "", types.Universe.Lookup("error").Type()))
	}
	return types.NewSignatureType(nil, nil, nil, types.NewTuple(types.NewParam(0, nil, "c", t)), types.NewTuple(results...), false)
}

func TestHandlersAreKnownByModuleMajorVersionAndType(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		path, name string
		pointer    bool
		fails      bool // whether a handler of the framework returns an error
		carrier    Carrier
	}{
		{"github.com/gin-gonic/gin", "Context", true, false, GinCarrier},
		{"github.com/gin-gonic/gin", "Context", false, false, NoCarrier},
		{"github.com/gin-gonic/gin", "Engine", true, false, NoCarrier},
		{"github.com/gin-gonic/gin/v2", "Context", true, false, NoCarrier},
		{"example.com/gin", "Context", true, false, NoCarrier},
		{"github.com/labstack/echo/v4", "Context", false, true, EchoCarrier},
		{"github.com/labstack/echo/v4", "Context", true, true, NoCarrier},
		{"github.com/labstack/echo/v5", "Context", true, true, EchoCarrier},
		{"github.com/labstack/echo/v5", "Context", false, true, NoCarrier},
		{"github.com/labstack/echo", "Context", false, true, NoCarrier},
		{"github.com/labstack/echo/v6", "Context", true, true, NoCarrier},
		{"github.com/gofiber/fiber/v2", "Ctx", true, true, FiberCarrier},
		{"github.com/gofiber/fiber/v2", "Ctx", false, true, NoCarrier},
		{"github.com/gofiber/fiber/v3", "Ctx", false, true, Fiber3Carrier},
		{"github.com/gofiber/fiber/v3", "Ctx", true, true, NoCarrier},
		{"github.com/gofiber/fiber/v3", "App", false, true, NoCarrier},
		{"github.com/gofiber/fiber", "Ctx", true, true, NoCarrier},
	} {
		pkg := types.NewPackage(tc.path, "framework")
		sig := shape(pkg, tc.name, tc.pointer, tc.fails)
		if _, got := carrierOf(sig); got != tc.carrier || isHandler(sig) != (tc.carrier != NoCarrier) {
			t.Errorf("%v: carrier %q, handler %t, want %q", sig, got, isHandler(sig), tc.carrier)
		}
		// With the result of another framework it tells who is calling, and no more.
		sig = shape(pkg, tc.name, tc.pointer, !tc.fails)
		if _, got := carrierOf(sig); got != tc.carrier || isHandler(sig) {
			t.Errorf("%v: carrier %q, handler %t, want %q and no handler", sig, got, isHandler(sig), tc.carrier)
		}
	}
}

func TestHandlersOfNetHTTPTakeAWriterAndARequest(t *testing.T) {
	t.Parallel()
	http, err := importer.Default().Import("net/http")
	if err != nil {
		t.Fatal(err)
	}
	request := shape(http, "Request", true, false)
	writer := shape(http, "ResponseWriter", false, false).Params().At(0)
	for name, tc := range map[string]struct {
		params  []*types.Var
		results *types.Tuple
		want    bool
	}{
		"writer and request":            {[]*types.Var{writer, request.Params().At(0)}, nil, true},
		"request and writer":            {[]*types.Var{request.Params().At(0), writer}, nil, false},
		"request alone":                 {[]*types.Var{request.Params().At(0)}, nil, false},
		"writer, request and more":      {[]*types.Var{writer, request.Params().At(0), writer}, nil, false},
		"writer and request by value":   {[]*types.Var{writer, shape(http, "Request", false, false).Params().At(0)}, nil, false},
		"writer and request, and error": {[]*types.Var{writer, request.Params().At(0)}, shape(http, "Request", true, true).Results(), false},
	} {
		if got := isHandler(types.NewSignatureType(nil, nil, nil, types.NewTuple(tc.params...), tc.results, false)); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// Who limits handlers of one framework does not depend on the others.
func TestOurModulesDoNotDependOnFrameworks(t *testing.T) {
	t.Parallel()
	modules, err := filepath.Glob("../runtime/*/go.mod")
	if err != nil || len(modules) == 0 {
		t.Fatalf("no modules: %v", err)
	}
	for _, name := range append(modules, "../go.mod") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range carriers {
			if c.path != "context" && c.path != "net/http" && strings.Contains(string(text), c.path+" ") {
				t.Errorf("%s requires %s", name, c.path)
			}
		}
	}
}
