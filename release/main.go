// Command release makes the releases of Parley: the commit and tags that the go
// command installs from, and what is offered for download. RELEASE.md says how
// it is used.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

const usage = `release makes the releases of Parley.

  release new -version v0.1.0 [-out dist] [-apply]
        makes the release commit, its tags and its files from the last commit of
        the repository. Without -apply the commit and tags are made in a copy.
  release build [-repo DIR] [-out dist] [-platforms linux/amd64,…]
        makes the files of a release commit once more
  release api [-repo DIR] [-check]
        writes the public names to api/*.txt, or compares them
  release types [-repo DIR] [-platforms windows/amd64,…]
        checks the types of every package and test, as they are on those platforms
  release licences [-repo DIR]
        lists the licences of what the program is built from, and fails if one
        is not known
  release picture -title TEXT
        draws what a terminal shows, as "tmux capture-pane -e -p" prints it, as an
        SVG: from standard input to standard output
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage)
	case err != nil:
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return flag.ErrHelp
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.Usage = func() {}
	repo := flags.String("repo", "..", "")
	out := flags.String("out", "dist", "")
	version := flags.String("version", "", "")
	platforms := flags.String("platforms", strings.Join(allPlatforms, ","), "")
	apply := flags.Bool("apply", false, "")
	check := flags.Bool("check", false, "")
	title := flags.String("title", "", "")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	for _, path := range []*string{repo, out} {
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	targets, err := parsePlatforms(*platforms)
	if err != nil {
		return err
	}
	switch args[0] {
	case "new":
		return newRelease(ctx, *repo, *version, *out, targets, *apply)
	case "build":
		return build(ctx, &buildOptions{Repo: *repo, Out: *out, Platforms: targets})
	case "api":
		return publicNames(ctx, *repo, *check)
	case "types":
		return typeCheck(ctx, *repo, targets)
	case "licences":
		return licences(ctx, *repo)
	case "picture":
		return picture(os.Stdin, os.Stdout, *title)
	}
	return fmt.Errorf("there is no command %q\n%w", args[0], flag.ErrHelp)
}

// newRelease makes a release in a copy of the repository, and with apply takes
// its commit and tags over.
func newRelease(ctx context.Context, repo, version, out string, platforms []platform, apply bool) error {
	if err := clean(ctx, repo); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer remove(work)
	clone := filepath.Join(work, "parley")
	if _, err := git(ctx, repo, "clone", "--quiet", "--no-hardlinks", repo, clone); err != nil {
		return err
	}
	// The committer is that of the repository's configuration, or the user's.
	for _, key := range []string{"user.name", "user.email"} {
		if value, err := git(ctx, repo, "config", key); err == nil {
			if _, err := git(ctx, clone, "config", key, value); err != nil {
				return err
			}
		}
	}
	if err := prepare(ctx, clone, version, time.Now().UTC()); err != nil {
		return err
	}
	if err := build(ctx, &buildOptions{Repo: clone, Out: out, Platforms: platforms}); err != nil {
		return err
	}
	refs := tags(version)
	if !apply {
		fmt.Printf("dry run: nothing was changed in %s; the tags would be %s\n", repo, strings.Join(refs, ", "))
		return nil
	}
	if _, err := git(ctx, repo, "pull", "--quiet", "--ff-only", "--tags", clone, "HEAD"); err != nil {
		return err
	}
	fmt.Printf("committed and tagged; publish it with\n  git push --atomic origin HEAD %s\n", strings.Join(refs, " "))
	return nil
}
