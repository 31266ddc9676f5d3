"""One experiment on several topologies: the same seed, load and schedule, one table, one picture.

conduct.py      the runs, one after the other, and what is made of them
difference.py   what one run wrote and the other did not, by value
"""
