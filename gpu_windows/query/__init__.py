"""What is computed: validated, frozen values."""
