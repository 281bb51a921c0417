package zerogorgonia_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const module = "example.org/libzero/bindings/go"

// The commands own and sharded train the same model, the second under mpirun too.
func TestTheProgramsHaveTheSameLosses(t *testing.T) {
	folder := t.TempDir()
	run(t, ".", "go", "build", "-o", folder, "./cmd/...")
	own, sharded := filepath.Join(folder, "own"), filepath.Join(folder, "sharded")
	want := lossesIn(t, run(t, ".", own), 1)
	wantClose(t, "losses of one rank", lossesIn(t, run(t, ".", sharded), 1), want, 2e-5)
	if _, err := exec.LookPath("mpirun"); err != nil {
		t.Skip("without mpirun the command sharded runs alone only")
	}
	wantClose(t, "losses of two ranks", lossesIn(t, run(t, ".", "mpirun", "-np", "2", sharded), 2), want, 2e-5)
}

// lossesIn reads the losses of all steps, the means over so many ranks.
func lossesIn(t *testing.T, printed string, ranks int) []float64 {
	t.Helper()
	losses := make([]float64, steps)
	lines := regexp.MustCompile(`(?m)step (\d+)  loss (\S+)$`).FindAllStringSubmatch(printed, -1)
	if len(lines) != steps*ranks {
		t.Fatalf("%d ranks printed %d losses of %d steps", ranks, len(lines), steps)
	}
	for _, line := range lines {
		losses[must(strconv.Atoi(line[1]))-1] += must(strconv.ParseFloat(line[2], 64)) / float64(ranks)
	}
	return losses
}

// The README says how many lines of the two programs differ. Comments and empty lines do not count.
func TestTheReadmeTellsTheLinesThatChange(t *testing.T) {
	out, _ := exec.Command("diff", "cmd/own/main.go", "cmd/sharded/main.go").Output() // ends with 1 where they differ
	gone := len(regexp.MustCompile(`(?m)^<\s*[^\s/]`).FindAll(out, -1))
	come := len(regexp.MustCompile(`(?m)^>\s*[^\s/]`).FindAll(out, -1))
	told := fmt.Sprintf("%d lines out, %d in", gone, come)
	if gone == 0 || !strings.Contains(string(must(os.ReadFile("README.md"))), told) {
		t.Errorf("README.md does not say %q", told)
	}
}

// The program in the README is built and run as the README says, in a module of its own.
func TestTheProgramInTheReadmeRuns(t *testing.T) {
	readme := must(os.ReadFile("README.md"))
	programs := regexp.MustCompile("(?s)<!-- tested -->\n```go\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(programs) != 1 {
		t.Fatalf("%d programs are marked as tested, want 1", len(programs))
	}
	demo, here := t.TempDir(), must(os.Getwd())
	check(os.WriteFile(filepath.Join(demo, "main.go"), programs[0][1], 0o600))
	t.Setenv("GOFLAGS", "-mod=mod")
	run(t, demo, "go", "mod", "init", "demo")
	run(t, demo, "go", "mod", "edit", "-replace="+module+"="+filepath.Dir(here), "-replace="+module+"/gorgonia="+here)
	run(t, demo, "go", "mod", "tidy")
	if got := run(t, demo, "go", "run", "."); got != "w = 2.00\n" {
		t.Errorf("got %q, want w = 2.00", got)
	}
}

func run(t *testing.T, folder string, words ...string) string {
	t.Helper()
	command := exec.Command(words[0], words[1:]...)
	var complaints bytes.Buffer
	command.Dir, command.Stderr = folder, &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", words, err, &complaints)
	}
	return string(out)
}
