package main

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
	"github.com/parley-mcp/parley/transport"
)

// knowsJobs is the client's side of the extension.
var knowsJobs = client.Extension{
	ID: extensionID,
	Methods: []client.ExtensionMethod{
		{Name: "jobs/get", Target: "jobId", Retry: true},
		{Name: "jobs/answer", Target: "jobId"},
	},
	Results: []client.ResultType{
		{Name: createdType, Methods: []string{mcp.MethodToolsCall}, Settle: settle},
	},
	Notifications:  []client.ExtensionNotification{{Name: "notifications/jobs", Filter: "jobs"}},
	OnNotification: told,
}

// settle waits until a job has ended, and has answered what it asks.
func settle(ctx context.Context, r *client.Request, result mcp.RawValue) (mcp.RawValue, error) {
	var answer created
	if err := strictjson.Unmarshal(result, &answer); err != nil {
		return nil, err
	}
	watch, err := r.Client().SubscribeExtension(ctx, extensionID, map[string]any{"jobs": []string{answer.JobID}})
	if err != nil {
		return nil, err
	}
	defer watch.Close()
	for {
		own, err := client.CallMethod[job](ctx, r.Client(), "jobs/get", jobParams{answer.JobID})
		switch {
		case err != nil:
			return nil, err
		case own.State == "done":
			return own.Result, nil
		case own.State == "failed":
			return nil, errors.New(own.Error)
		case len(own.Questions) > 0:
			err = answerJob(ctx, r.Client(), &own)
		default:
			err = sleep(ctx, 100*time.Millisecond)
		}
		if err != nil {
			return nil, err
		}
	}
}

// told logs how jobs go on.
func told(_ context.Context, n *client.Notification) {
	if n.Method == mcp.NotifySubscriptionsAcknowledged {
		log.Printf("the server tells of %s", n.Subscription.Acknowledged("jobs"))
		return
	}
	log.Printf("%s: %s", n.Method, n.Params)
}

// answerJob answers the open questions of a job.
func answerJob(ctx context.Context, c *client.Client, own *job) error {
	open := make(mcp.InputRequests)
	for key, q := range own.Questions {
		open[key] = &mcp.InputRequest{Method: q.Method, Params: q.Params}
	}
	answers, err := c.Answer(ctx, open)
	if err != nil {
		return err
	}
	for key, answer := range answers {
		if _, err := client.CallMethod[mcp.None](ctx, c, "jobs/answer", answerParams{own.JobID, key, answer}); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask has a server write a report, and knows nothing of jobs.
func ask(ctx context.Context, server transport.Dialer, topic string) (string, error) {
	c, err := client.Connect(ctx, server, &client.Options{
		Extensions: []client.Extension{knowsJobs},
		OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return client.Accept(map[string]string{"style": "long"})
		},
	})
	if err != nil {
		return "", err
	}
	defer c.Close()
	return client.Call[string](ctx, c, "report", map[string]string{"topic": topic})
}
