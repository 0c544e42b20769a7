// Package watch says which events make which controller look. The controllers share these mappings; what a look finds is
// their own business.
package watch
