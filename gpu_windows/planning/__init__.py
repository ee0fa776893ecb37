"""How a query is evaluated, and why."""
