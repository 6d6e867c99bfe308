"""The goals of reliability, each a command that prints what it measured beside what is asked.

`python -m benchmarks.goals` runs all of them in their small form, some seconds each; with `--full` they have their own
scale. A goal is a module with a function that yields figures, and a line of `GOALS` in `benchmarks/goals/__main__.py`.
"""
