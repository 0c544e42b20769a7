// Package chart draws what simulations measured, as SVG or PNG. Equal input gives equal bytes.
package chart
