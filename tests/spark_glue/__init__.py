"""Tests of what joins the package and Spark, batch and streaming."""
