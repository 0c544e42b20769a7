package scene

import (
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// What is logged outside of a controller, by clients and informers, belongs to no test. Unset, it costs a stack dump.
func init() { log.SetLogger(logr.Discard()) }

// Logger writes to the test's log until the test ends. controller-runtime lets goroutines outlive a stopped manager, and
// the testing package panics when one of them still logs.
func Logger(t testing.TB) logr.Logger {
	w := &endingWriter{to: zaptest.NewTestingWriter(t)}
	t.Cleanup(w.end)
	encoder := zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig())
	return zapr.NewLogger(zap.New(zapcore.NewCore(encoder, w, zapcore.DebugLevel)))
}

// endingWriter drops what is written after end.
type endingWriter struct {
	mu    sync.Mutex
	ended bool
	to    zaptest.TestingWriter
}

// Write is io.Writer.Write.
func (w *endingWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return len(line), nil
	}
	return w.to.Write(line)
}

// Sync is zapcore.WriteSyncer.Sync.
func (w *endingWriter) Sync() error { return nil }

func (w *endingWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}
