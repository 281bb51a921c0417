package zero

import (
	"errors"
	"fmt"
	"strings"

	"example.org/libzero/bindings/go/internal/czero"
)

// Error is an error of libzero. Its text names what was given, what was expected and, for a group, the rank and the operation.
type Error struct {
	Code Status
	Text string

	cause error // why the context ended whose end made the call fail
}

// Error returns code and text.
func (e *Error) Error() string { return "libzero: " + e.Code.String() + ": " + e.Text }

// Unwrap returns the code.
func (e *Error) Unwrap() error { return e.Code }

// Is tells whether target is the reason of the context that ended; errors.Is compares the code itself.
func (e *Error) Is(target error) bool { return e.cause != nil && errors.Is(e.cause, target) }

// wrap makes an error of what a call left.
func wrap(failure *czero.Failure) error {
	if failure == nil {
		return nil
	}
	return &Error{Code: Status(failure.Code), Text: failure.Text}
}

// wrapCause is wrap for a call whose context has ended.
func wrapCause(failure *czero.Failure, cause error) error {
	if failure == nil {
		return nil
	}
	return &Error{Code: Status(failure.Code), Text: failure.Text, cause: cause}
}

func invalid(format string, arguments ...any) error {
	return &Error{Code: ErrInvalidArgument, Text: fmt.Sprintf(format, arguments...)}
}

// checkText refuses what C would cut.
func checkText(argument, text string) error {
	if at := strings.IndexByte(text, 0); at >= 0 {
		return invalid("%s has a zero byte at %d, where C's texts end", argument, at)
	}
	return nil
}
