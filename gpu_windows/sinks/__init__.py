"""Where the results of streaming queries go."""
