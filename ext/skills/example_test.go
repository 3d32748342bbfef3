package skills_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// refunds are the files of a skill; most programs have a folder: skills.Dir("./skills").
var refunds = fstest.MapFS{
	"refunds/SKILL.md":  {Data: []byte("---\nname: refunds\ndescription: Pay a customer back.\n---\nRead limits.md first.\n")},
	"refunds/limits.md": {Data: []byte("At most 100 a day.\n")},
}

// A server offers skills, and a client loads one.
func Example() {
	s := server.New("shop", "1.0.0", nil)
	if _, err := skills.Enable(s, skills.FS(refunds), nil); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	c, err := client.Connect(ctx, mem.New(s, nil), &client.Options{
		Extensions: []client.Extension{skills.Extension()},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for skill, err := range skills.List(ctx, c) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(skill.URI, "-", skill.Description())
		doc, err := skills.Load(ctx, c, skill)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(doc.Body)
	}
	// Output:
	// skill://refunds/SKILL.md - Pay a customer back.
	// Read limits.md first.
}

// A file is read by the entry that the client holds. What the entry does not list is not
// asked for.
func ExampleRead() {
	s := server.New("shop", "1.0.0", nil)
	if _, err := skills.Enable(s, skills.FS(refunds), nil); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	c, err := client.Connect(ctx, mem.New(s, nil), &client.Options{Extensions: []client.Extension{skills.Extension()}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	skill, err := skills.Get(ctx, c, "skill://refunds/SKILL.md")
	if err != nil {
		log.Fatal(err)
	}
	for _, ref := range []string{"limits.md", "secrets.md"} {
		uri, err := skill.Resolve(ref)
		if err != nil {
			log.Fatal(err)
		}
		file, err := skills.Read(ctx, c, skill, uri)
		var differs *skills.VerifyError
		switch {
		case errors.As(err, &differs):
			fmt.Println(ref, "-", differs.Reason)
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Printf("%s - %s", ref, file.Data)
		}
	}
	// Output:
	// limits.md - At most 100 a day.
	// secrets.md - unlisted
}

// A catalog is read again, and swapped as a whole.
func ExampleCatalog_Reload() {
	files := fstest.MapFS{"a/SKILL.md": {Data: []byte("---\nname: a\ndescription: The first.\n---\n")}}
	s := server.New("shop", "1.0.0", nil)
	catalog, err := skills.Enable(s, skills.FS(files), nil)
	if err != nil {
		log.Fatal(err)
	}
	files["b/SKILL.md"] = &fstest.MapFile{Data: []byte("---\nname: c\ndescription: The second.\n---\n")}
	fmt.Println(catalog.Reload(context.Background()))
	// Output:
	// skill b: SKILL.md: frontmatter: the name "c" is not that of its folder, "b"; rename one of them
}

// The frontmatter of a SKILL.md is JSON by YAML's core schema: a date is a text.
func ExampleFrontmatter() {
	front, body, err := skills.Frontmatter([]byte("---\nname: a\nsince: 2026-07-28\nmode: 0o17\n---\nText.\n"))
	fmt.Printf("%s\n%s%v\n", front, body, err)
	// Output:
	// {"name":"a","since":"2026-07-28","mode":15}
	// Text.
	// <nil>
}
