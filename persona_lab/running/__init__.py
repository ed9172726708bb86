"""What the commands share: setting a recipe up, planning it, running it to its files."""
