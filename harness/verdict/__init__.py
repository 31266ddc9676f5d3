"""The verdict: from the record of a run alone to held, undecided or violated."""
