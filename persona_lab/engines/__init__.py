"""Engines: a loaded model behind `room`, `submit`, `poll` and `close`."""
