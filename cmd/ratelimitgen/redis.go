package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/cli"
)

// redisProgram does what the verb redis is asked for. It is a program of its own because
// a client of Redis doubles the size of a binary in which packages call methods by
// reflection, as that of the expressions does, and because it would be a dependency of
// all modules that have ratelimitgen for a tool.
//
// Nobody compares its version with ours. All we do is to pass arguments on, and those
// that we do not know it may know. What has to fit is how the services count, of which
// neither program can know the version: it is in the names of their counters, see package
// redisstore, and where a scan finds names that it does not know, ratelimitgen-redis says
// so and leaves them alone. Its own version is told by "ratelimitgen redis version".
const redisProgram = "ratelimitgen-redis"

// redis looks at counters in Redis, or changes them.
func (c *command) redis(args []string) int {
	path, err := findRedis()
	if err != nil {
		get := "github.com/ratelimitgen/ratelimitgen/cmd/" + redisProgram + "@" + installable(cli.Version())
		text := fmt.Sprintf("redis is done by the program %s, which is %v; install it by\n\tgo install %s\nor run it as\n\tgo run %s inspect|reset|block [flags] [keys]", redisProgram, err, get, get)
		if word, _ := splitWord(args); word == "help" {
			fmt.Fprintf(c.stdout, "usage: ratelimitgen redis inspect|reset|block [flags] [keys]\n\nPrints, resets and blocks what services count in Redis.\n%s\nOnce it is there, ratelimitgen redis -h prints its flags.\n", text)
			return exitDone
		}
		return c.trouble(errors.New(text))
	}
	code, err := become(path, args)
	if err != nil {
		return c.trouble(fmt.Errorf("running %s: %w", path, err))
	}
	return code
}

// findRedis returns the path of redisProgram: beside this program, where go install puts
// both, or else in PATH. The error says where it is not.
func findRedis() (string, error) {
	var dirs []string
	if self, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(self))
		if target, err := filepath.EvalSymlinks(self); err == nil {
			dirs = append(dirs, filepath.Dir(target))
		}
	}
	dirs = slices.Compact(dirs)
	for _, dir := range dirs {
		if path, err := exec.LookPath(filepath.Join(dir, redisProgram)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(redisProgram)
	if errors.Is(err, exec.ErrDot) {
		return "", errors.New("only found by a relative path in PATH, from where nothing is run")
	} else if err != nil {
		return "", fmt.Errorf("neither in %s nor in PATH", strings.Join(dirs, ", "))
	}
	return path, nil
}

// installable is what stands behind the '@' to get a program of our version, or of the
// latest where ours is not one that was published.
func installable(version string) string {
	if !strings.HasPrefix(version, "v") || strings.Contains(version, "+dirty") {
		return "latest"
	}
	return version
}
