// Command jobs runs calls of tools longer than their requests, and longer than its
// own process: an extension of the protocol as any program could bring it. With
// -ask it is a client of itself. See docs/guide/extensions.md.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

const (
	extensionID = "com.example/jobs"
	createdType = "com.example/job"
)

// endedTime is how long jobs/get tells of a job that has ended.
const endedTime = time.Hour

// Jobs is the extension: the jobs that run, and the folder that they are kept in.
type Jobs struct {
	srv    *server.Server
	folder folder

	mu   sync.Mutex
	byID map[string]*job
}

// A job is what jobs/get tells.
type job struct {
	mcp.ResultBase
	JobID     string               `json:"jobId"`
	State     string               `json:"state"` // working, done or failed
	Progress  string               `json:"progress,omitzero"`
	Questions map[string]*question `json:"questions,omitempty"` // open ones, by key
	Result    mcp.RawValue         `json:"result,omitzero"`
	Error     string               `json:"error,omitzero"`

	owner string // the identity of the caller
}

// A question waits for an answer that comes by jobs/answer.
type question struct {
	Method string       `json:"method"`
	Params mcp.RawValue `json:"params"`

	answer chan mcp.RawValue // has room for the one answer
}

// created answers a call that became a job.
type created struct {
	mcp.ResultBase
	JobID string `json:"jobId"`
}

func newServer(path string) (*server.Server, error) {
	s := server.New("jobs", "1.0.0", nil)
	s.Add(server.Tool("report", "Writes a report about a topic, which takes a while.", report))
	j := &Jobs{srv: s, folder: folder(path), byID: make(map[string]*job)}
	s.Extend(server.Extension{
		ID: extensionID,
		Methods: []*server.ExtensionMethod{
			server.Method("jobs/get", j.get).With(server.MethodOptions{Target: "jobId"}),
			server.Method("jobs/answer", j.reply).With(server.MethodOptions{Target: "jobId"}),
		},
		Wrap:    j.wrap,
		Filters: map[string]server.Filter{"jobs": j.filter},
	})
	return s, j.resume()
}

// wrap makes a job of each call of a tool, for clients that know jobs.
func (j *Jobs) wrap(next server.Func) server.Func {
	return func(c *server.Call) (server.Result, error) {
		if c.Method() != mcp.MethodToolsCall || !c.HasExtension(extensionID) {
			return next(c)
		}
		saved, err := c.Save(extensionID)
		if err != nil {
			return nil, err
		}
		own := newJob(rand.Text(), c.Principal().Identity())
		if err := j.folder.create(own, saved); err != nil {
			return nil, err
		}
		if _, _, err := c.Detach(next, j.options(own)); err != nil {
			return nil, errors.Join(err, j.folder.end(own))
		}
		j.add(own)
		return &created{ResultBase: mcp.ResultBase{ResultType: createdType}, JobID: own.JobID}, nil
	}
}

// resume takes up the jobs that did not end in an earlier process. What cannot be
// taken up stays in the folder, for the next start.
func (j *Jobs) resume() error {
	return j.folder.each(func(id string, saved *kept, records []server.Record, err error) {
		own := newJob(id, saved.Owner)
		j.add(own)
		if err == nil {
			_, _, err = j.srv.Resume(extensionID, saved.Call, records, j.options(own))
		}
		if err != nil {
			log.Printf("job %s: %v", id, err)
			j.change(own, func() { own.State, own.Error = "failed", "it could not be taken up again" })
		}
	})
}

// options are what a job has in the place of its request.
func (j *Jobs) options(own *job) *server.DetachOptions {
	return &server.DetachOptions{
		Record: func(_ context.Context, r server.Record) error { return j.folder.record(own, r) },
		Asker:  asker{j, own},
		Progress: func(p *mcp.ProgressParams) {
			j.change(own, func() { own.Progress = p.Message })
		},
		Done: func(d *server.Call, result mcp.RawValue, fault *jsonrpc.Error) {
			if errors.Is(context.Cause(d), server.ErrShutdown) {
				return // another process takes it up
			}
			j.change(own, func() {
				own.State, own.Result = "done", result
				if fault != nil {
					own.State, own.Error = "failed", fault.Message
				}
			})
			if err := j.folder.end(own); err != nil {
				log.Print(err)
			}
			time.AfterFunc(endedTime, func() { j.remove(own) })
		},
	}
}

