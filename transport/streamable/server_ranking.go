package streamable

import "container/heap"

// A ranking is a heap whose items move when they change. Its owner locks it.
type ranking[T any] struct {
	items []T
	above func(a, b T) bool
	place func(item T) *int // where an item keeps its place, counted from 1; 0 is none
}

var _ heap.Interface = (*ranking[int])(nil)

// first is the item at the top, and the zero value if there is none.
func (r *ranking[T]) first() (item T) {
	if len(r.items) > 0 {
		item = r.items[0]
	}
	return item
}

// update finds the place of an item that has changed, or takes it in or out.
func (r *ranking[T]) update(item T, in bool) {
	switch at := *r.place(item); {
	case at > 0 && in:
		heap.Fix(r, at-1)
	case at > 0:
		heap.Remove(r, at-1)
	case in:
		heap.Push(r, item)
	}
}

// Len is part of heap.Interface, as are the methods that follow.
func (r *ranking[T]) Len() int { return len(r.items) }

// Less reports whether an item is above another one.
func (r *ranking[T]) Less(i, j int) bool { return r.above(r.items[i], r.items[j]) }

// Swap exchanges two items.
func (r *ranking[T]) Swap(i, j int) {
	r.items[i], r.items[j] = r.items[j], r.items[i]
	*r.place(r.items[i]), *r.place(r.items[j]) = i+1, j+1
}

// Push adds an item at the end.
func (r *ranking[T]) Push(x any) {
	r.items = append(r.items, x.(T))
	*r.place(x.(T)) = len(r.items)
}

// Pop takes the item at the end out.
func (r *ranking[T]) Pop() any {
	last := len(r.items) - 1
	item := r.items[last]
	clear(r.items[last:])
	r.items = r.items[:last]
	*r.place(item) = 0
	return item
}
