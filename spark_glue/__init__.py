"""How Spark feeds the operators: transport, and nothing else."""
