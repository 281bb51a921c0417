"""Draws the folders of lib/ and kernels/ and their includes as text, each folder above those it includes from, and fails when two folders
include each other, directly or by way of others. usage: graph.py ROOT"""
import collections
import sys

from source import Tree


def folder_of(path):
    """lib/engine/layout/plan.h -> engine/layout; kernels/cpu/adam.cpp -> kernels; lib/group/tcp/tcp_link.h -> group/tcp."""
    parts = path.split("/")
    if parts[0] == "kernels":
        return "kernels"
    return "/".join(parts[1:-1]) if parts[0] == "lib" and len(parts) > 2 else None


def folder_of_include(name):
    parts = name.split("/")
    return "kernels" if parts[0] == "kernels" else "/".join(parts[:-1])


def includes_between(tree):
    """{folder: {folder it includes from: includes}}"""
    arrows = collections.defaultdict(collections.Counter)
    folders = {folder_of(path) for path in tree.under("lib", "kernels")} - {None}
    for path in tree.under("lib", "kernels"):
        own = folder_of(path)
        for bracket, name in tree.includes(path):
            other = folder_of_include(name)
            if own and bracket == '"' and other in folders and other != own:
                arrows[own][other] += 1
    return folders, arrows


def levels(folders, arrows):
    """Folders by the length of the longest way down from each; what is left over lies on a circle."""
    level = {}
    while True:
        ready = [f for f in folders if f not in level and all(below in level for below in arrows[f])]
        if not ready:
            return level, sorted(set(folders) - set(level))
        for folder in ready:
            level[folder] = 1 + max((level[below] for below in arrows[folder]), default=-1)


def main(root):
    folders, arrows = includes_between(Tree(root))
    level, circle = levels(folders, arrows)
    for height in range(max(level.values(), default=-1), -1, -1):
        for folder in sorted(f for f in level if level[f] == height):
            below = ", ".join(f"{name} ({count})" for name, count in sorted(arrows[folder].items()))
            print(f"{height:3}  {folder:24} -> {below or 'nothing'}")
    if circle:
        print(f"folders on or above a circle: {', '.join(circle)}")
    print(f"{len(folders)} folders, {sum(len(below) for below in arrows.values())} arrows, {len(circle)} on a circle")
    return 1 if circle or not folders else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
