package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
)

// decisive are the variables of the go command that decide what it compiles
// packages to, and where it keeps that, but for those in costly. GOGCCFLAGS would be one,
// but takes several runs of the C compiler, and follows from the others.
var decisive = []string{
	"GOVERSION", "GOROOT", "GOTOOLDIR", "GOCACHE", "GOCACHEPROG", "GOMODCACHE", "GOFLAGS", "GOEXPERIMENT", "GODEBUG", "GOFIPS140",
	"GOOS", "GOARCH", "GO386", "GOAMD64", "GOARM", "GOARM64", "GOMIPS", "GOMIPS64", "GOPPC64", "GORISCV64", "GOWASM",
	"CGO_ENABLED", "CC", "CXX", "FC", "AR", "GOENV",
}

// costly are decisive variables for which the go command runs the C compiler if it is
// asked. They are what the environment says, or else one of two files.
var costly = []string{"PKG_CONFIG", "CGO_CFLAGS", "CGO_CPPFLAGS", "CGO_CXXFLAGS", "CGO_FFLAGS", "CGO_LDFLAGS"}

// environment holds the variables of the go command by name.
type environment map[string]string

// goEnv returns the decisive variables in dir. In place of the costly ones it has what
// they follow from: itself, it needs none of them.
func goEnv(ctx context.Context, dir string) (environment, error) {
	env, err := Environment(ctx, dir, decisive...)
	if err != nil {
		return nil, err
	}
	for _, name := range costly {
		env[name] = os.Getenv(name)
	}
	for _, name := range []string{env["GOENV"], filepath.Join(env["GOROOT"], "go.env")} {
		if filepath.IsAbs(name) {
			text, _ := readRegular(name) // the go command goes without it, too
			env[name] = string(text)
		}
	}
	return env, nil
}

// readRegular reads a file unless it may never end.
func readRegular(name string) ([]byte, error) {
	var b bytes.Buffer
	err := readInto(&b, name)
	return b.Bytes(), err
}

// Environment returns variables of the go command in dir, which its own configuration
// sets as well as the environment.
func Environment(ctx context.Context, dir string, names ...string) (map[string]string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"env", "-json"}, names...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if ctxErr := ctx.Err(); ctxErr != nil {
		return nil, ctxErr
	}
	var env environment
	if err == nil {
		err = json.Unmarshal(out, &env)
	}
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	return env, nil
}

// goCommandEnv returns the environment for a go command that lists packages. It ends
// so soon that collecting all garbage on the way costs it a tenth of its time; that
// it need not takes it some more megabytes.
func goCommandEnv() []string {
	env := os.Environ()
	if os.Getenv("GOGC") == "" {
		env = append(env, "GOGC=400")
	}
	return env
}

// sizes returns the sizes of the platform that the go command builds for.
func (e environment) sizes() (types.Sizes, error) {
	sizes := types.SizesFor("gc", e["GOARCH"])
	if sizes == nil {
		return nil, fmt.Errorf("go env: GOARCH is %q, whose sizes are not known", e["GOARCH"])
	}
	return sizes, nil
}
