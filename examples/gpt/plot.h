/// @file plot: the picture of --plot, drawn by plot.py from the CSV file of a run.
/// Knows nothing of what is in the file.
#ifndef GPT_PLOT_H
#define GPT_PLOT_H

/// Whether plot.py can draw, and write its picture: before the training. Returns 0, or -1 after a line on standard error.
int plot_check(const char *picture);

/// Draws it. Returns the same.
int plot_draw(const char *csv, const char *picture);

#endif
