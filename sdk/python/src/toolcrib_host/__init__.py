"""The host: a process that loads one Python file and answers calls of its tools over the worker protocol."""
