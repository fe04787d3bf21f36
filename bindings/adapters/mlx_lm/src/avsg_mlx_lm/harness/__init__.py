"""Compares decoding through AVSG with decoding by mlx-lm alone."""
