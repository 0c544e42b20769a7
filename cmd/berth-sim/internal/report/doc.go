// Package report turns outcomes into tables (text, Markdown), JSON and charts.
package report
