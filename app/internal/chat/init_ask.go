package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/discover"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
)

// errNoInput ends questions that nobody answers any more.
var errNoInput = kit.Usagef("the input has ended: nothing was written")

// askUntil asks until an answer is taken.
func (s *setup) askUntil(ctx context.Context, question string, take func(answer string) error) error {
	for {
		line, err := s.p.AskLine(ctx, question)
		if errors.Is(err, io.EOF) {
			s.p.Note("")
			return errNoInput
		}
		if err != nil {
			return err
		}
		if err = take(strings.TrimSpace(line)); err == nil {
			return nil
		}
		s.p.Note("%s", host.EscapeLine(err.Error()))
	}
}

// maxListed is how many servers or models a question lists.
const maxListed = 60

// askServers asks which servers of other clients are used.
func (s *setup) askServers(ctx context.Context, c *config.Choice) error {
	list := s.found.Servers()
	if len(list) == 0 {
		s.p.Note("No other MCP client on this machine has servers. 'parley config add' adds one.")
		return nil
	}
	s.p.Note("The servers of other MCP clients. Their files are read, and never changed:")
	for i, srv := range list {
		if i == maxListed {
			s.p.Note("  and %d more; 'parley config list' lists all", len(list)-maxListed)
			break
		}
		s.p.Note("%4d: %s, of %s: %s", i+1, host.EscapeLine(srv.Name), discover.ClientName(srv.Source.Client),
			kit.Shorten(host.EscapeLine(kit.Shorten(srv.Address(), maxAddress)), maxAddress))
	}
	question := `Which ones? Enter for all, "none", or numbers such as "1 3": `
	if s.found.Own {
		question = `Which ones? Enter to leave it as it is, "all", "none", or numbers such as "1 3": `
	}
	return s.askUntil(ctx, question, func(answer string) error {
		if answer == "" && s.found.Own {
			return nil
		}
		chosen, err := pick(list, answer)
		if err != nil {
			return err
		}
		return s.setServers(c, chosen)
	})
}

// maxAddress is how much of a command or URL is shown in a list.
const maxAddress = 60

// pick reads the numbers of servers.
func pick(list []*config.Server, answer string) ([]*config.Server, error) {
	switch strings.ToLower(answer) {
	case "", "all":
		return list, nil
	case "none":
		return nil, nil
	}
	var chosen []*config.Server
	for _, word := range strings.FieldsFunc(answer, func(r rune) bool { return r == ' ' || r == ',' }) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > len(list) {
			return nil, fmt.Errorf(`%q is no number from 1 to %d: write numbers, "none", or nothing for all`, kit.Shorten(word, maxAddress), len(list))
		}
		if !slices.Contains(chosen, list[n-1]) {
			chosen = append(chosen, list[n-1])
		}
	}
	return chosen, nil
}

// setServers makes a choice of the servers: a client of which all are chosen is read, and its
// file stays in charge of them; of another one nothing is read, and what was chosen of it is
// copied.
func (s *setup) setServers(c *config.Choice, chosen []*config.Server) error {
	imports, entries := make(map[config.Client]bool), make(map[string]config.Entry)
	for i := range s.found.Clients {
		client := &s.found.Clients[i]
		if len(client.Servers) == 0 {
			continue // its servers of the project are asked about one by one
		}
		var picked []*config.Server
		for _, srv := range client.Servers {
			if slices.Contains(chosen, srv) {
				picked = append(picked, srv)
			}
		}
		imports[client.ID] = len(picked) == len(client.Servers)
		if imports[client.ID] {
			continue
		}
		for _, srv := range picked {
			e, err := entryOf(srv)
			if err == nil && e.MayHoldSecrets() {
				err = fmt.Errorf("it has values that may be secret, which are not copied here; 'parley config import %s' would", srv.Name)
			}
			if err != nil {
				return fmt.Errorf("%s of %s cannot be taken alone: %w; choose all servers of %s, or none of them", srv.Name, client.Name, err, client.Name)
			}
			entries[srv.Name] = *e
		}
	}
	c.Import, c.Servers = imports, entries
	return nil
}

// A modelChoice is a model that is offered.
type modelChoice struct{ model, baseURL, about string }

// askModel asks which model is used.
func (s *setup) askModel(ctx context.Context, c *config.Choice) error {
	list := s.models()
	s.p.Note("The models:")
	for i, m := range list {
		s.p.Note("%4d: %s, %s", i+1, m.model, m.about)
	}
	for _, k := range s.found.Keys {
		s.p.Note("      %s is set: write %s:NAME for a model of %s", k.Variable, k.Provider, k.Name)
	}
	for i := range s.found.Local {
		if l := &s.found.Local[i]; len(l.Models) == 0 {
			s.p.Note("      %s", localText(l))
		}
	}
	keep := fmt.Sprintf("Enter for %s", offlineModel)
	if s.own.Model != "" {
		keep = "Enter for " + host.EscapeLine(kit.Shorten(s.own.Model, maxAddress)) + " as it is"
	}
	return s.askUntil(ctx, "Which one? "+keep+", a number, or PROVIDER:NAME: ", func(answer string) error {
		if answer == "" {
			return nil
		}
		if n, err := strconv.Atoi(answer); err == nil {
			if n < 1 || n > len(list) {
				return fmt.Errorf("there is no number %d: write one from 1 to %d", n, len(list))
			}
			c.Model, c.BaseURL = list[n-1].model, list[n-1].baseURL
			c.NoKey = c.BaseURL != "" // it listed its models without
			return nil
		}
		if err := checkModel(answer); err != nil {
			return err
		}
		s.setModel(c, answer, "")
		return nil
	})
}

// models are the models that can be named.
func (s *setup) models() []modelChoice {
	list := []modelChoice{{offlineModel, "", "a small planner that needs no key and no network"}}
	for i := range s.found.Local {
		l := &s.found.Local[i]
		for _, name := range l.Models {
			if len(list) < maxListed {
				list = append(list, modelChoice{"openai:" + name, l.BaseURL, "of " + l.Kind + " at " + l.Address})
			}
		}
	}
	return list
}
