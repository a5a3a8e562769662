package endpoint

import "time"

// outcome reads the class, latencies and texts of a turn off its state. Failures
// of the session are laid over it by the caller.
func (t *turnState) outcome(r Rules, end *Transcript) Outcome {
	o := Outcome{
		Turn:            t.index,
		Ack:             AckNone,
		Class:           NoAnswer,
		Reason:          t.cause,
		Hangover:        millis(t.turn.Hangover()),
		SpeechEnd:       millis(t.turn.SE),
		SpeechEndSpread: millis(t.turn.SEHigh - t.turn.SELow),
	}
	if t.spoken.set {
		o.FirstPartial = millis(t.spoken.at - t.turn.Start)
	}
	if t.mark == nil {
		o.FinalText = end.Text()
		return o
	}
	o.Forced = t.mark.Forced
	o.ForceDelay = millis(t.mark.T0 - t.turn.EOS)
	if !t.closed { // the session broke first: all that was held
		t.end.fixed, t.end.text, t.tail = end.Fixed(), end.Text(), end.HasTail()
	}
	o.FinalText = t.end.text
	if t.any.set {
		o.TTFP = millis(t.any.at - t.mark.T0)
		o.PartialText = t.any.text
	}
	if t.first.set {
		o.TTFFirst = millis(t.first.at - t.mark.T0)
		o.FirstFinalText = t.first.fixed
	}
	if t.acked {
		o.AckMS = millis(t.closedAt - t.mark.T0)
		o.Ack = t.ack()
	}
	if t.mark.Forced {
		t.classifyForced(&o, r)
	} else {
		t.classifyNatural(&o, r)
	}
	return o
}

func (t *turnState) ack() Ack {
	switch {
	case t.last.set:
		return AckText
	case t.negative:
		return AckNegative
	}
	return AckEmpty
}

func (t *turnState) classifyForced(o *Outcome, r Rules) {
	switch {
	case t.last.set:
		o.Class = OK
		o.answered(t, t.last.at)
		o.FinalText = t.last.fixed
	case t.everythingFinal(t.unfinished()):
		o.Class = EarlyFinal
		o.answered(t, t.early.at)
		o.FinalText = t.end.fixed
	case t.acked && (t.unfinished() || t.early.set):
		o.Class = TailLost
		o.answered(t, t.closedAt)
	case t.acked:
		o.Class = EmptyAck
	default:
		o.CensoredAt = millis(r.Deadline)
	}
}

func (t *turnState) classifyNatural(o *Outcome, r Rules) {
	switch {
	case t.late != "":
		o.Class = t.late
		if t.late == LateFinal {
			o.FinalText = t.first.fixed
		}
		o.answered(t, t.closedAt)
	case t.first.set:
		o.Class = OK
		o.answered(t, t.first.at)
		o.FinalText = t.first.fixed
	case t.shortFinal.set:
		o.Class = OK
		o.answered(t, t.shortFinal.at)
		o.TTFFirst = o.TTF
		o.FinalText, o.FirstFinalText = t.shortFinal.fixed, t.shortFinal.fixed
	case t.everythingFinal(t.tailAtEnd):
		o.Class = EarlyFinal
		o.answered(t, t.early.at)
		o.FinalText = t.end.fixed
	case t.any.set || t.earlyPartial:
		o.Class = EarlyPartial
		o.CensoredAt = millis(r.NaturalWindow)
	default:
		o.CensoredAt = millis(r.Deadline)
	}
}

// answered sets the latencies that count to the instant of the answer.
func (o *Outcome) answered(t *turnState, at time.Duration) {
	o.TTF = millis(at - t.mark.T0)
	o.Wait = millis(max(0, at-t.mark.T0))
	o.TTFFromSE = millis(at - t.turn.SE)
}

// spoil turns an outcome into that of a turn without a valid measurement: no
// latency of it may reach a statistic. The texts stay, they were really there.
func (o *Outcome) spoil(c Class, reason string) {
	o.Class, o.Reason = c, reason
	o.TTF, o.TTFFirst, o.TTFP, o.AckMS, o.Wait, o.TTFFromSE, o.CensoredAt = nil, nil, nil, nil, nil, nil, nil
}
