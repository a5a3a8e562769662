// Package report shows an aggregate to people and machines.
//
// A report computes nothing: every figure in it is in aggregate.json, so that two
// formats can never disagree. It says first what was measured, what was not, and
// how uncertain it is; a figure that the sample cannot carry is not printed as if
// it could.
package report