// An asker has the handler of a job wait for an answer that comes by jobs/answer.
type asker struct {
	j   *Jobs
	own *job
}

func (a asker) Ask(c *server.Call, key, method string, params mcp.RawValue) (mcp.RawValue, error) {
	q := &question{Method: method, Params: params, answer: make(chan mcp.RawValue, 1)}
	a.j.change(a.own, func() { a.own.Questions[key] = q })
	defer a.j.change(a.own, func() { delete(a.own.Questions, key) })
	select {
	case answer := <-q.answer:
		return answer, nil
	case <-c.Done():
		return nil, context.Cause(c)
	}
}

// jobParams are the params of jobs/get.
type jobParams struct {
	JobID string `json:"jobId"`
}

func (j *Jobs) get(c *server.Call, p jobParams) (*job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	own, err := j.find(c, p.JobID)
	if err != nil {
		return nil, err
	}
	told := *own // a result belongs to the server
	told.Questions = maps.Clone(own.Questions)
	return &told, nil
}

// answerParams are the params of jobs/answer.
type answerParams struct {
	JobID  string       `json:"jobId"`
	Key    string       `json:"key"` // of the question
	Answer mcp.RawValue `json:"answer"`
}

func (j *Jobs) reply(c *server.Call, p answerParams) (mcp.None, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	own, err := j.find(c, p.JobID)
	if err != nil {
		return mcp.None{}, err
	}
	q := own.Questions[p.Key]
	if q == nil {
		return mcp.None{}, mcp.NewError(mcp.CodeInvalidParams, "no question %q is open", p.Key)
	}
	if err := server.CheckAnswer(q.Method, q.Params, p.Answer); err != nil {
		return mcp.None{}, mcp.NewError(mcp.CodeInvalidParams, "the answer: %v", err)
	}
	delete(own.Questions, p.Key)
	q.answer <- slices.Clone(p.Answer) // params end with their request
	return mcp.None{}, nil
}

// find returns a job of the caller: those of others look like unknown ones.
func (j *Jobs) find(c *server.Call, id string) (*job, error) {
	if own := j.byID[id]; own != nil && own.owner == c.Principal().Identity() {
		return own, nil
	}
	return nil, mcp.NewError(mcp.CodeInvalidParams, "unknown job %q", id)
}

func newJob(id, owner string) *job {
	return &job{JobID: id, State: "working", owner: owner, Questions: make(map[string]*question)}
}

func (j *Jobs) add(own *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.byID[own.JobID] = own
}

func (j *Jobs) remove(own *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.byID, own.JobID)
}

// change changes a job, and tells its subscribers.
func (j *Jobs) change(own *job, f func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f()
	notice := map[string]string{"jobId": own.JobID} // jobs/get tells the rest
	if err := j.srv.Notify(extensionID, own.JobID, "notifications/jobs", notice); err != nil {
		log.Print(err)
	}
}

// report is an ordinary tool. It knows nothing of jobs.
func report(ctx context.Context, in struct {
	Topic string `json:"topic"`
},
) (string, error) {
	number, err := server.Once(ctx, "number", func() (int64, error) { return time.Now().Unix(), nil })
	if err != nil {
		return "", err
	}
	if err := server.Progress(ctx, 1, 2, "outlined"); err != nil {
		return "", err
	}
	style, err := server.Elicit[struct {
		Style string `json:"style" enum:"short,long"`
	}](ctx, "Which style?")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Report %d, %s: %s.", number, style.Value.Style, in.Topic), nil
}

func main() {
	path := flag.String("folder", "jobs", "where jobs are kept")
	topic := flag.String("ask", "", "ask a server, which is started for it, for a report about this topic")
	flag.Parse()
	if err := run(*path, *topic); err != nil {
		log.Fatal(err)
	}
}

func run(path, topic string) error {
	if topic != "" {
		program, err := os.Executable()
		if err != nil {
			return err
		}
		text, err := ask(context.Background(), stdio.Command(program, "-folder", path), topic)
		if err != nil {
			return err
		}
		fmt.Println(text)
		return nil
	}
	s, err := newServer(path)
	if err != nil {
		return err
	}
	return stdio.Serve(context.Background(), s)
}
