package zero_test

import (
	"archive/zip"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A proxy of modules that is a folder serves the module as a tag would: a program needs its path and version alone.
func TestTheModuleIsFetchedByPathAndVersion(t *testing.T) {
	proxy := t.TempDir()
	versions := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	check(os.MkdirAll(versions, 0o700))
	declared := must(os.ReadFile("go.mod"))
	if !strings.HasPrefix(string(declared), "module "+module+"\n") {
		t.Fatalf("go.mod begins with another path: %s", declared)
	}
	check(os.WriteFile(filepath.Join(versions, "list"), []byte("v0.1.0\n"), 0o600))
	check(os.WriteFile(filepath.Join(versions, "v0.1.0.info"), []byte(`{"Version": "v0.1.0"}`), 0o600))
	check(os.WriteFile(filepath.Join(versions, "v0.1.0.mod"), declared, 0o600))
	packModule(filepath.Join(versions, "v0.1.0.zip"), module+"@v0.1.0")

	for variable, value := range map[string]string{"GOPROXY": "file://" + proxy, "GONOSUMDB": "*", "GOFLAGS": "-modcacherw", "GOMODCACHE": t.TempDir()} {
		t.Setenv(variable, value)
	}
	demo := t.TempDir()
	program := "package main\n\nimport zero \"" + module + "\"\n\nfunc main() { println(zero.Version()) }\n"
	check(os.WriteFile(filepath.Join(demo, "main.go"), []byte(program), 0o600))
	goTool(t, demo, "mod", "init", "demo")
	goTool(t, demo, "get", module+"@latest")
	wantEqual(t, "version", goTool(t, demo, "list", "-m", module), module+" v0.1.0\n")
	if os.Getenv("ZERO_TEST_FULL") != "" { // the layer of C is compiled anew
		goTool(t, demo, "run", ".")
	}
}

// packModule writes the zip of this folder without the modules inside it, with all names below prefix.
func packModule(name, prefix string) {
	file := must(os.Create(name))
	archive := zip.NewWriter(file)
	check(filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if _, inside := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != "." && inside == nil {
				return fs.SkipDir
			}
			return err
		}
		_, err = must(archive.Create(prefix + "/" + filepath.ToSlash(path))).Write(must(os.ReadFile(path)))
		return err
	}))
	check(archive.Close())
	check(file.Close())
}
