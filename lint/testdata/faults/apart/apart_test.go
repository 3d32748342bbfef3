package apart

import (
	"fmt"
	"os"
	"testing"
)

func Helper() {}

func TestPrints(t *testing.T) {
	fmt.Println("tests may")
	if _, err := os.MkdirTemp("", "x"); err != nil { // want usetesting
		t.Fatal(err)
	}
}
