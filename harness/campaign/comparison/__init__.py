"""One experiment on several topologies: the same seed, load and schedule, one table, one chart.

comparison_runner.py   the runs, one after the other, and their comparison
output_diff.py         the difference of two runs' outputs, by value
"""
