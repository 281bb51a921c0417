"""Draws what train_gpt --csv wrote: the loss over steps, and the bytes that a rank keeps in each stage beside what the formula says.
usage: plot.py PICTURE CSV...      one CSV file per stage; the losses are those of the longest run
       plot.py --check PICTURE     tells whether the picture could be drawn and written"""

import csv
import sys

CATEGORIES = {  # of zero/stats.h, from below
    "param": "parameters",
    "grad": "gradients",
    "state": "optimizer states",
    "grad_pool": "gradients under way",
    "param_pool": "gathered parameters",
    "staging": "staging",
}
COLOURS = ["#4c72b0", "#dd8452", "#55a868", "#f0b79a", "#a6bce0", "#999999"]


def fail(text):
    sys.exit(f"train_gpt: --plot: {text}")


def pyplot():
    try:
        import matplotlib
    except ImportError:
        fail("matplotlib is not installed (Debian: python3-matplotlib)")
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "libzero"  # the same picture from the same numbers
    from matplotlib import pyplot

    return pyplot


def check(picture):
    pyplot()
    try:
        open(picture, "w").close()
    except OSError as error:
        fail(f"{picture}: {error.strerror}")


def read(path):
    """The losses of a run, as (step, loss, validation or None), and its bytes, as {stage: {category: (peak, formula)}}."""
    losses, stages = [], {}
    with open(path, newline="") as file:
        for row in csv.reader(file):
            if row[0] == "loss":
                losses.append((int(row[1]), float(row[2]), float(row[3]) if row[3] else None))
            elif row[0] == "bytes":
                stages.setdefault(int(row[1]), {})[row[2]] = (int(row[4]), int(row[5]))
    return losses, stages


def draw_losses(axes, losses):
    axes.plot([step for step, _, _ in losses], [loss for _, loss, _ in losses], color="#aaaaaa", linewidth=0.8, label="training")
    known = [(step, loss) for step, _, loss in losses if loss is not None]
    axes.plot([step for step, _ in known], [loss for _, loss in known], "o-", color=COLOURS[0], markersize=3, label="validation")
    axes.set(xlabel="step", ylabel="loss, nats per byte", title="Loss")
    axes.legend(frameon=False)


def draw_bytes(axes, stages):
    names = [str(stage) for stage in sorted(stages)]
    below = [0.0] * len(names)
    for (category, label), colour in zip(CATEGORIES.items(), COLOURS):
        heights = [stages[stage][category][0] / 1e6 for stage in sorted(stages)]
        axes.bar(names, heights, 0.6, below, color=colour, label=label)
        below = [a + b for a, b in zip(below, heights)]
    formula = [stages[stage]["total"][1] / 1e6 for stage in sorted(stages)]
    axes.plot(names, formula, "_", color="black", markersize=34, markeredgewidth=1.5, label="formula of the stage")
    axes.set(xlabel="stage", ylabel="MB per rank", title="What a rank keeps")
    axes.legend(frameon=False, fontsize=8, markerscale=0.4)


def main(arguments):
    if len(arguments) < 2 or (arguments[0].startswith("--") and arguments[0] != "--check"):
        sys.exit(__doc__)
    if arguments[0] == "--check":
        return check(arguments[1])
    losses, stages = [], {}
    for path in arguments[1:]:
        more, found = read(path)
        losses = max(losses, more, key=len)
        stages.update(found)
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    draw_losses(left, losses)
    draw_bytes(right, stages)
    figure.savefig(arguments[0], format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1:])
