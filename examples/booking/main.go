// Command booking asks the person and the model at the other end. See
// docs/guide/asking.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

// A guest is a form: a flat struct of texts, numbers, yes or no, and choices.
type guest struct {
	Name  string `json:"name" title:"Your name" minlen:"1"`
	Seats int    `json:"seats" min:"1" max:"8" default:"2"`
	Meal  string `json:"meal" enum:"none,vegan,fish" titles:"No meal,Vegan,Fish" default:"none"`
	Mail  string `json:"mail,omitempty" format:"email" desc:"for the ticket"`
}

type showIn struct {
	Show string `json:"show" desc:"which show"`
}

// book asks for one form.
func book(ctx context.Context, in showIn) (string, error) {
	answer, err := server.Elicit[guest](ctx, "Who goes to "+in.Show+"?")
	if err != nil {
		return "", err
	}
	if !answer.Accepted() {
		return "Nothing was booked.", nil
	}
	g := answer.Value
	return fmt.Sprintf("%d seats for %s, meal: %s", g.Seats, g.Name, g.Meal), nil
}

type date struct {
	Day string `json:"day" format:"date"`
}

// trip asks two questions at once: the client gets both, in one round. They
// ask for the same, so each has a key.
func trip(ctx context.Context, _ mcp.None) (string, error) {
	var there, back server.Answer[date]
	var errThere, errBack error
	var both sync.WaitGroup
	both.Go(func() {
		there, errThere = server.Elicit[date](ctx, "When?", &server.AskOptions{Key: "there"})
	})
	both.Go(func() {
		back, errBack = server.Elicit[date](ctx, "When?", &server.AskOptions{Key: "back"})
	})
	both.Wait()
	if err := errors.Join(errThere, errBack); err != nil {
		return "", err
	}
	return there.Value.Day + " to " + back.Value.Day, nil
}

// A till takes payments in the browser.
type till struct {
	mu   sync.Mutex
	paid map[string]bool // by number of the order
}

// settled reports whether an order was paid.
func (p *till) settled(order string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paid[order]
}

// pay sends the person to a page, and waits until the till has the money.
func (p *till) pay(ctx context.Context, in struct {
	Order string `json:"order" pattern:"^[0-9]+$"`
},
) (string, error) {
	if !server.CanElicitURL(ctx) {
		return "Pay at https://pay.example/orders/" + in.Order + ", then call again.", nil
	}
	agreed, err := server.ElicitURL(ctx, "https://pay.example/orders/"+in.Order, "Please pay order "+in.Order+".",
		func(context.Context) (bool, error) { return p.settled(in.Order), nil })
	if err != nil {
		return "", err
	}
	if !agreed {
		return "Not paid.", nil
	}
	return "Order " + in.Order + " is paid.", nil
}

// advertise uses the client's model where there is one.
func advertise(ctx context.Context, in showIn) (string, error) {
	if !server.CanSample(ctx) {
		return "Come and see " + in.Show + "!", nil
	}
	answer, err := server.Sample(ctx, &mcp.CreateMessageParams{
		Messages:  []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text("One sentence that advertises " + in.Show + ".")}}},
		MaxTokens: 100,
	})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, c := range answer.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text.WriteString(t.Text)
		}
	}
	return text.String(), nil
}

// folders tells the directories that the client works in.
func folders(ctx context.Context, _ mcp.None) (string, error) {
	roots, err := server.Roots(ctx)
	if err != nil {
		return "", err
	}
	var uris []string
	for _, r := range roots {
		uris = append(uris, r.URI)
	}
	return strings.Join(uris, " "), nil
}

func newServer(o *server.Options, p *till) *server.Server {
	s := server.New("booking", "1.0.0", o)
	s.Add(
		server.Tool("book", "Books seats for a show.", book),
		server.Tool("trip", "Plans a trip.", trip),
		server.Tool("pay", "Takes the payment of an order.", p.pay),
		server.Tool("advertise", "Advertises a show.", advertise),
		server.Tool("folders", "Tells what you work on.", folders),
	)
	return s
}

func main() {
	if err := stdio.Serve(context.Background(), newServer(nil, &till{paid: map[string]bool{"1": true}})); err != nil {
		log.Fatal(err)
	}
}
