"""What an operator is, and how a call of one runs; no operator is defined here."""
