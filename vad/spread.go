package vad

// addSpread fills SELow, SEHigh and SERules of the turns; see Turns for how
// turns are matched.
func addSpread(turns []Turn, probs []float32, p Params) {
	const rounding = 1e-9 // 0.35 − 0.15 is a hair under 0.2
	for _, by := range []float64{-0.15, -0.10, -0.05, 0.05, 0.10, 0.15} {
		moved := p
		moved.Threshold += by
		if moved.Threshold < minThreshold-rounding || moved.Threshold > maxThreshold+rounding {
			continue
		}
		widen(turns, segments(probs, moved))
	}
}

// widen stretches the spread of each turn over the SE of its match in others,
// which hold the turns under another threshold in order of time.
func widen(turns, others []Turn) {
	first := 0 // the first of others that may overlap; never moves back
	for i := range turns {
		t := &turns[i]
		for first < len(others) && others[first].SE <= t.Start {
			first++
		}
		after := first
		for after < len(others) && others[after].Start < t.SE {
			after++
		}
		if after == first {
			continue // vanished
		}
		se := others[after-1].SE
		if i+1 < len(turns) && se > turns[i+1].Start {
			continue // merged with the next turn
		}
		t.SELow, t.SEHigh = min(t.SELow, se), max(t.SEHigh, se)
		t.SERules++
	}
}

// segments returns all turns of any length, including one whose silence has
// begun but not lasted long enough before the probabilities end.
func segments(probs []float32, p Params) []Turn {
	var turns []Turn
	r := newRule(p)
	for _, prob := range probs {
		if t, ended := r.next(prob); ended {
			turns = append(turns, t)
		}
	}
	if t, ok := r.pending(); ok {
		turns = append(turns, t)
	}
	return turns
}
