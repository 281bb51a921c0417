package zero_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

const module = "example.org/libzero/bindings/go"

// The programs in the README are built and run as the README says, in a module of their own.
func TestTheProgramsInTheReadmeRun(t *testing.T) {
	readme := must(os.ReadFile("README.md"))
	programs := regexp.MustCompile("(?s)<!-- tested -->\n```go\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(programs) != 2 {
		t.Fatalf("%d programs are marked as tested, want 2", len(programs))
	}
	demo := t.TempDir()
	check(os.WriteFile(filepath.Join(demo, "main.go"), programs[0][1], 0o600))
	goTool(t, demo, "mod", "init", "demo")
	goTool(t, demo, "mod", "edit", "-require="+module+"@v0.1.0", "-replace="+module+"="+must(os.Getwd()))
	wantEqual(t, "output", goTool(t, demo, "run", "."), "w[0] = 3.00\n")
	check(os.WriteFile(filepath.Join(demo, "state.go"), programs[1][1], 0o600))
	check(os.WriteFile(filepath.Join(demo, "state_test.go"), []byte(testOfState), 0o600))
	goTool(t, demo, "test", ".")
}

// testOfState is a test of the README's save and restore.
const testOfState = `package main

import (
	"context"
	"reflect"
	"testing"

	zero "example.org/libzero/bindings/go"
)

var ctx = context.Background()

func TestARunThatWasSavedGoesOn(t *testing.T) {
	first, second := sealed(3), sealed(1)
	check(first.Begin(ctx, zero.SourceLocal))
	train(first)
	states, stepCount := save(ctx, first, 0, 1)
	restore(ctx, second, states, stepCount)
	if want, got := train(first), train(second); stepCount != 2 || !reflect.DeepEqual(got, want) {
		t.Errorf("after %d steps: got %v, want %v", stepCount, got, want)
	}
}

func sealed(stage int) *zero.Optimizer {
	config := must(zero.NewConfig(zero.Int(zero.KeyStage, stage), zero.Float(zero.KeyLR, 0.1)))
	optimizer := must(zero.NewOptimizer(must(zero.CreateLocal(ctx, "", 0, 1, nil)), config))
	must(optimizer.AddParam("v", zero.DTypeF32, []int{2}, nil))
	must(optimizer.AddParam("w", zero.DTypeF32, []int{2}, nil))
	check(optimizer.Seal(ctx))
	return optimizer
}

func train(optimizer *zero.Optimizer) [2][2]float32 {
	for step := 1; step <= 2; step++ {
		check(zero.GiveGrad(ctx, optimizer, 0, 0, []float32{float32(step), -1}))
		check(zero.GiveGrad(ctx, optimizer, 1, 0, []float32{-1, float32(step)}))
		must(optimizer.Step(ctx))
	}
	var params [2][2]float32
	check(zero.CopyParam(ctx, optimizer, 0, params[0][:]))
	check(zero.CopyParam(ctx, optimizer, 1, params[1][:]))
	return params
}
`

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
