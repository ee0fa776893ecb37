"""What becomes of the rows of a window, or of two inputs."""
