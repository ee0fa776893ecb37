"""The first rows of keys, kept up to date."""
