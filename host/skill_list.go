package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/transport"
)

// Bounds of what is kept of the list of one server. Every skill beyond can be loaded by
// its URI.
const (
	maxListedSkills = 2_000
	maxListedBytes  = 8 << 20
)

var (
	// errSlowSkills says that a list of skills has no end.
	errSlowSkills = errors.New("the server did not list its skills in time")
	// errManySkills says that not all skills are kept.
	errManySkills = fmt.Errorf("it lists more than %d skills, or %d MiB of them; the others can be loaded by their URIs", maxListedSkills, maxListedBytes>>20)
)

// beginSkills lists the skills of a server that offers some, and again as its resources
// change, until the function that it returns is called. It goes on beside the listing of
// tools, which it never holds up.
func (cn *connection) beginSkills(ctx context.Context) (end func()) {
	s := cn.s
	if s.host.skills == nil {
		return func() {}
	}
	offers, err := s.host.skills.offers(cn.client)
	if err != nil {
		s.publish(ctx, func() { s.status.SkillsErr = err })
	}
	if !offers {
		return func() {}
	}
	s.publish(ctx, func() { s.unlisted, s.status.OffersSkills = true, true })
	ctx, cancel := context.WithCancel(ctx)
	var listing sync.WaitGroup
	listing.Go(func() { cn.serveSkills(ctx) })
	return func() {
		cancel()
		listing.Wait()
	}
}

// serveSkills lists the skills until ctx ends.
func (cn *connection) serveSkills(ctx context.Context) {
	l := newListings()
	defer l.timer.Stop()
	l.ended(cn.listSkills(ctx))
	for {
		select {
		case <-ctx.Done():
			return
		case <-cn.s.skillNotices:
			l.noticed()
		case <-l.timer.C:
			l.begin()
			l.ended(cn.listSkills(ctx))
		}
	}
}

// listSkills lists the entries and publishes them. It reads no file. What was listed
// before stays until then, and if there is an error.
//
// SEP-2640, Lazy Retrieval: "Hosts MUST NOT retrieve a skill's files ahead of need,
// whether on connection, on listing, or at approval."
func (cn *connection) listSkills(ctx context.Context) error {
	s := cn.s
	limited, cancel := transport.WithTimeout(ctx, orDefault(s.spec.ListTimeout, s.host.opts.ListTimeout), errSlowSkills)
	defer cancel()
	list, err := s.host.allSkills(limited, cn.client, &s.spec)
	if err != nil && limited.Err() != nil {
		err = context.Cause(limited)
	}
	s.publish(ctx, func() {
		s.unlisted, s.status.SkillsErr = false, err
		if err == nil || errors.Is(err, errManySkills) || s.skills == nil {
			s.skills, s.status.Skills = list, len(list)
		}
	})
	if errors.Is(err, errManySkills) {
		return nil // to list them again does not help
	}
	return err
}

// allSkills reads the list, in order of URI.
func (h *Host) allSkills(ctx context.Context, c *client.Client, spec *Server) ([]*Skill, error) {
	list, err := h.readSkills(ctx, c, spec)
	slices.SortFunc(list, func(a, b *Skill) int { return cmp.Compare(a.URI, b.URI) })
	return list, err
}

// readSkills reads the list. A URI that comes twice is kept once.
func (h *Host) readSkills(ctx context.Context, c *client.Client, spec *Server) (list []*Skill, err error) {
	defer recovered(h.opts.Logger, "Skills.List", &err)
	seen := make(map[string]bool)
	size := 0
	for raw, listErr := range h.opts.Skills.List(ctx, c) {
		if listErr != nil {
			return list, fmt.Errorf("listing its skills: %w", listErr)
		}
		if size += len(raw); len(list) == maxListedSkills || size > maxListedBytes {
			return list, errManySkills
		}
		k := newSkill(spec, raw, h.opts.Skills.Check(raw))
		if seen[k.URI] && k.URI != "" {
			continue
		}
		seen[k.URI] = true
		k.Hidden = h.opts.Policy.Hides(&policy.Query{Kind: policy.KindSkill, Server: spec.Name, Name: k.URI})
		list = append(list, k)
	}
	return list, nil
}

