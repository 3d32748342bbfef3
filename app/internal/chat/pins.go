package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/policy"
)

func (st *settings) pinsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pins",
		Short: "List, show and forget the tool definitions that you approved",
		Long: `List the definitions that you approved: tools, servers' instructions, and the servers
and rules of project files. If a definition changes, Parley asks again. After you
forget a definition, Parley asks at its next use, or stores it again if a rule allows
the call.`,
		Example: `  parley pins
  parley pins show files write_file
  parley pins forget files`,
		Args: kit.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.WithStore(func(db *local.DB) error { return st.listPins(cmd.Context(), db) })
		},
	}
	st.JSONFlag(cmd) // not those below it
	show := &cobra.Command{
		Use: "show SERVER [TOOL]", Short: "Show an approved definition; without TOOL the server's instructions",
		Args: kit.UsageArgs(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return connect.WithStore(func(db *local.DB) error { return st.showPins(cmd.Context(), db, args) })
		},
	}
	st.JSONFlag(show)
	cmd.AddCommand(show, &cobra.Command{
		Use: "forget SERVER [TOOL]", Short: "Forget the definition of a tool, or all definitions of a server",
		Args: kit.UsageArgs(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return connect.WithStore(func(db *local.DB) error { return st.forgetPins(cmd.Context(), db, args) })
		},
	})
	return cmd
}

// pinServer is the name of a server in the key of a pin, and the digest of its entry that
// tells apart two servers of one name; see host.PinKey.
func pinServer(key host.PinKey) (name, entry string) {
	i := strings.LastIndex(key.Server, " ")
	if i < 0 || len(key.Server)-i-1 != pinDigits || strings.Trim(key.Server[i+1:], "0123456789abcdef") != "" {
		return key.Server, ""
	}
	return key.Server[:i], key.Server[i+1:]
}

// pinDigits is how many digits tell entries apart.
const pinDigits = 16

// A listedPin is a pin in the JSON of 'parley pins'.
type listedPin struct {
	Server string    `json:"server"`
	Entry  string    `json:"entry,omitzero"`
	Tool   string    `json:"tool,omitzero"`
	Digest string    `json:"digest"`
	Time   time.Time `json:"time"`
}

func (st *settings) listPins(ctx context.Context, db *local.DB) error {
	list, err := db.Pins(ctx, "")
	if err != nil {
		return err
	}
	listed := make([]listedPin, 0, len(list))
	for i := range list {
		pin := &list[i]
		server, entry := pinServer(pin.PinKey)
		listed = append(listed, listedPin{server, entry, pin.Tool, pin.Digest, pin.Time})
	}
	if st.JSON {
		return st.PrintJSON(struct {
			Pins []listedPin `json:"pins"`
		}{listed})
	}
	var t kit.Table
	for _, pin := range listed {
		t.Add(pin.Server, fmt.Sprintf("%s  %s  %s", pin.Time.Local().Format(time.DateTime), shortDigest(pin.Digest), pinAbout(pin.Tool)))
	}
	return st.Print(t.String())
}

// pinAbout names what a pin is about.
func pinAbout(tool string) string {
	if tool == "" {
		return "(its instructions)"
	}
	return tool
}

// shortDigest is the beginning of a digest, which is enough to see that two differ.
func shortDigest(digest string) string {
	const digits = 12
	short := strings.TrimPrefix(digest, "sha256:")
	return short[:min(len(short), digits)]
}

// findPins are the pins of a server, or of one tool of it.
func findPins(ctx context.Context, db *local.DB, server string, wanted func(tool string) bool) ([]host.Pin, error) {
	list, err := db.Pins(ctx, "")
	if err != nil {
		return nil, err
	}
	var found []host.Pin
	for i := range list {
		if name, _ := pinServer(list[i].PinKey); (name == server || list[i].Server == server) && wanted(list[i].Tool) {
			found = append(found, list[i])
		}
	}
	if len(found) == 0 {
		return nil, kit.Usagef("no approved definition has that name; run 'parley pins' to list them")
	}
	return found, nil
}

// showPins shows what was agreed to. Servers of one name may have several.
func (st *settings) showPins(ctx context.Context, db *local.DB, args []string) error {
	wanted := append(args, "")[1]
	found, err := findPins(ctx, db, args[0], func(tool string) bool { return tool == wanted })
	if err != nil {
		return err
	}
	for i := range found {
		pin := &found[i]
		if st.JSON {
			if err := st.PrintJSON(pin); err != nil {
				return err
			}
			continue
		}
		server, entry := pinServer(pin.PinKey)
		if len(found) > 1 {
			server += " (entry " + entry + ")"
		}
		head := fmt.Sprintf("%s of server %s, agreed to at %s, %s:", pinAbout(pin.Tool), server, pin.Time.Local().Format(time.DateTime), pin.Digest)
		if err := st.Println(host.EscapeLine(head) + "\n" + host.Indent(pin.Definition)); err != nil {
			return err
		}
	}
	return nil
}

// forgetPins forgets what was agreed to, and notes that in the audit log.
func (st *settings) forgetPins(ctx context.Context, db *local.DB, args []string) error {
	found, err := findPins(ctx, db, args[0], func(tool string) bool { return len(args) == 1 || tool == args[1] })
	if err != nil {
		return err
	}
	for i := range found {
		pin := &found[i]
		server, _ := pinServer(pin.PinKey)
		entry := &host.AuditEntry{Time: time.Now(), Event: "unpinned", Kind: policy.KindTool, Server: server, Name: pin.Tool, Why: pin.Digest}
		if err := errors.Join(db.DeletePin(ctx, pin.PinKey), db.Audit(ctx, entry)); err != nil {
			return err
		}
		st.Note("Forgotten: %s of server %s.", host.EscapeLine(pinAbout(pin.Tool)), host.EscapeLine(server))
	}
	return nil
}
