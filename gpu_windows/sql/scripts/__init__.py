"""Scripts of Flink SQL: tables, views and inserts, as queries of `gpu_windows.sql`."""
