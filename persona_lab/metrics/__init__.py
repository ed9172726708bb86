"""From scores to estimates; the only place that does."""
