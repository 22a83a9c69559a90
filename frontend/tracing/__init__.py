"""One run of a program on fake tensors, and what it records: tracked sizes, operations, memory."""
