// Package jobs knows the Job-like kinds: who creates the pods of a gang, and whether every pod has one rank from 0 to
// N-1. Kinds that give no rank label before their pods are created cannot be handed over by label and annotation.
package jobs
