package main

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

// typeCheck checks the types of every package of the workspace, tests included, as they are on other
// platforms. Nothing is compiled: it takes a tenth of the time of "go vet".
func typeCheck(ctx context.Context, repo string, platforms []platform) error {
	wrong := 0
	for _, p := range platforms {
		list, err := packages.Load(&packages.Config{
			Context: ctx, Dir: repo, Tests: true,
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax,
			Env:  append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", inWorkspace),
		}, "work")
		if err != nil {
			return err
		}
		packages.Visit(list, nil, func(pkg *packages.Package) {
			for _, err := range pkg.Errors {
				wrong++
				fmt.Printf("%v: %v\n", p, err)
			}
		})
		fmt.Printf("%v: %d packages and test packages\n", p, len(list))
	}
	if wrong > 0 {
		return fmt.Errorf("%d errors", wrong)
	}
	return nil
}
