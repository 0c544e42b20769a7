package watch

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Soon asks for the one request of a controller that looks at everything at once, a moment after the event: a burst of
// events is one look.
func Soon[T any](request reconcile.Request, moment time.Duration) handler.TypedEventHandler[T, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc:  func(_ context.Context, _ event.TypedCreateEvent[T], q queue) { q.AddAfter(request, moment) },
		UpdateFunc:  func(_ context.Context, _ event.TypedUpdateEvent[T], q queue) { q.AddAfter(request, moment) },
		DeleteFunc:  func(_ context.Context, _ event.TypedDeleteEvent[T], q queue) { q.AddAfter(request, moment) },
		GenericFunc: func(_ context.Context, _ event.TypedGenericEvent[T], q queue) { q.AddAfter(request, moment) },
	}
}
