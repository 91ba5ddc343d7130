"""Studies of the method: the paper's tables made again, and what is compared with it."""
