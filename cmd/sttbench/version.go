package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"

	"sttbench/vad"
)

type versionCmd struct{}

// Run implements the command. It never fails for what it does not find.
func (versionCmd) Run(_ context.Context, a *app) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "sttbench\t%s\n", softwareVersion())
	fmt.Fprintf(table, "go\t%s\n", platform())
	library, model := findDetector()
	fmt.Fprintf(table, "onnx runtime\t%s\n", library)
	fmt.Fprintf(table, "vad model\t%s\n", model)
	return table.Flush()
}

// findDetector tells where the two files of the detector are, or why not. Each
// is looked for with this program's own file in the place of the other, because
// Locate stops at the first that it does not find.
func findDetector() (library, model string) {
	self, err := os.Executable()
	if err != nil {
		return err.Error(), err.Error()
	}
	if paths, err := vad.Locate("", self); err != nil {
		library = err.Error()
	} else {
		library = paths.Library
	}
	if paths, err := vad.Locate(self, ""); err != nil {
		model = err.Error()
	} else {
		model = paths.Model
	}
	return library, model
}
