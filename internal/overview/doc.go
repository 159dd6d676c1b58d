// Package overview lists what needs somebody, the worst first: of an evaluation (Of), and of the process
// that answers (Evaluation.With). It is pure. The first page of the dashboard, GET /overview and kubectl
// proffer status show the same list.
//
// Consumers can make any number of slices. So at most MaxRows of a kind and status are listed, MaxOfOne of a
// consumer, the oldest slices first, and one more finding counts the others.
package overview
