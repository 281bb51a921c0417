// Package zerogorgonia trains models of Gorgonia with libzero: a Solver whose gradients and optimizer states are sharded over the ranks of a
// group, in the place of gorgonia.NewAdamSolver and its like.
package zerogorgonia
