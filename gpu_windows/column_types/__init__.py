"""Types of columns: logical types, conversions to them, and how they may be used."""
