"""What people see: progress, tables and the files of a run. It only reads."""
