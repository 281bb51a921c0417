package zero_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	zero "example.org/libzero/bindings/go"
)

// saveRun saves a run of one rank after each of its steps and returns the names of the saves, newest first.
func saveRun(t *testing.T, folder string, steps int) []string {
	t.Helper()
	alone(t, func(r rank) {
		optimizer := newOptimizer(r, zero.DTypeF32)
		defer optimizer.Close()
		begin(r, optimizer)
		checkpoint := must(zero.NewCheckpoint(r.Group, nil))
		defer checkpoint.Close()
		check(checkpoint.AddOptimizer("", optimizer))
		for i := 0; i < steps; i++ {
			train(r, optimizer, 1)
			must(checkpoint.Save(ctx, folder))
		}
	})
	var saves []struct {
		Name  string
		Valid bool
	}
	text, err := zero.ListSaves(folder, zero.TextJSON)
	if err == nil {
		err = json.Unmarshal([]byte(text), &saves)
	}
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, save := range saves {
		wantEqual(t, "valid", save.Valid, true)
		names = append(names, save.Name)
	}
	wantEqual(t, "saves", len(names), steps)
	return names
}

func openSave(t *testing.T, path string) *zero.Save {
	t.Helper()
	save, err := zero.OpenSave(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(save.Close)
	return save
}

func wantNoError(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func TestASaveIsDescribedVerifiedComparedAndExported(t *testing.T) {
	folder := t.TempDir()
	names := saveRun(t, folder, 2)
	newest := openSave(t, folder)
	older := openSave(t, filepath.Join(folder, names[1]))
	var found struct{ Step int }
	text, err := newest.Describe(zero.TextJSON)
	if err == nil {
		err = json.Unmarshal([]byte(text), &found)
	}
	wantNoError(t, "Describe", err)
	wantEqual(t, "step", found.Step, 2)
	wantNoError(t, "Verify", newest.Verify())
	done, total, err := newest.Progress()
	wantNoError(t, "Progress", err)
	wantEqual(t, "all bytes were read", done == total && total > 0, true)
	count, err := newest.Compare(older)
	wantNoError(t, "Compare", err)
	text, err = newest.Differences(zero.TextPlain)
	wantNoError(t, "Differences", err)
	wantEqual(t, "lines", strings.Count(text, "\n"), count)
	wantEqual(t, "the step differs", strings.Contains(text, "step: differs: 2 | 1\n"), true)
	model := filepath.Join(folder, "model.safetensors")
	wantNoError(t, "Export", newest.Export(model))
	_, err = os.Stat(model)
	wantNoError(t, "Stat", err)
}

func TestOldSavesAreRemovedAndTheNewestStays(t *testing.T) {
	folder := t.TempDir()
	names := saveRun(t, folder, 3)
	old, err := zero.PrunableSaves(folder, 1)
	wantNoError(t, "PrunableSaves", err)
	wantEqual(t, "names", strings.Join(old, " "), names[2]+" "+names[1])
	for _, name := range old {
		wantNoError(t, "RemoveSave", zero.RemoveSave(folder, name))
	}
	wantError(t, "the newest", zero.RemoveSave(folder, names[0]), zero.ErrState)
	wantError(t, "one that is gone", zero.RemoveSave(folder, names[1]), zero.ErrNotFound)
	wantError(t, "a zero byte", zero.RemoveSave(folder, "a\x00b"), zero.ErrInvalidArgument)
}

func TestADamagedOrClosedSaveIsAnError(t *testing.T) {
	folder := t.TempDir()
	names := saveRun(t, folder, 1)
	save := openSave(t, folder)
	state := filepath.Join(folder, names[0], "state-00001-of-00001.safetensors")
	bytes, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	bytes[len(bytes)-1] ^= 1
	if err := os.WriteFile(state, bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, "Verify", save.Verify(), zero.ErrCheckpoint)
	save.Close()
	wantError(t, "a closed save", save.Verify(), zero.ErrBadHandle)
	_, err = zero.OpenSave(filepath.Join(folder, "nowhere"))
	wantError(t, "a folder that is not there", err, zero.ErrNotFound)
}
