package env

// TakeOver returns what a worker has found, if it has ended.
func TakeOver[T any](from *chan T) (found T, ok bool) {
	select {
	case found = <-*from: // a nil channel delivers nothing
		*from = nil
		return found, true
	default:
		return found, false
	}
}
