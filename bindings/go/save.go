package zero

import (
	"runtime"
	"strings"

	"example.org/libzero/bindings/go/internal/czero"
)

// TextForm says how a text about saves is written.
type TextForm int32

// Forms of texts.
const (
	TextPlain = TextForm(czero.ZERO_TEXT_PLAIN) // lines for people
	TextJSON  = TextForm(czero.ZERO_TEXT_JSON)  // one JSON value
)

// String returns its name, for example "json".
func (f TextForm) String() string { return nameOf("ZERO_TEXT_", int64(f)) }

// Save is a save as tools see it. No group is needed.
type Save struct {
	object object[czero.Save]
}

// OpenSave opens the save at path, or the newest valid one if path is a folder of saves.
func OpenSave(path string) (*Save, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	if err := checkText("path", path); err != nil {
		return nil, err
	}
	s := &Save{}
	if err := wrap(czero.Zero_save_open(path, &s.object.handle)); err != nil {
		return nil, err
	}
	runtime.SetFinalizer(s, func(s *Save) { go s.Close() })
	return s, nil
}

func (s *Save) self() *object[czero.Save] {
	if s == nil {
		return nil
	}
	return &s.object
}

// Describe returns the step, the run, tensors with types, shapes and slots, settings, texts and files.
func (s *Save) Describe(form TextForm) (string, error) {
	return readText(func(out *byte, nbytes int64, needed *int64) error {
		return s.self().do(func(raw czero.Save) *czero.Failure {
			return czero.Zero_save_describe(raw, int32(form), out, nbytes, needed)
		})
	})
}

// Verify reads all files and checks every block and every header. ErrCheckpoint names the file and the block that is damaged.
func (s *Save) Verify() error {
	return s.self().do(func(raw czero.Save) *czero.Failure { return czero.Zero_save_verify(raw) })
}

// Compare returns the number of differences to another save, which no other goroutine may use meanwhile.
func (s *Save) Compare(other *Save) (int, error) {
	var count int64
	err := s.self().do(func(raw czero.Save) *czero.Failure {
		defer runtime.KeepAlive(other)
		var second czero.Save
		if other != nil {
			second = other.object.handle
		}
		return czero.Zero_save_compare(raw, second, &count)
	})
	return int(count), err
}

// Differences returns what the last Compare found, a line or an object for each.
func (s *Save) Differences(form TextForm) (string, error) {
	return readText(func(out *byte, nbytes int64, needed *int64) error {
		return s.self().do(func(raw czero.Save) *czero.Failure {
			return czero.Zero_save_differences(raw, int32(form), out, nbytes, needed)
		})
	})
}

// Export writes the parameters as plain safetensors: a file that ends with ".safetensors", or a new folder.
func (s *Save) Export(path string) error {
	if err := checkText("path", path); err != nil {
		return err
	}
	return s.self().do(func(raw czero.Save) *czero.Failure { return czero.Zero_save_export(raw, path) })
}

// Progress returns the bytes that Verify, Compare or Export has processed, and the bytes in total. Any goroutine may ask.
func (s *Save) Progress() (done, total int, err error) {
	var bytes [2]int64
	err = s.self().look(func(raw czero.Save) *czero.Failure { return czero.Zero_save_progress(raw, &bytes[0], &bytes[1]) })
	return int(bytes[0]), int(bytes[1]), err
}

// Close gives the save back. It may be called again.
func (s *Save) Close() {
	if s != nil {
		s.object.close(czero.Zero_save_release)
		runtime.SetFinalizer(s, nil)
	}
}

// ListSaves lists all saves of a folder, newest first, a line or an object for each.
func ListSaves(folder string, form TextForm) (string, error) {
	if err := checkText("folder", folder); err != nil {
		return "", err
	}
	return readText(func(out *byte, nbytes int64, needed *int64) error {
		return wrap(czero.Zero_save_list(folder, int32(form), out, nbytes, needed))
	})
}

// PrunableSaves returns the names of the committed saves beyond the keep newest of each run, oldest first.
func PrunableSaves(folder string, keep int) ([]string, error) {
	if err := checkText("folder", folder); err != nil {
		return nil, err
	}
	names, err := readText(func(out *byte, nbytes int64, needed *int64) error {
		return wrap(czero.Zero_save_prunable(folder, int64(keep), out, nbytes, needed))
	})
	return strings.Fields(names), err
}

// RemoveSave removes a save: first its commit, then its files. The newest valid save of the folder is not removed.
func RemoveSave(folder, name string) error {
	if err := checkText("folder", folder); err != nil {
		return err
	}
	if err := checkText("name", name); err != nil {
		return err
	}
	return wrap(czero.Zero_save_remove(folder, name))
}
