// Package filesystem is a server for the files of chosen directories: it reads, writes,
// edits, lists, searches and moves them. Its tools are the same as in the reference server
// @modelcontextprotocol/server-filesystem.
//
// Every access goes through an os.Root of one of the directories, so that neither ".."
// nor a symbolic link can lead out of them, even if the disk changes during a call.
package filesystem

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/server"
)

// Options are what is not required of the server. A nil *Options, and each zero
// field, means the default that is told.
type Options struct {
	// Server is what the server is made with. Its texts are replaced. Default: the
	// defaults of package server.
	Server *server.Options
	// ReadOnly leaves out the tools that change something. Default false.
	ReadOnly bool
	// WriteScope is a scope that callers must have been granted to use these tools.
	// Default none: all callers may use them.
	WriteScope string
	// Confirm asks the user before write_file and edit_file change a file that
	// exists and before move_file, where the client can ask. Default false.
	Confirm bool
	// MaxRead is the most bytes of a file, or of several together, that one call
	// reads, and of a file that is edited. Default 8 MiB.
	MaxRead int64
	// MaxEntries is the most entries that one call lists or finds. Default 10,000.
	MaxEntries int
	// MaxVisited is the most entries that a search looks at. Default 200,000.
	MaxVisited int
	// MaxResources is the most files that the list of resources has. Default 1,000.
	MaxResources int
	// MaxPath is the most bytes of a path. Default 4,096.
	MaxPath int
}

const instructions = `This server reads and writes files in the directories that list_allowed_directories
names. Give absolute paths; relative ones start at the first of these directories. Read long files in
parts, with head or tail. Change a file by edit_file rather than by writing it anew.`

// service is what the tools and resources share.
type service struct {
	opts     Options
	log      *slog.Logger
	server   *server.Server
	dirs     dirSet
	given    bool   // the directories are those of the command line
	sayGiven func() // logs once that roots are not used
	watch    *watcher
	rename   func(from, to place) error // the one of the system, but for tests
	writes   chan struct{}              // holds one during a change, so that none of two edits is lost

	notedMu sync.Mutex
	noted   map[string]fileState // by URI, of files whose watch has not begun
}

// New makes a server for the files in directories. Directories that cannot be opened are
// left out, and the log warns of them; if all of them are, New fails. If none are given, the
// directories are the roots of a client on standard input and output, and no other client
// can use the server. What is returned beside it closes the directories
// and ends the watching of files; close it after the server was shut down.
func New(version string, directories []string, o *Options) (*server.Server, io.Closer, error) {
	s := &service{rename: rename, writes: make(chan struct{}, 1)}
	if o != nil {
		s.opts = *o
	}
	s.opts.MaxRead = cmp.Or(s.opts.MaxRead, 8<<20)
	s.opts.MaxEntries = cmp.Or(s.opts.MaxEntries, 10_000)
	s.opts.MaxVisited = cmp.Or(s.opts.MaxVisited, 200_000)
	s.opts.MaxResources = cmp.Or(s.opts.MaxResources, 1_000)
	s.opts.MaxPath = cmp.Or(s.opts.MaxPath, 4_096)
	so := servers.Options(s.opts.Server, "Files", "Reads, writes and searches the files of chosen directories", instructions)
	s.log = cmp.Or(so.Logger, slog.Default())

	given, err := s.openGiven(directories)
	if err != nil {
		return nil, nil, err
	}
	s.given = len(directories) > 0
	s.sayGiven = sync.OnceFunc(func() {
		s.log.Info("the roots of the client are not used: the directories were given at the start", "directories", given.names(", "))
	})
	s.dirs.replace(given)
	s.watch = newWatcher(s.log)

	changed := so.OnRootsChanged
	so.OnRootsChanged = func(ctx context.Context) {
		s.dirs.forgetRoots()
		if changed != nil {
			changed(ctx)
		}
	}
	s.server = server.New("filesystem", version, so)
	s.server.Add(s.readingTools()...)
	s.server.Add(s.listingTools()...)
	if !s.opts.ReadOnly {
		s.server.Add(s.writingTools()...)
	}
	s.server.Add(s.resources())
	s.server.Use(s.noteSubscriptions)
	return s.server, s, nil
}

// Close closes the directories and ends the watching of files.
func (s *service) Close() error { return errors.Join(s.watch.close(), s.dirs.close()) }
