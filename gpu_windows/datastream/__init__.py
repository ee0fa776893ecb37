"""The API: streams, keys, windows, joins; reading and writing."""
