"""Where rows come from and results go; the runner without Spark."""
