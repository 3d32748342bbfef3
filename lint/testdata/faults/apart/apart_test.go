package apart

import (
	"fmt"
	"os"
	"testing"
)

func Helper() {}

func TestPrints(t *testing.T) {
	if err := os.Setenv("X", ""); err != nil { // want usetesting
		t.Fatal(err)
	}
	fmt.Println("tests may")
	if _, err := os.MkdirTemp("", "x"); err != nil { // want usetesting
		t.Fatal(err)
	}
}
