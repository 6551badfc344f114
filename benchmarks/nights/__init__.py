"""What a job costs that releases the same people every night, on the second night and a year later."""
