"""Mitigations that any benchmark with a history can use, as sub-flows; a benchmark gives them its
paper's wording."""
