// Package check is the command kubectl proffer check. It looks at an installation of Proffer and
// reports, for each thing that has to be right, whether it is, and what to do if not.
//
// Each check is a pure function from what was read to findings. cluster is the only part that talks
// to the API server. It reads with the caller's rights and writes nothing; a check that the caller
// has no right for is reported as skipped, with the missing right.
//
// The guards are also tried: each attempt is a dry run of a request that an admission policy has to
// refuse, and the answer of the API server shows whether it does.
package check
