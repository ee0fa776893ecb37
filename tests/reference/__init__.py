"""Row at a time in plain Python, after Flink's algorithms: what tests compare operators with.

That of windows is in the product (`gpu_windows.operators.row_at_a_time`), for it runs code of
users; those of OVER, interval and temporal joins are here.
"""
