package observability

import (
	"flag"
	"fmt"
	"io"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	configv1alpha1 "github.com/berth-dev/berth/pkg/api/config/v1alpha1"
)

// NewLogger returns a logger that writes to w, which must be safe for concurrent use as os.Stderr is.
func NewLogger(config configv1alpha1.Logging, w io.Writer) (logr.Logger, error) {
	verbosity, err := config.Verbosity()
	if err != nil {
		return logr.Logger{}, fmt.Errorf("level %q %w", config.Level, err)
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	encoding.EncodeDuration = zapcore.StringDurationEncoder
	encoding.EncodeLevel = encodeLevel
	var encoder zapcore.Encoder
	switch config.Format {
	case configv1alpha1.LogJSON:
		encoder = zapcore.NewJSONEncoder(encoding)
	case configv1alpha1.LogConsole:
		encoder = zapcore.NewConsoleEncoder(encoding)
	default:
		return logr.Logger{}, fmt.Errorf("format %q is not supported", config.Format)
	}
	level := zapcore.Level(-verbosity)
	if verbosity < 0 {
		level = zapcore.ErrorLevel
	}
	return zapr.NewLogger(zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level), zap.AddCaller())), nil
}

// encodeLevel names what logr has and zap has not: V(1) is debug, further ones are v2 to v10.
func encodeLevel(level zapcore.Level, encoder zapcore.PrimitiveArrayEncoder) {
	if level < zapcore.DebugLevel {
		encoder.AppendString("v" + strconv.Itoa(-int(level)))
		return
	}
	zapcore.LowercaseLevelEncoder(level, encoder)
}

// Install makes log the logger of the libraries that have a global one, controller-runtime and client-go, up to the
// configured verbosity. Call it once, before anything logs.
func Install(log logr.Logger, config configv1alpha1.Logging) error {
	verbosity, err := config.Verbosity()
	if err != nil {
		return err
	}
	ctrllog.SetLogger(log)
	klog.SetLoggerWithOptions(log.WithName("client-go"), klog.ContextualLogger(true))
	// klog asks its own flag before it asks the logger.
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	return flags.Set("v", strconv.Itoa(max(verbosity, 0)))
}
