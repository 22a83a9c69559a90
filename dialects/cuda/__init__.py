"""`dlcb.cuda`: CUDA C as structured IR."""
