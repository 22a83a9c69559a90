"""What each ATen operation means as `dlcb.graph` ops: one file a family, one function an operation."""
