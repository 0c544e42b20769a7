package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-dev/berth/cmd/internal/release"
	configv1alpha1 "github.com/berth-dev/berth/pkg/api/config/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers"
	"github.com/berth-dev/berth/pkg/observability"
)

// Exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// usageError is a fault of whoever called the command: no retry will help.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run is main with everything passed in; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	command := newCommand(stderr)
	command.SetArgs(args)
	command.SetOut(stdout)
	command.SetErr(stderr)
	err := command.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(stderr, err)
	if errors.As(err, &usageError{}) {
		return exitUsage
	}
	return exitFailed
}

func newCommand(logs io.Writer) *cobra.Command {
	var configFile, kubeconfig string
	command := &cobra.Command{
		Use:           "berth-controller",
		Short:         "Reserve whole slices of accelerators for gangs",
		Version:       release.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(command *cobra.Command, args []string) error {
			if err := cobra.NoArgs(command, args); err != nil {
				return usageError{err}
			}
			return nil
		},
		RunE: func(command *cobra.Command, _ []string) error {
			return serve(command.Context(), configFile, kubeconfig, logs)
		},
	}
	command.SetVersionTemplate("{{.Version}}\n")
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	command.Flags().StringVar(&configFile, "config", "", "configuration file (default: every setting has its default)")
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file (default: the pod's service account)")
	return command
}

func serve(ctx context.Context, configFile, kubeconfig string, logs io.Writer) error {
	config := configv1alpha1.Default()
	if configFile != "" {
		var err error
		if config, err = configv1alpha1.Load(configFile); err != nil {
			return usageError{err}
		}
	}
	log, err := observability.NewLogger(config.Logging, logs)
	if err != nil {
		return usageError{err}
	}
	if err := observability.Install(log, config.Logging); err != nil {
		return err
	}
	connection, err := connect(kubeconfig)
	if err != nil {
		return usageError{err}
	}
	identity, err := os.Hostname() // of a pod: its name
	if err != nil {
		return fmt.Errorf("naming this process: %w", err)
	}

	log.Info("Starting", "version", release.Version(), "apiServer", connection.Host)
	controller, err := controllers.New(controllers.Options{
		REST:     connection,
		Config:   config,
		Identity: identity,
		UID:      os.Getenv("POD_UID"),
		Logger:   log,
	})
	if err != nil {
		return err
	}
	if err := controller.Run(ctx); err != nil {
		return err
	}
	log.Info("Stopped")
	return nil
}

// connect reads the kubeconfig, or what Kubernetes put into the pod.
func connect(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		connection, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("%w; outside a pod, name a kubeconfig with --kubeconfig", err)
		}
		return connection, nil
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}
