"""One folder a paper; they know nothing of each other."""
