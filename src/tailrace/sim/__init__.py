"""The simulator: one instance in compiled steps, its records and its invariants."""
