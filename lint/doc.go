// Command lint checks the code of every module: the passes of go vet, staticcheck and a few more
// analyzers, and rules of this repository. "make lint" runs it.
//
// It takes the types of dependencies from the go command's build cache, and analyzes only the
// repository's own packages. Except for those of go vet and exhaustive, analyzers see each package
// without the others. Facts that they would learn from the source code of imported packages, such
// as which functions are deprecated, are missing then; -deps analyzes dependencies, too, and takes
// several times as long and 10 GB of memory.
//
// A finding that is intended has a comment at its line, or at the line of the statement or declaration
// that contains it:
//
//	//nolint:NAME // the reason
package main