// skillClient returns the client of a server that has skills, and the entry of the server
// that the connection is of.
func (h *Host) skillClient(ctx context.Context, server string) (*client.Client, *Server, error) {
	if h.skills == nil {
		return nil, nil, errors.New("this host loads no skills")
	}
	c, spec, err := h.clientOf(ctx, server)
	if err != nil {
		return nil, nil, err
	}
	offers, err := h.skills.offers(c)
	if err == nil && !offers {
		err = fmt.Errorf("server %q has no skills", server)
	}
	return c, spec, err
}

// getSkill asks a server for the entry of a skill, as it is now.
func (h *Host) getSkill(ctx context.Context, server, uri string) (*Skill, error) {
	if len(uri) > maxSkillURI {
		return nil, fmt.Errorf("the URI of a skill has at most %d bytes", maxSkillURI)
	}
	c, spec, err := h.skillClient(ctx, server)
	if err != nil {
		return nil, err
	}
	raw, err := h.skills.get(ctx, c, uri)
	if err != nil {
		return nil, err
	}
	k := newSkill(spec, raw, nil)
	if k.Err == nil {
		h.servers.relist(c, k)
	}
	return k, k.Err
}

// relist puts an entry in the place of an older one of the list of a connection.
func (set *serverSet) relist(c *client.Client, k *Skill) {
	set.mu.Lock()
	defer set.mu.Unlock()
	s := set.find(k.Server)
	if s == nil || s.client != c {
		return
	}
	i := slices.IndexFunc(s.skills, func(old *Skill) bool { return old.URI == k.URI })
	if i < 0 || s.skills[i].digest == k.digest && s.skills[i].Err == nil {
		return
	}
	k.Hidden = s.skills[i].Hidden
	s.skills = slices.Clone(s.skills)
	s.skills[i] = k
	set.touch()
}

// loadSkill reads the text of a skill from its own server.
func (h *Host) loadSkill(ctx context.Context, k *Skill) (string, error) {
	c, err := h.ownClient(ctx, k.Server, k.pinServer)
	if err != nil {
		return "", err
	}
	return h.skills.load(ctx, c, k.raw)
}

// ownClient is the client of the server that a skill came from: another entry of the same
// name is another server.
func (h *Host) ownClient(ctx context.Context, server, pinServer string) (*client.Client, error) {
	c, spec, err := h.skillClient(ctx, server)
	if err != nil {
		return nil, err
	}
	if spec.pinServer() != pinServer {
		return nil, fmt.Errorf("the entry of server %q has changed since; load the skill again", server)
	}
	return c, nil
}

// A SkillRecord says that the model acts on a skill: its text follows as the result of a
// call, or as what the person put in. The model acts on it until a summary takes the place
// of that text.
type SkillRecord struct {
	// Server is the name of the server in this host, and Owner that with a digest of the
	// key of its entry.
	Server string `json:"server"`
	Owner  string `json:"owner"`
	// URI and Name are those of the skill.
	URI  string `json:"uri"`
	Name string `json:"name"`
	// Digest is that of the entry, and Entry the entry, as the server sent it: no file
	// is read that it does not list. Without it, it is that of the record before, since
	// the model acts on the same skill already.
	Digest string       `json:"digest"`
	Entry  mcp.RawValue `json:"entry,omitzero"`
	// Dynamic says that the files cannot be compared with the entry.
	Dynamic bool `json:"dynamic,omitzero"`
	// Changed says that the server has changed the skill since it was loaded: no file of
	// it is read until it is loaded anew.
	Changed bool `json:"changed,omitzero"`
}

// Kind returns "skill".
func (*SkillRecord) Kind() string { return "skill" }
