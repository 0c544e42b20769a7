// Package grid draws who holds which host, as text. It knows plain values only and decides nothing.
package grid
