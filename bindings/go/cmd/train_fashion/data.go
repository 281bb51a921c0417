package main

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// dataset holds images of imagePixels bytes and their labels.
type dataset struct {
	images []uint8
	labels []uint8
}

func (d *dataset) count() int { return len(d.labels) }

func (d *dataset) image(sample int) []uint8 { return d.images[sample*imagePixels:][:imagePixels] }

// readDataset reads NAME-images-idx3-ubyte and NAME-labels-idx1-ubyte, with or without .gz; limit > 0 keeps only that many first samples.
func readDataset(directory, name string, limit int) (*dataset, error) {
	images, err := readIDX(filepath.Join(directory, name+"-images-idx3-ubyte"), []uint32{imageSide, imageSide}, limit)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(directory, name+"-labels-idx1-ubyte")
	labels, err := readIDX(path, nil, limit)
	if err != nil {
		return nil, err
	}
	if len(images) != len(labels)*imagePixels {
		return nil, fmt.Errorf("%s: %d labels for %d images", path, len(labels), len(images)/imagePixels)
	}
	for i, label := range labels {
		if label >= classes {
			return nil, fmt.Errorf("%s: label %d is %d, expected 0 to %d", path, i, label, classes-1)
		}
	}
	return &dataset{images, labels}, nil
}

// readIDX reads a file of items whose extents are given: two zero bytes, a type (8 = unsigned byte), the number of dimensions, big-endian
// extents of which the first counts the items, then the bytes.
func readIDX(path string, extents []uint32, limit int) ([]uint8, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	header := make([]uint32, 2+len(extents))
	if err := binary.Read(file, binary.BigEndian, header); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if magic := uint32(0x801 + len(extents)); header[0] != magic {
		return nil, fmt.Errorf("%s: magic number is %08x, expected %08x", path, header[0], magic)
	}
	count, nbytes := int(header[1]), 1
	for i, extent := range extents {
		if header[2+i] != extent {
			return nil, fmt.Errorf("%s: images are %d pixels wide or high, expected %d", path, header[2+i], extent)
		}
		nbytes *= int(extent)
	}
	if count == 0 {
		return nil, fmt.Errorf("%s: holds no items", path)
	}
	if limit > 0 && limit < count {
		count = limit
	}
	items := make([]uint8, count*nbytes)
	if _, err := io.ReadFull(file, items); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return items, nil
}

// idxFile is a file that may be compressed.
type idxFile struct {
	io.Reader
	io.Closer
}

func open(path string) (idxFile, error) {
	file, err := os.Open(path + ".gz")
	if os.IsNotExist(err) {
		file, err = os.Open(path)
		if os.IsNotExist(err) {
			err = fmt.Errorf("%w (the images: Debian's package dataset-fashion-mnist)", err)
		}
		return idxFile{bufio.NewReader(file), file}, err
	}
	if err != nil {
		return idxFile{}, err
	}
	unzipped, err := gzip.NewReader(bufio.NewReader(file))
	if err != nil {
		file.Close()
		return idxFile{}, fmt.Errorf("%s.gz: %w", path, err)
	}
	return idxFile{unzipped, file}, nil
}
