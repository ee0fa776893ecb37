"""Scans on Spark: Spark lists the files, tasks read them by Arrow."""
