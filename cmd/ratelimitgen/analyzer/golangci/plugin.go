// Package golangci registers the analyzer with golangci-lint as the linter
// "ratelimit" of its module plugin system. It is a module of its own, so that nobody
// else depends on that.
//
// A golangci-lint that has it is built by golangci-lint custom, from a .custom-gcl.yml
// that names this module; docs/vet.md has one. golangci-lint itself is no dependency
// of this repository and is not built by its tests: what they cover ends where
// golangci-lint calls BuildAnalyzers.
package golangci

import (
	"strconv"
	"strings"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/ratelimitgen/ratelimitgen/cmd/ratelimitgen/analyzer"
)

func init() { register.Plugin(analyzer.Name, New) }

// settings are those of the linter in .golangci.yml. They mean what the flags of
// the analyzer mean, and have the same defaults.
type settings struct {
	Tests  bool     `json:"tests"`
	Allow  []string `json:"allow"`
	Output *bool    `json:"output"` // nil means true
}

// plugin is the linter with its settings.
type plugin struct{ settings settings }

// New makes the linter from its settings: tests (boolean), allow (list) and output
// (boolean), which are all optional. Others are an error.
func New(conf any) (register.LinterPlugin, error) {
	s, err := register.DecodeSettings[settings](conf)
	if err != nil {
		return nil, err
	}
	return &plugin{settings: s}, nil
}

// BuildAnalyzers returns the one analyzer, with its flags set.
func (p *plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	a := analyzer.New()
	values := map[string]string{
		"tests": strconv.FormatBool(p.settings.Tests),
		"allow": strings.Join(p.settings.Allow, ","),
	}
	if p.settings.Output != nil {
		values["output"] = strconv.FormatBool(*p.settings.Output)
	}
	for name, value := range values {
		if err := a.Flags.Set(name, value); err != nil {
			return nil, err
		}
	}
	return []*analysis.Analyzer{a}, nil
}

// GetLoadMode tells golangci-lint that the analyzer needs types.
func (p *plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
