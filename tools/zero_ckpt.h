/// @file `zero ckpt`: looks at saves, checks, compares, exports and removes them. Knows only the public API.
#ifndef ZERO_CKPT_H
#define ZERO_CKPT_H

/* The arguments behind `zero ckpt`. Exit code: 0 good; 1 damaged, or different; 2 usage; 3 nothing found; 4 the system refused something. */
int zero_ckpt(int argc, char **argv);

#endif
