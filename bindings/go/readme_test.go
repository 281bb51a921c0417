package zero_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// The program in the README is built and run as the README says, in a module of its own.
func TestTheProgramInTheReadmeRuns(t *testing.T) {
	readme := must(os.ReadFile("README.md"))
	program := regexp.MustCompile("(?s)<!-- tested -->\n```go\n(.*?)```").FindSubmatch(readme)
	if program == nil {
		t.Fatal("no program is marked as tested")
	}
	demo := t.TempDir()
	check(os.WriteFile(filepath.Join(demo, "main.go"), program[1], 0o600))
	goTool(t, demo, "mod", "init", "demo")
	goTool(t, demo, "mod", "edit", "-require=libzero@v0.0.0", "-replace=libzero="+must(os.Getwd()))
	wantEqual(t, "output", goTool(t, demo, "run", "."), "w[0] = 3.00\n")
}

func goTool(t *testing.T, folder string, arguments ...string) string {
	command := exec.Command("go", arguments...)
	var errors bytes.Buffer
	command.Dir, command.Stderr = folder, &errors
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %v: %v: %s", arguments, err, &errors)
	}
	return string(out)
}
