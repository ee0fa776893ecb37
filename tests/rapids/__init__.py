"""What the RAPIDS Accelerator would run of our plans: ``python -m tests.rapids --help``."""
