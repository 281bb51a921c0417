package zero

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.org/libzero/bindings/go/internal/czero"
)

func TestAnotherABIIsRefused(t *testing.T) {
	major, minor := czero.ZERO_ABI_MAJOR, czero.ZERO_ABI_MINOR
	for _, test := range []struct {
		major, minor int64
		fits         bool
	}{
		{major, minor, true}, {major, minor + 1, true}, {major, minor - 1, false}, {major + 1, 0, false}, {major + 1, minor, false},
	} {
		err := checkABI(test.major<<16 | test.minor)
		if fits := err == nil; fits != test.fits || !fits && !errors.Is(err, ErrUnsupported) {
			t.Errorf("ABI %d.%d: %v", test.major, test.minor, err)
		}
	}
	if err := Check(); err != nil {
		t.Error(err)
	}
}

// childOfABITest marks the process that TestConstructorsRefuseALibraryOfAnotherABI starts with another library.
const childOfABITest = "LIBZERO_TEST_ABI"

// A library of the same file name and another ABI is loaded without complaint; every constructor then says what is wrong.
func TestConstructorsRefuseALibraryOfAnotherABI(t *testing.T) {
	if os.Getenv(childOfABITest) != "" {
		printConstructorErrors()
		os.Exit(0)
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), childOfABITest+"=1", "LD_LIBRARY_PATH="+foreignLibrary(t))
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, line := range lines {
		if !strings.Contains(line, "the libzero that was loaded has ABI 77.3, but this package needs") {
			t.Errorf("got %q", line)
		}
	}
	if len(lines) != 12 {
		t.Errorf("%d errors: %q", len(lines), lines)
	}
}

func printConstructorErrors() {
	fmt.Println(Check())
	second := func(_ any, err error) { fmt.Println(err) }
	second(NewConfig())
	second(CreateLocal(nil, "", 0, 1, nil))
	second(CreateMPI(nil, MPIWorld, nil))
	second(CreateNCCL(nil, "127.0.0.1:1/abi", 0, 1, nil))
	second(UniqueID(nil))
	second(CreateEnv(nil, nil))
	second(Launcher())
	second(NewBuffer[float32](nil, nil, nil, 1))
	second(NewOptimizer(nil, nil))
	second(Bounds(KeyStage))
	second(Describe())
}

// foreignLibrary compiles a libzero.so.0 that has every function this program asks of it and ABI 77.3, and returns its folder.
func foreignLibrary(t *testing.T) string {
	program, err := elf.Open(os.Args[0])
	if err != nil {
		t.Skip(err)
	}
	defer program.Close()
	symbols, err := program.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	folder, soname, version := t.TempDir(), "", ""
	var source strings.Builder
	for _, symbol := range symbols {
		if strings.HasPrefix(symbol.Name, "zero_") {
			soname, version = symbol.Library, symbol.Version
			result := "0"
			if symbol.Name == "zero_abi_version" {
				result = "77L << 16 | 3"
			}
			fmt.Fprintf(&source, "long %s(void) { return %s; }\n", symbol.Name, result)
		}
	}
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	compile := exec.Command(compiler, "-shared", "-fPIC", "-Wl,-soname,"+soname,
		"-Wl,--version-script,"+write("versions", version+" { *; };"), "-o", filepath.Join(folder, soname), write("zero.c", source.String()))
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return folder
}
