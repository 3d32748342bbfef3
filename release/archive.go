package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// A file is one of an archive. A name that ends in "/" is a folder.
type file struct {
	name string
	mode fs.FileMode
	data []byte
	uid  int // and group
}

// tarball returns the files as a tar archive, the same for the same files: in
// the order of their names, with one time. Folders above them are added.
func tarball(files []file, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range ordered(files) {
		h := &tar.Header{
			Name: f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: when,
			Uid: f.uid, Gid: f.uid, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// zipped is tarball for Windows.
func zipped(files []file, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range ordered(files) {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: when}
		h.SetMode(f.mode)
		part, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := part.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// compressed returns data by gzip, without a name or a time in it.
func compressed(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// ordered returns files and the folders above them by name.
func ordered(files []file) []file {
	all := make(map[string]file)
	for _, f := range files {
		for dir := path.Dir(strings.TrimSuffix(f.name, "/")); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if _, there := all[dir+"/"]; !there {
				all[dir+"/"] = file{name: dir + "/", mode: 0o755}
			}
		}
		all[f.name] = f
	}
	list := make([]file, 0, len(all))
	for _, f := range all {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return list
}
