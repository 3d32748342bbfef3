package admin

import (
	"context"
	"errors"
	"strings"

	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth/issuer"
)

var groupVerbs = []*Verb{
	verb("group add", "Add a user to a group, which exists as long as it has members", addToGroup),
	verb("group remove", "Remove a user from a group; the user's grants lose the group's scopes", removeFromGroup),
	reading(verb("group list", "List groups and their members", listGroups)),
}

type membership struct {
	Group string `json:"group" arg:"GROUP"`
	User  string `json:"user" arg:"USER"`
}

// A GroupChange is what was done to a group.
type GroupChange struct {
	Did   string `json:"did"`
	Group string `json:"group"`
	User  string `json:"user"`
}

// Text implements Result.
func (c *GroupChange) Text() string {
	word := map[string]string{"added": " to ", "removed": " from "}[c.Did]
	return columns([][]string{{c.Did + " " + c.User + word + c.Group}})
}

func addToGroup(ctx context.Context, a *Admin, in *membership) (*GroupChange, error) {
	if err := storable(in.User); err != nil {
		return nil, err
	}
	subject, err := a.knownSubject(ctx, in.User)
	if err != nil {
		return nil, err
	}
	if len(subject) > maxSubjectBytes {
		return nil, errorf(Invalid, "a subject must have at most %d bytes; run 'parley auth session list' for the subjects of signed-in users", maxSubjectBytes)
	}
	_, err = a.db.AddToGroup(ctx, in.Group, subject)
	if alike, ok := errors.AsType[*records.AlikeGroupError](err); ok {
		return nil, errorf(Conflict, "group %q already exists, and %q looks like it; use the existing name, or a different one", alike.Group, in.Group)
	}
	if errors.Is(err, records.ErrManyGroups) {
		return nil, errorf(Conflict, "%w", records.ErrManyGroups)
	}
	if errors.Is(err, records.ErrGroupName) {
		return nil, errorf(Invalid, "%w", err)
	}
	if err != nil {
		return nil, err
	}
	return &GroupChange{"added", in.Group, in.User}, nil
}

// maxSubjectBytes is the size of the longest subject of a user.
const maxSubjectBytes = 255

// knownSubject is the subject of a user, or that of a user of another provider, which has the issuer of
// that in it. Other texts are names that nobody has.
func (a *Admin) knownSubject(ctx context.Context, user string) (string, error) {
	subject, err := a.subject(ctx, user)
	if err == nil && subject == user && !strings.Contains(user, "|") {
		return "", noUser(user, issuer.ErrNotFound)
	}
	return subject, err
}

func removeFromGroup(ctx context.Context, a *Admin, in *membership) (*GroupChange, error) {
	if err := storable(in.User, in.Group); err != nil {
		return nil, err
	}
	subject, err := a.subject(ctx, in.User)
	if err != nil {
		return nil, err
	}
	was, err := a.db.RemoveFromGroup(ctx, in.Group, subject)
	if err != nil {
		return nil, err
	}
	if !was {
		return nil, errorf(NotFound, "%q is not in the group %q; run 'parley auth group list' to list groups and their members", in.User, in.Group)
	}
	return &GroupChange{"removed", in.Group, in.User}, nil
}

type groupPage struct {
	Group string `json:"group" help:"those of the \x60GROUP\x60"`
	User  string `json:"user" help:"those of the user \x60NAME\x60, or of a person with this subject"`
	page
}

// A Member is a user in a group.
type Member struct {
	Group   string `json:"group"`
	User    string `json:"user,omitzero"`
	Subject string `json:"subject"`
}

// A GroupList is a page of who is in which group.
type GroupList struct {
	Members []Member `json:"members"`
	Next    string   `json:"next,omitzero"`
}

// Text implements Result.
func (l *GroupList) Text() string {
	rows := make([][]string, 0, len(l.Members))
	for _, m := range l.Members {
		who := m.User
		if who == "" {
			who = m.Subject
		}
		rows = append(rows, []string{m.Group, who})
	}
	return columns(rows) + more(l.Next)
}

func listGroups(ctx context.Context, a *Admin, in *groupPage) (*GroupList, error) {
	after, limit, err := in.bounds()
	if err != nil {
		return nil, err
	}
	if err := storable(in.Group, in.User); err != nil {
		return nil, err
	}
	subject, err := a.subject(ctx, in.User)
	if err != nil {
		return nil, err
	}
	group, who, _ := strings.Cut(after, "\n") // which no name has
	all, err := a.db.Memberships(ctx, in.Group, subject, [2]string{group, who}, limit+1)
	if err != nil {
		return nil, err
	}
	out := &GroupList{Members: []Member{}}
	all, out.Next = cut(all, limit, func(m *records.Membership) string { return m.Group + "\n" + m.Subject })
	for _, m := range all {
		out.Members = append(out.Members, Member{m.Group, m.Name, m.Subject})
	}
	return out, nil
}
