package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folderOf writes a data set of two images, changed by the test.
func folderOf(t *testing.T, change func(images, labels []byte) ([]byte, []byte), zipped bool) string {
	t.Helper()
	folder := t.TempDir()
	images := append([]byte{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28}, make([]byte, 2*imagePixels)...)
	images[16+imagePixels] = 9
	images, labels := change(images, []byte{0, 0, 8, 1, 0, 0, 0, 2, 3, 4})
	for name, content := range map[string][]byte{"t-images-idx3-ubyte": images, "t-labels-idx1-ubyte": labels} {
		if zipped {
			var buffer bytes.Buffer
			writer := gzip.NewWriter(&buffer)
			must(writer.Write(content))
			check(writer.Close())
			name, content = name+".gz", buffer.Bytes()
		}
		check(os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
	return folder
}

func TestDataIsReadZippedAndPlain(t *testing.T) {
	for _, zipped := range []bool{true, false} {
		folder := folderOf(t, func(images, labels []byte) ([]byte, []byte) { return images, labels }, zipped)
		data, err := readDataset(folder, "t", 0)
		if err != nil {
			t.Fatal(err)
		}
		if data.count() != 2 || data.labels[1] != 4 || data.image(1)[0] != 9 {
			t.Errorf("got %d samples, labels %v, pixel %d", data.count(), data.labels, data.image(1)[0])
		}
		if limited := must(readDataset(folder, "t", 1)); limited.count() != 1 {
			t.Errorf("a limit of 1 gives %d samples", limited.count())
		}
	}
}

func TestBadDataIsAnErrorThatNamesTheFile(t *testing.T) {
	for name, test := range map[string]struct {
		change func(images, labels []byte) ([]byte, []byte)
		want   string
	}{
		"truncated": {func(i, l []byte) ([]byte, []byte) { return i[:99], l }, "t-images-idx3-ubyte: unexpected EOF"},
		"magic":     {func(i, l []byte) ([]byte, []byte) { i[2] = 9; return i, l }, "magic number is 00000903"},
		"size":      {func(i, l []byte) ([]byte, []byte) { i[15] = 27; return i, l }, "27 pixels"},
		"counts":    {func(i, l []byte) ([]byte, []byte) { l[7] = 1; return i, l[:9] }, "1 labels for 2 images"},
		"label":     {func(i, l []byte) ([]byte, []byte) { l[9] = 10; return i, l }, "label 1 is 10"},
		"empty":     {func(i, l []byte) ([]byte, []byte) { i[7], l[7] = 0, 0; return i[:16], l[:8] }, "t-images-idx3-ubyte: holds no items"},
		"header":    {func(i, l []byte) ([]byte, []byte) { return i, l[:3] }, "t-labels-idx1-ubyte: unexpected EOF"},
	} {
		_, err := readDataset(folderOf(t, test.change, false), "t", 0)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
	if _, err := readDataset(t.TempDir(), "t", 0); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "dataset-fashion-mnist") {
		t.Errorf("no files: got %v", err)
	}
}
