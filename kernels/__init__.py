"""The same few array kernels on CPU and CUDA; they know nothing of queries, triggers or Spark."""
