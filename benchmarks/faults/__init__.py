"""The same faults for this daemon and for other proxies: `python -m benchmarks.faults`.

A trial does one thing wrong and looks at what a client sees of it. The rule is the same for all (`verdict.py`).
"""
