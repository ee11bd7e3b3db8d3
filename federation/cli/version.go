package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"gatehouse/federation/caller"
)

// known is the version that the linker set, or else what the build knows of the
// sources.
func known(version string) string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  nothing,
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return a.printJSON(map[string]string{"version": a.version, "go": runtime.Version()})
			}
			a.printf("gatehouse %s (%s)\n", a.version, runtime.Version())
			return nil
		},
	}
}

func (a *app) tokenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "token",
		Short: "Make a new caller token and its SHA-256",
		Args:  nothing,
		RunE: func(*cobra.Command, []string) error {
			token, digest := caller.NewToken()
			if a.json {
				return a.printJSON(map[string]string{"token": token, "sha256": "sha256:" + digest.String()})
			}
			a.printf("the token, shown this once, for the caller:\n  %s\n\nfor its [[caller]] in the configuration:\n  token = \"sha256:%s\"\n", token, digest)
			return nil
		},
	}
}
