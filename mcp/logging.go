package mcp

import "slices"

// LogLevel is how serious a log message is: the severities of RFC 5424.
type LogLevel string

// The log levels, from least to most serious.
const (
	LogDebug     LogLevel = "debug"
	LogInfo      LogLevel = "info"
	LogNotice    LogLevel = "notice"
	LogWarning   LogLevel = "warning"
	LogError     LogLevel = "error"
	LogCritical  LogLevel = "critical"
	LogAlert     LogLevel = "alert"
	LogEmergency LogLevel = "emergency"
)

// LogLevels returns all levels, from most to least serious.
func LogLevels() []LogLevel {
	return []LogLevel{
		LogEmergency, LogAlert, LogCritical, LogError,
		LogWarning, LogNotice, LogInfo, LogDebug,
	}
}

// Severity is the number of RFC 5424: 0 for emergency up to 7 for debug, and -1
// for what is no level.
func (l LogLevel) Severity() int {
	switch l {
	case LogEmergency:
		return 0
	case LogAlert:
		return 1
	case LogCritical:
		return 2
	case LogError:
		return 3
	case LogWarning:
		return 4
	case LogNotice:
		return 5
	case LogInfo:
		return 6
	case LogDebug:
		return 7
	}
	return -1
}

// Valid reports whether l is one of the eight levels.
func (l LogLevel) Valid() bool { return slices.Contains(LogLevels(), l) }

// AtLeast reports whether l is as serious as least, or more. It is false if one
// of them is no level.
func (l LogLevel) AtLeast(least LogLevel) bool {
	s, t := l.Severity(), least.Severity()
	return s >= 0 && t >= 0 && s <= t
}

// SetLevelParams set the least level of log messages of a session. Handshake
// revisions only; the newest one has RequestMeta.LogLevel.
type SetLevelParams struct {
	RequestBase
	// Level is the least level to send.
	Level LogLevel `json:"level"`
}

// LogParams are a log message (schema LoggingMessageNotificationParams).
// Deprecated by the newest revision: log to standard error, or use
// OpenTelemetry.
type LogParams struct {
	NotificationBase
	// Level is how serious it is.
	Level LogLevel `json:"level"`
	// Logger names the part that speaks.
	Logger string `json:"logger,omitzero"`
	// Data is any JSON value: a string, or an object with the message's
	// attributes.
	Data RawValue `json:"data"`
}
