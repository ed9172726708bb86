"""The machine that every benchmark runs on. It knows no benchmark and no model library."""
