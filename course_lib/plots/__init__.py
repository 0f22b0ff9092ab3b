"""Drawing verbs: numbers and finished labels in, a matplotlib Figure out. No model, ever."""
