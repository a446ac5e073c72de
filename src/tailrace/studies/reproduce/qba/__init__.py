"""Quota-Based Aging, arXiv 2610.17795: section IV, run again."""
