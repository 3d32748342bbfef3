// Package config reads the files in which a person already has MCP servers: those of
// Claude Desktop, Claude Code, VS Code, Copilot, Cursor, goose, opencode, crush, kit,
// LibreChat and the Inspector, and Parley's own parley.jsonc. It starts nothing, connects
// to nothing, and writes parley.jsonc alone.
//
//	c, err := config.Load(nil)
//	if err != nil {
//		return err
//	}
//	for _, s := range c.Servers {
//		fmt.Println(s.Name, s.Source, s.Address())
//	}
//	for _, p := range c.Problems {
//		fmt.Fprintln(os.Stderr, p)
//	}
//
// A file that cannot be read, or an entry that cannot be started, hides no other: it is
// one of Config.Problems, or has Server.Err. Each file is read in the dialect of its
// client: names of members, variables, units of time. What a client permits or denies
// becomes rules of package policy.
//
// # Files that others wrote
//
// A file in the folder of a project was written by the authors of its repository. Its
// servers have NeedsConsent, and a Digest that changes when the entry does. Its variables
// are expanded for processes on this machine, never into the URL or the headers of a
// server elsewhere. Its rules restrict and never allow, unless Options.Approved says that
// the person agreed to that very text. It never says that a server is trusted.
//
// # Secrets
//
// Errors, problems and notes show names and lines. They never show values of env and
// headers, nor the user and the query of a URL. Fields of Server do.
package config
