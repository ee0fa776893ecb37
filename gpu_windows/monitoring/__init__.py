"""What running queries do and cost."""
