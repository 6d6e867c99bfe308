"""What twenty tasks cost a model in turns and tokens: see `benchmarks.tasks.__main__`."""
