"""Tables of scripts that Spark reads."""
