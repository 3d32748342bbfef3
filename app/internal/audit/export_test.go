package audit

// OnStep has f called at each step of an append.
func (l *Log) OnStep(f func(name string)) { l.step = f }
