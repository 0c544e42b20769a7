// Package release says which build a command is.
package release
