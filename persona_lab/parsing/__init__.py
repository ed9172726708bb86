"""Strict parsers: what a reply states, or None with a reason. Nothing is guessed."""
