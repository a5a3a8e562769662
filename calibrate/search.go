package calibrate

// Search finds the highest number up to limit that is fine, provided that all
// below a fine one are: it doubles from start, 1 or more, until one is not, and
// then halves the gap until it is below a sixteenth. 0 means that not even 1 is.
func Search(start, limit int, fine func(n int) (bool, error)) (int, error) {
	best, worst := 0, limit+1
	for n := min(start, limit); n > best; {
		ok, err := fine(n)
		if err != nil {
			return best, err
		}
		if ok {
			best = n
		} else {
			worst = n
		}
		switch {
		case worst > limit:
			n = min(2*n, limit)
		case worst-best <= max(1, best/16):
			return best, nil
		default:
			n = best + (worst-best)/2
		}
	}
	return best, nil
}
