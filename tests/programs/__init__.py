"""What becomes of a process's compiled programs."""
