package zero

// readText asks how long a text is and then for all of it, again when it has grown meanwhile.
func readText(read func(out *byte, nbytes int64, needed *int64) error) (string, error) {
	var memory []byte
	for {
		var first *byte
		if len(memory) > 0 {
			first = &memory[0]
		}
		var needed int64
		if err := read(first, int64(len(memory)), &needed); err != nil {
			return "", err
		}
		if needed <= int64(len(memory)) {
			return string(memory[:needed-1]), nil
		}
		memory = make([]byte, needed)
	}
}
