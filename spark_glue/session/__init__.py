"""Settings and Python of a Spark session: what an application sets before it runs."""
